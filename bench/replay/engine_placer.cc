// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/engine_placer.h"

#include "base/check.h"

namespace berth::replay {

EnginePlacer::EnginePlacer(Engine& engine, const std::vector<NodeSpec>& nodes, std::uint64_t seed,
                           LearnedMix* mix)
    : engine_(engine), mix_(mix), ties_(*engine.profile(), seed) {
  std::vector<ClusterEvent> events;
  for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
  BERTH_CHECK(state_.Apply(events).has_value());
}

Result<bool> EnginePlacer::Place(const PodRequest& pod) {
  Hear(pod);
  BERTH_TRY(const std::optional<NodeIndex> node, Put(pod));
  return node.has_value();
}

void EnginePlacer::Hear(const PodRequest& pod) {
  if (mix_ == nullptr) return;
  mix_->Observe(pod.shape);
  engine_.Follow(state_.Current());
}

Result<std::optional<NodeIndex>> EnginePlacer::Put(const PodRequest& pod) {
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  const std::vector<NodeIndex> best = engine_.Best(snapshot, pod.shape);
  if (best.empty()) return std::nullopt;
  const NodeIndex node = best[ties_.Pick(best.size())];
  const auto placement = engine_.PlaceOn(snapshot, pod.shape, node);
  BERTH_CHECK(placement.has_value());
  BERTH_TRY_STATUS(state_.Reserve(pod, *placement, Instant::max()));
  BERTH_TRY_STATUS(state_.Confirm(pod.id.uid));
  return node;
}

void EnginePlacer::Remove(const std::string& uid) {
  const ClusterEvent gone = PodGone{uid};
  BERTH_CHECK(state_.Apply({&gone, 1}).has_value());
}

}  // namespace berth::replay
