// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/power_meter.h"

#include "bench/power/power.h"

namespace berth::replay {

std::int64_t PowerMeter::Watts(const std::shared_ptr<const Snapshot>& cluster) {
  const auto look_at = [&](NodeIndex node) {
    const int watts = EstimatedWatts(cluster->node(node)).value_or(0);
    sum_ += watts - of_node_[node];
    of_node_[node] = watts;
  };
  if (last_ == nullptr) {
    of_node_.assign(cluster->size(), 0);
    for (NodeIndex node = 0; node < cluster->size(); ++node) look_at(node);
  } else if (cluster != last_) {
    cluster->ForEachDifference(*last_, look_at);
  }
  last_ = cluster;
  return sum_;
}

std::int64_t GpusWithoutWatts(const Snapshot& cluster) {
  std::int64_t gpus = 0;
  for (NodeIndex node = 0; node < cluster.size(); ++node) {
    if (EstimatedWatts(cluster.node(node))) continue;
    const NodeSpec& spec = cluster.node(node).spec();
    gpus += static_cast<std::int64_t>(spec.gpus.size()) + spec.places.count;
  }
  return gpus;
}

}  // namespace berth::replay
