// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/log.h"

#include <poll.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/text.h"
#include "config/config.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

// Of one value. Strangers' texts are in some of them: names, annotations, answers.
constexpr std::size_t kMostTextBytes = 4096;

constexpr Duration kFarewell = std::chrono::seconds(1);
constexpr int kPollMs = 50;

// What a pipe takes at once when poll reports it writable (POSIX' PIPE_BUF). The descriptor is not
// made non-blocking, because the parent process shares it.
constexpr std::size_t kAtOnce = 4096;

// Writes some of the text if there is room soon, and removes it; false if the reader is gone.
bool WriteSome(int descriptor, std::string_view& text) {
  pollfd room{descriptor, POLLOUT, 0};
  if (poll(&room, 1, kPollMs) <= 0) return true;  // not yet
  const ssize_t written = write(descriptor, text.data(), std::min(text.size(), kAtOnce));
  if (written < 0) return errno == EINTR || errno == EAGAIN;
  text.remove_prefix(static_cast<std::size_t>(written));
  return true;
}

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

bool WriteWithin(int descriptor, std::string_view text, Duration limit) {
  const Instant end = std::chrono::steady_clock::now() + limit;
  while (!text.empty() && std::chrono::steady_clock::now() < end) {
    if (!WriteSome(descriptor, text)) return false;
  }
  return text.empty();
}

LineWriter::LineWriter(int descriptor, std::size_t most_bytes)
    : descriptor_(descriptor), most_bytes_(most_bytes), thread_([this] { Run(); }) {}

LineWriter::~LineWriter() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    end_ = std::chrono::steady_clock::now() + kFarewell;
  }
  changed_.NotifyAll();
  thread_.join();
}

void LineWriter::Write(std::string line) {
  {
    const MutexLock lock(mutex_);
    if (held_bytes_ + line.size() > most_bytes_) {
      ++lost_;
      ++dropped_;
      return;
    }
    held_bytes_ += line.size();
    lines_.push_back(std::move(line));
  }
  changed_.NotifyOne();
}

std::uint64_t LineWriter::TakeLost() {
  const MutexLock lock(mutex_);
  return held_bytes_ > most_bytes_ / 2 ? 0 : std::exchange(lost_, 0);
}

std::uint64_t LineWriter::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

std::size_t LineWriter::held_bytes() const {
  const MutexLock lock(mutex_);
  return held_bytes_;
}

bool LineWriter::MustEnd() const {
  const MutexLock lock(mutex_);
  return std::chrono::steady_clock::now() >= end_;
}

void LineWriter::Run() {
  while (true) {
    std::string line;
    {
      const MutexLock lock(mutex_);
      while (lines_.empty() && !ending_) changed_.Wait(mutex_);
      if (lines_.empty()) return;
      line = std::move(lines_.front());
      lines_.pop_front();
    }
    std::string_view rest = line;
    while (!rest.empty() && !MustEnd() && WriteSome(descriptor_, rest)) {
    }
    const MutexLock lock(mutex_);
    held_bytes_ -= line.size();
    if (std::chrono::steady_clock::now() >= end_) return;
  }
}

}  // namespace berth
