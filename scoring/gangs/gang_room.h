// SPDX-License-Identifier: Apache-2.0
//
// GangRoom: how many pods of a shape fit each node alone, kept from plan to plan.
//
// A memo of PodsThatFit: after the first question about a shape only the nodes that are not the
// same objects are looked at. Any thread may call it.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/state/snapshot.h"

namespace berth {

class GangRoom {
 public:
  // So many shapes are kept; the one not asked for longest goes first.
  static constexpr std::size_t kMaxShapes = 64;

  // Per node of the snapshot.
  [[nodiscard]] std::vector<int> Of(const std::shared_ptr<const Snapshot>& snapshot,
                                    const RequestShape& shape) BERTH_EXCLUDES(mutex_);

 private:
  struct Room {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<int> pods;  // per node
  };
  Mutex mutex_;
  Recent<RequestShape, Room> rooms_ BERTH_GUARDED_BY(mutex_){kMaxShapes};
};

}  // namespace berth
