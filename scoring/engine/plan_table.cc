// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/plan_table.h"

#include "scoring/devices/device_picker.h"
#include "scoring/priority.h"

namespace berth {

void PlanTable::Follow(const std::shared_ptr<const Snapshot>& snapshot) {
  table_.Refresh(snapshot);
  snapshot_ = snapshot;
}

std::vector<std::int64_t> PlanTable::Ranks(std::span<const NodeIndex> candidates) {
  const std::vector<int> totals = table_.takes_wishes()
                                      ? table_.Totals(candidates, prices_, shape_.nodes.wishes)
                                      : table_.Totals(candidates, prices_);
  const std::vector<int> emptiness = table_.Emptiness(candidates);
  std::vector<std::int64_t> ranks(candidates.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ranks[i] = LevelRank(totals[i], emptiness.empty() ? 0 : emptiness[i]);
  }
  return ranks;
}

Placement PlanTable::PlaceOn(NodeIndex node) {
  return PlacementFor(snapshot_->node(node), shape_, table_.choice(node, prices_));
}

}  // namespace berth
