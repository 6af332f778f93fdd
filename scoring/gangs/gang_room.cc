// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_room.h"

#include "scoring/groups/pod_room.h"

namespace berth {

std::vector<int> GangRoom::Of(const std::shared_ptr<const Snapshot>& snapshot,
                              const RequestShape& shape) {
  const MutexLock lock(mutex_);
  Room* const known = rooms_.Touch(shape);
  Room& room = known != nullptr ? *known : rooms_.Put(shape, {});
  const auto look_at = [&](NodeIndex i) { room.pods[i] = PodsThatFit(snapshot->node(i), shape); };
  if (room.snapshot != nullptr && snapshot->SameNodes(*room.snapshot)) {
    snapshot->ForEachDifference(*room.snapshot, look_at);
  } else {
    room.pods.resize(snapshot->size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) look_at(i);
  }
  room.snapshot = snapshot;
  return room.pods;
}

}  // namespace berth
