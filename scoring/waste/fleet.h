// SPDX-License-Identifier: Apache-2.0
//
// Fleet: the GPU nodes of a cluster, by kind. A value.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/waste/gpu_state.h"
#include "scoring/waste/request_mix.h"

namespace berth {

struct NodeKind {
  std::string gpu_model;
  GpuState state;
  int nodes = 0;
};

using Fleet = std::vector<NodeKind>;

// All of them as if empty, in an order that depends on the kinds alone.
Fleet FleetOf(const Snapshot& snapshot);

// At least `nodes` of them (all, where there are fewer) and less than twice as many, each as it is
// now, in even steps by name.
Fleet SampleOf(const Snapshot& snapshot, std::size_t nodes);

// The part of its healthy GPUs that is in use, 0..1; 0 without GPUs.
double UsedOf(const Snapshot& snapshot, const CardWorth& worth = {});

// The part of a learned mix that can be placed on a fleet. Pods may name any GPU model; a model
// that no node has means nothing, and everything built from the mix would pay for it.

// The number of kinds of nodes that are distinguished: simulations of a fleet repeat for each of
// them. If a model has more kinds, similar kinds represent each other; if there are more models,
// those with the most nodes count.
constexpr std::size_t kMostKinds = 256, kMostFleetModels = 64;

using FleetModels = std::set<std::string, std::less<>>;
FleetModels ModelsOf(const Fleet& fleet);

// The classes restricted to these models; classes that are then alike are merged. A class that
// names models, but none of these, is left out: its pods can be placed nowhere. Weights sum to 1
// again.
RequestMix OnFleet(RequestMix mix, const FleetModels& models);

// What compute and memory are worth to the mix. Memory is not counted if the fleet's is unknown.
CardWorth WorthOf(const RequestMix& mix, const Fleet& fleet);

}  // namespace berth
