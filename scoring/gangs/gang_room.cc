// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_room.h"

#include <algorithm>

#include "scoring/groups/pod_room.h"

namespace berth {

std::vector<int> GangRoom::Of(const std::shared_ptr<const Snapshot>& snapshot,
                              const RequestShape& shape) {
  const MutexLock lock(mutex_);
  auto entry = std::ranges::find(entries_, shape, &Entry::shape);
  if (entry == entries_.end()) {
    if (entries_.size() == kMaxShapes) entries_.pop_back();
    entry = entries_.insert(entries_.begin(), Entry{shape, nullptr, {}});
  }
  entries_.splice(entries_.begin(), entries_, entry);
  const auto look_at = [&](NodeIndex i) { entry->room[i] = PodsThatFit(snapshot->node(i), shape); };
  if (entry->snapshot != nullptr && snapshot->SameNodes(*entry->snapshot)) {
    snapshot->ForEachDifference(*entry->snapshot, look_at);
  } else {
    entry->room.resize(snapshot->size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) look_at(i);
  }
  entry->snapshot = snapshot;
  return entry->room;
}

}  // namespace berth
