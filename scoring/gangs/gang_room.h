// SPDX-License-Identifier: Apache-2.0
//
// GangRoom: how many pods of a shape fit each node alone, kept from plan to plan.
//
// A memo of PodsThatFit: after the first question about a shape only the nodes that are not the
// same objects are looked at. Any thread may call it.
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "base/mutex.h"
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
  struct Entry {
    RequestShape shape;
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<int> room;
  };
  Mutex mutex_;
  std::list<Entry> entries_ BERTH_GUARDED_BY(mutex_);  // asked for last first
};

}  // namespace berth
