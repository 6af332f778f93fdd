// SPDX-License-Identifier: Apache-2.0
//
// BodyQueue: one answer on its way from the threads that receive it to the one that asked for it.
// It holds little: the receiver pauses until the reader has taken what is there.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/padded_text.h"

namespace berth::kube {

// Any thread may call any function; Wait and Close are for the one that asked.
class BodyQueue {
 public:
  // When who asked is woken, which costs more than to receive a few kilobytes.
  enum class Wake {
    kAlways,    // whenever something has come
    kSeldom,    // when the first bytes have come, and then when half of `limit` waits
    kAtTheEnd,  // when all has come, or as much as may wait
  };

  BodyQueue(std::size_t limit, Wake wake) : limit_(limit), wake_(wake) {}

  // The receiving side. Head comes once, End once and last. Put takes the bytes always; when it
  // returns false nothing more may be put until `resume` was called (once, maybe before Put
  // returns, on the thread of Wait or Close).
  void Head(int status, std::optional<Duration> retry_after) BERTH_EXCLUDES(mutex_);
  bool Put(std::string_view bytes, std::function<void()> resume) BERTH_EXCLUDES(mutex_);
  void End(std::string problem) BERTH_EXCLUDES(mutex_);  // "" = complete

  // Makes Wait return kStopped from now on.
  void Stop() BERTH_EXCLUDES(mutex_);

  enum class Event { kBytes, kEnd, kStopped, kTimeout };

  // Waits until bytes are there and the head is known, or there is nothing more to wait for. What
  // has come until `limit` is returned however little it is.
  Event Wait(std::string& bytes, Instant limit) BERTH_EXCLUDES(mutex_);

  // What comes from now on is thrown away, without a pause.
  void Close() BERTH_EXCLUDES(mutex_);

  // The head; status 0 = not known yet.
  [[nodiscard]] int status() BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Duration> retry_after() BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::string problem() BERTH_EXCLUDES(mutex_);  // of End

 private:
  // For how many bytes it pays to wake who asked.
  [[nodiscard]] std::size_t worth_waking() const BERTH_REQUIRES(mutex_);

  const std::size_t limit_;  // bytes that wait before Put asks for a pause
  const Wake wake_;
  Mutex mutex_;
  CondVar changed_;
  int status_ BERTH_GUARDED_BY(mutex_) = 0;
  std::optional<Duration> retry_after_ BERTH_GUARDED_BY(mutex_);
  std::string waiting_ BERTH_GUARDED_BY(mutex_);
  bool taken_ BERTH_GUARDED_BY(mutex_) = false;  // the first bytes
  std::function<void()> resume_ BERTH_GUARDED_BY(mutex_);
  bool ended_ BERTH_GUARDED_BY(mutex_) = false;
  std::string problem_ BERTH_GUARDED_BY(mutex_);
  bool stopped_ BERTH_GUARDED_BY(mutex_) = false;
  bool closed_ BERTH_GUARDED_BY(mutex_) = false;
};

// LineSplitter: pieces of any size -> whole lines.

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  // Calls take(const PaddedText& line) for each line that the bytes complete, without its end,
  // until it returns false; empty lines are left out. False: a line is too long, or take returned
  // false; the rest of the bytes is lost then.
  template <class Take>
  bool Add(std::string_view bytes, Take take) {
    while (!bytes.empty()) {
      const std::size_t end = bytes.find('\n');
      const std::string_view part = bytes.substr(0, end);
      if (line_.size() + part.size() > max_bytes_) {
        too_long_ = true;
        return false;
      }
      line_.Append(part);
      if (end == std::string_view::npos) return true;
      bytes.remove_prefix(end + 1);
      const bool go_on = line_.empty() || take(std::as_const(line_));
      line_.Clear(kKeptBytes);
      if (!go_on) return false;
    }
    return true;
  }

  [[nodiscard]] bool too_long() const { return too_long_; }
  [[nodiscard]] bool mid_line() const { return !line_.empty(); }

 private:
  static constexpr std::size_t kKeptBytes = std::size_t{1} << 20;  // of a rare huge line no more

  const std::size_t max_bytes_;
  PaddedText line_;
  bool too_long_ = false;
};

}  // namespace berth::kube
