// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "config/words.h"
#include "server/wire/json_text.h"

namespace berth {

LogLevel LevelNamed(std::string_view word) {
  const auto found = std::ranges::find(kLogLevelWords, word);
  BERTH_CHECK(found != kLogLevelWords.end());
  return static_cast<LogLevel>(found - kLogLevelWords.begin());
}

class Log::Sink {
 public:
  Sink() : logger_("berth", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})", spdlog::pattern_time_type::utc));
  }

  void Write(const std::string& line) {
    logger_.log(spdlog::level::info, spdlog::string_view_t(line));
  }

 private:
  spdlog::logger logger_;
};

Log::Log(LogLevel least) : least_(least), sink_(std::make_unique<Sink>()) {}

Log::~Log() = default;

void Log::Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!Enabled(level)) return;
  std::string line = "\"level\":";
  wire::AppendString(line, WordOf(kLogLevelWords, level));
  line += ",\"event\":";
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
  sink_->Write(line);
}

}  // namespace berth
