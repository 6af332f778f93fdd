// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/engine_placer.h"

#include "base/check.h"

namespace berth::replay {

EnginePlacer::EnginePlacer(Engine& engine, const std::vector<NodeSpec>& nodes, std::uint64_t seed)
    : engine_(engine), ties_(engine.profile(), seed) {
  std::vector<ClusterEvent> events;
  for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
  BERTH_CHECK(state_.Apply(events).has_value());
}

Result<bool> EnginePlacer::Place(const PodRequest& pod) {
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  const std::vector<NodeIndex> best = engine_.Best(snapshot, pod.shape);
  if (best.empty()) return false;
  const auto placement = engine_.PlaceOn(snapshot, pod.shape, best[ties_.Pick(best.size())]);
  BERTH_CHECK(placement.has_value());
  BERTH_TRY_STATUS(state_.Reserve(pod, *placement, Instant::max()));
  BERTH_TRY_STATUS(state_.Confirm(pod.id.uid));
  return true;
}

}  // namespace berth::replay
