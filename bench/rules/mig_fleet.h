// SPDX-License-Identifier: Apache-2.0
//
// MigFleet: many GPUs of one product, grouped by their state.
//
// GPUs in one state are alike, so that a decision looks at each state once, however many GPUs there
// are: of 40,000 GPUs no more than a few hundred differ. One thread at a time.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "topology/mig/mig_states.h"

namespace berth::replay {

class MigFleet {
 public:
  // All GPUs empty; the last node may have fewer. Requires: gpus >= 1, gpus_per_node >= 1, the
  // states live longer.
  MigFleet(const MigStates& states, int gpus, int gpus_per_node);

  [[nodiscard]] const MigStates& states() const { return *states_; }
  [[nodiscard]] int gpus() const { return static_cast<int>(state_.size()); }
  [[nodiscard]] int state(int gpu) const { return state_[static_cast<std::size_t>(gpu)]; }

  // The states that some GPU is in, ascending.
  [[nodiscard]] std::span<const int> present() const { return present_; }
  // The GPUs in a state, ascending.
  [[nodiscard]] const std::set<int>& GpusIn(int state) const {
    return gpus_in_[static_cast<std::size_t>(state)];
  }

  [[nodiscard]] int nodes() const { return static_cast<int>(instances_.size()); }
  // The GPUs of a node are first_gpu(node) up to, and without, first_gpu(node + 1).
  [[nodiscard]] int first_gpu(int node) const;
  [[nodiscard]] int instances(int node) const { return instances_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] int free_units(int node) const { return free_[static_cast<std::size_t>(node)]; }

  // Requires: the placement fits; it is there.
  void Place(int gpu, int placement);
  void Remove(int gpu, int placement);

 private:
  void Move(int gpu, int to);

  const MigStates* states_;
  int gpus_per_node_;
  std::vector<int> state_;              // by GPU
  std::vector<std::set<int>> gpus_in_;  // by state
  std::vector<int> present_;
  std::vector<int> instances_, free_;  // by node
};

}  // namespace berth::replay
