// SPDX-License-Identifier: Apache-2.0
//
// LineWriter: writes lines to a file descriptor on its own thread, so that a full pipe blocks no
// other thread. Lines that do not fit into its memory are dropped and counted.
//
// Any thread may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"

namespace berth {

class LineWriter {
 public:
  // Holds at most `most_bytes`. Throws what std::thread throws.
  LineWriter(int descriptor, std::size_t most_bytes);
  // Writes the lines that it holds, for at most kFarewell.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

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
