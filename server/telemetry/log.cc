// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <string>

#include "base/check.h"
#include "base/text.h"
#include "config/words.h"
#include "server/telemetry/line_writer.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

// Of one value. Strangers' texts are in some of them: names, annotations, answers.
constexpr std::size_t kMostTextBytes = 4096;

}  // namespace

LogLevel LevelNamed(std::string_view word) {
  const auto found = std::ranges::find(kLogLevelWords, word);
  BERTH_CHECK(found != kLogLevelWords.end());
  return static_cast<LogLevel>(found - kLogLevelWords.begin());
}

class Log::Sink {
 public:
  Sink() : sink_(std::make_shared<ToWriter>(writer)), logger_("berth", sink_) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v})", spdlog::pattern_time_type::utc));
  }

  void Write(const std::string& line) {
    logger_.log(spdlog::level::info, spdlog::string_view_t(line));
  }

  LineWriter writer{STDERR_FILENO, kMostHeldBytes};

 private:
  class ToWriter final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    explicit ToWriter(LineWriter& writer) : writer_(writer) {}

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
      spdlog::memory_buf_t text;
      formatter_->format(message, text);
      writer_.Write(std::string(text.data(), text.size()));
    }
    void flush_() override {}

    LineWriter& writer_;
  };

  std::shared_ptr<ToWriter> sink_;
  spdlog::logger logger_;
};

Log::Log(LogLevel least) : least_(least), sink_(std::make_unique<Sink>()) {}

Log::~Log() = default;

void Log::Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  if (!Enabled(level)) return;
  if (const std::uint64_t lost = sink_->writer.TakeLost(); lost > 0) {
    Put(LogLevel::kWarn, "log_lines_dropped", {{"count", lost}});
  }
  Put(level, event, fields);
}

std::uint64_t Log::dropped_lines() const { return sink_->writer.dropped(); }
std::size_t Log::held_bytes() const { return sink_->writer.held_bytes(); }

void Log::Put(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
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
      const std::string_view text = std::get<std::string_view>(field.value);
      wire::AppendString(line,
                         text.size() <= kMostTextBytes ? text : Shortened(text, kMostTextBytes));
    }
  }
  sink_->Write(line);
}

}  // namespace berth
