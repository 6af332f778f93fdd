// SPDX-License-Identifier: Apache-2.0
//
// RoomOutlook: how many more idle nodes few moves would make (scoring/room/room_within.h), for
// /metrics. It is found anew once in kEvery, within kTime, on a thread that asks then; others get
// what was found last.
#pragma once

#include <chrono>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "scoring/room/room_within.h"
#include "server/extender/extender.h"

namespace berth {

// Any thread may call it.
class RoomOutlook {
 public:
  static constexpr Duration kEvery = std::chrono::minutes(1);
  static constexpr Duration kTime = std::chrono::milliseconds(100);

  explicit RoomOutlook(const Clock& clock) : clock_(clock) {}

  [[nodiscard]] std::vector<RoomWithin> Of(const Extender& extender) BERTH_EXCLUDES(mutex_);

 private:
  const Clock& clock_;
  Mutex mutex_;
  Instant next_ BERTH_GUARDED_BY(mutex_){};
  std::vector<RoomWithin> found_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
