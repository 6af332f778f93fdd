// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/mig_fleet.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace berth::replay {

MigFleet::MigFleet(const MigStates& states, int gpus, int gpus_per_node)
    : states_(&states),
      gpus_per_node_(gpus_per_node),
      state_(static_cast<std::size_t>(gpus), 0),
      gpus_in_(static_cast<std::size_t>(states.size())),
      present_{0} {
  BERTH_CHECK(gpus >= 1 && gpus_per_node >= 1);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    gpus_in_[0].insert(gpus_in_[0].end(), gpu);
    if (gpu % gpus_per_node == 0) {
      instances_.push_back(0);
      free_.push_back(0);
    }
    free_.back() += states.product().memory_units();
  }
}

int MigFleet::first_gpu(int node) const { return std::min(node * gpus_per_node_, gpus()); }

void MigFleet::Place(int gpu, int placement) {
  const int to = states_->With(state(gpu), placement);
  BERTH_CHECK(to != MigStates::kNone);
  const auto node = static_cast<std::size_t>(gpu / gpus_per_node_);
  const MigPlacement& place = states_->product().placement(placement);
  ++instances_[node];
  free_[node] -= std::popcount(place.units);
  Move(gpu, to);
}

void MigFleet::Remove(int gpu, int placement) {
  const int to = states_->Without(state(gpu), placement);
  BERTH_CHECK(to != MigStates::kNone);
  const auto node = static_cast<std::size_t>(gpu / gpus_per_node_);
  const MigPlacement& place = states_->product().placement(placement);
  --instances_[node];
  free_[node] += std::popcount(place.units);
  Move(gpu, to);
}

void MigFleet::Move(int gpu, int to) {
  const int from = std::exchange(state_[static_cast<std::size_t>(gpu)], to);
  std::set<int>& left = gpus_in_[static_cast<std::size_t>(from)];
  std::set<int>& joined = gpus_in_[static_cast<std::size_t>(to)];
  if (joined.empty()) present_.insert(std::ranges::lower_bound(present_, to), to);
  joined.insert(left.extract(gpu));
  if (left.empty()) present_.erase(std::ranges::lower_bound(present_, from));
}

}  // namespace berth::replay
