// SPDX-License-Identifier: Apache-2.0
//
// RecentBinds: the last pods that got a node, for people who look on.
//
// Memory is bounded: kCapacity binds, and what filter said of the last kMostAsked pods without one.
// Any thread may call it; under its lock there are a map and a short list.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/recent.h"
#include "server/extender/ports.h"
#include "server/why/live_json.h"

namespace berth {

class RecentBinds final : public DecisionSink {
 public:
  static constexpr std::size_t kCapacity = 50, kMostAsked = 4096;

  // The clock outlives the object.
  explicit RecentBinds(const Clock& clock) : clock_(clock) {}

  void Record(const Decision& decision) override BERTH_EXCLUDES(mutex_);

  // Newest first.
  [[nodiscard]] std::vector<wire::BoundRow> All() const BERTH_EXCLUDES(mutex_);

 private:
  struct Asked {
    std::size_t candidates = 0, fitting = 0;
  };

  const Clock& clock_;
  mutable Mutex mutex_;
  std::deque<wire::BoundRow> rows_ BERTH_GUARDED_BY(mutex_);
  Recent<std::string, Asked> asked_ BERTH_GUARDED_BY(mutex_){kMostAsked};  // by UID
};

}  // namespace berth
