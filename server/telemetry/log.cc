// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <string>

#include "server/wire/json_text.h"

namespace berth {

class Log::Sink {
 public:
  Sink() : logger_("berth", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})", spdlog::pattern_time_type::utc));
    logger_.set_level(spdlog::level::debug);  // Log itself decides
  }

  void Write(LogLevel level, const std::string& line) {
    switch (level) {
      case LogLevel::kDebug:
        logger_.log(spdlog::level::debug, spdlog::string_view_t(line));
        break;
      case LogLevel::kInfo:
        logger_.log(spdlog::level::info, spdlog::string_view_t(line));
        break;
      case LogLevel::kWarn:
        logger_.log(spdlog::level::warn, spdlog::string_view_t(line));
        break;
      case LogLevel::kError:
        logger_.log(spdlog::level::err, spdlog::string_view_t(line));
        break;
    }
  }

 private:
  spdlog::logger logger_;
};

Log::Log(LogLevel least) : least_(least), sink_(std::make_unique<Sink>()) {}

Log::~Log() = default;

void Log::Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!Enabled(level)) return;
  std::string line = "\"event\":";
  wire::AppendString(line, event);
  for (const LogField& field : fields) {
    line += ',';
    wire::AppendString(line, field.key);
    line += ':';
    if (const auto* number = std::get_if<std::int64_t>(&field.value)) {
      wire::AppendNumber(line, *number);
    } else {
      wire::AppendString(line, std::get<std::string_view>(field.value));
    }
  }
  sink_->Write(level, line);
}

}  // namespace berth
