// SPDX-License-Identifier: Apache-2.0
//
// CallWatch: the calls that are under way, each with the time by which it must have ended. While
// one is late the worker gives no heartbeat, and the guard ends it.
#pragma once

#include <set>

#include "base/clock.h"
#include "base/mutex.h"

namespace berth::node {

// Any thread may call it.
class CallWatch {
 public:
  // Counts from its making to its end.
  class Call {
   public:
    Call(CallWatch& watch, Duration limit) : watch_(watch), end_(watch.Begin(limit)) {}
    ~Call() { watch_.End(end_); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    CallWatch& watch_;
    const std::multiset<Instant>::const_iterator end_;
  };

  // Whether none is late by more than `slack`.
  [[nodiscard]] bool InTime(Duration slack) const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool Idle() const BERTH_EXCLUDES(mutex_);

 private:
  std::multiset<Instant>::const_iterator Begin(Duration limit) BERTH_EXCLUDES(mutex_);
  void End(std::multiset<Instant>::const_iterator call) BERTH_EXCLUDES(mutex_);

  mutable Mutex mutex_;
  std::multiset<Instant> ends_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::node
