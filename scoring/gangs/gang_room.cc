// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_room.h"

#include <utility>

#include "scoring/groups/group_domains.h"

namespace berth {

std::vector<int> GangRoom::Of(const std::shared_ptr<const Snapshot>& snapshot,
                              const RequestShape& shape) {
  Room room;  // a copy: nodes are looked at without the lock
  {
    const MutexLock lock(mutex_);
    if (const Room* const known = rooms_.Touch(shape)) room = *known;
  }
  const auto look_at = [&](NodeIndex i) { room.pods[i] = PodsThatFit(snapshot->node(i), shape); };
  if (room.snapshot != nullptr && snapshot->SameNodes(*room.snapshot)) {
    snapshot->ForEachDifference(*room.snapshot, look_at);
  } else {
    room.pods.resize(snapshot->size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) look_at(i);
  }
  room.snapshot = snapshot;
  const MutexLock lock(mutex_);
  return rooms_.Put(shape, std::move(room)).pods;
}

}  // namespace berth
