// SPDX-License-Identifier: Apache-2.0
//
// OpenCount: how many connections are open, and a wait for there being none. Any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "base/clock.h"

namespace berth::http {

// std::mutex rather than berth::Mutex, because the wait needs a time limit. The lock is taken once
// at the beginning and once at the end of a connection, never per request.
class OpenCount {
 public:
  void Increment() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++count_;
  }

  void Decrement() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0) {
      none_.notify_all();
    }
  }

  [[nodiscard]] std::size_t count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return count_;
  }

  // True as soon as there is none; false when `limit` is over.
  bool WaitForNone(Duration limit) {
    std::unique_lock<std::mutex> lock(mutex_);
    return none_.wait_until(lock, std::chrono::steady_clock::now() + limit,
                            [this] { return count_ == 0; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};

}  // namespace berth::http
