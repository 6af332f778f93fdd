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

#include "base/clock.h"
#include "base/mutex.h"

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

}  // namespace berth::kube
