// SPDX-License-Identifier: Apache-2.0
//
// Log: JSON lines on stderr, one event each - a constant name and fields, never a formatted
// sentence:
//
//   log.Write(LogLevel::kInfo, "pod_bound", {{"node", node}, {"gpus", 2}});
//   {"time":"2026-03-01T12:00:00.123Z","level":"info","event":"pod_bound","node":"n1","gpus":2}
//
// Writing never blocks: lines wait in kMostHeldBytes of memory for a thread that writes them. If
// the reader does not keep up, new lines are dropped, counted, and reported in the event
// "log_lines_dropped" once there is room again.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "base/clock.h"
#include "base/mutex.h"

namespace berth {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

// Requires: one of kLogLevelWords.
LogLevel LevelNamed(std::string_view word);

struct LogField {
  LogField(std::string_view name, std::string_view text) : key(name), value(text) {}
  LogField(std::string_view name, const char* text) : key(name), value(std::string_view(text)) {}
  LogField(std::string_view name, std::integral auto number)
      : key(name), value(static_cast<std::int64_t>(number)) {}

  std::string_view key;
  std::variant<std::string_view, std::int64_t> value;
};

// Any thread may call it.
class Log {
 public:
  static constexpr std::size_t kMostHeldBytes = std::size_t{1} << 20;

  explicit Log(LogLevel least);
  // Waits at most a second for the reader to take the remaining lines.
  ~Log();

  void SetLevel(LogLevel least) { least_ = least; }
  [[nodiscard]] bool Enabled(LogLevel level) const { return level >= least_; }
  void Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

  [[nodiscard]] std::uint64_t dropped_lines() const;
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  void Put(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

  class Sink;
  std::atomic<LogLevel> least_;
  std::unique_ptr<Sink> sink_;
};

// LineWriter: writes lines to a file descriptor on its own thread, so that a full pipe blocks no
// other thread. Lines that do not fit into its memory are dropped and counted.
//
// Any thread may call it.

class LineWriter {
 public:
  // Holds at most `most_bytes`. Throws what std::thread throws.
  LineWriter(int descriptor, std::size_t most_bytes);
  // Writes the lines that it holds, for at most kFarewell.
  ~LineWriter();

  // Never blocks. The line ends with its line feed.
  void Write(std::string line) BERTH_EXCLUDES(mutex_);

  // The number of lines dropped since the last call; 0 while the memory is more than half full, so
  // that a line about it is not dropped too.
  std::uint64_t TakeLost() BERTH_EXCLUDES(mutex_);

  [[nodiscard]] std::uint64_t dropped() const BERTH_EXCLUDES(mutex_);  // in total
  [[nodiscard]] std::size_t held_bytes() const BERTH_EXCLUDES(mutex_);

 private:
  void Run() BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool MustEnd() const BERTH_EXCLUDES(mutex_);

  const int descriptor_;
  const std::size_t most_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<std::string> lines_ BERTH_GUARDED_BY(mutex_);
  std::size_t held_bytes_ BERTH_GUARDED_BY(mutex_) = 0;  // including the line being written
  std::uint64_t lost_ BERTH_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ BERTH_GUARDED_BY(mutex_) = 0;
  bool ending_ BERTH_GUARDED_BY(mutex_) = false;
  Instant end_ BERTH_GUARDED_BY(mutex_) = Instant::max();  // when it gives up
  std::thread thread_;
};

// Writes for at most `limit`. True if all of the text was written.
bool WriteWithin(int descriptor, std::string_view text, Duration limit);

}  // namespace berth
