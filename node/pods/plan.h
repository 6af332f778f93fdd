// SPDX-License-Identifier: Apache-2.0
//
// Plan: what berth.dev/devices says of one container, as names of a device plugin. It is a
// preference among the devices that the kubelet offers, no more.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/facts/node_facts.h"

namespace berth::node {

inline constexpr std::size_t kMostPlanBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostPlannedDevices = 256;  // of a container

struct PlannedGpu {
  int index = 0;
  std::string uuid;  // "" = not known
  int milli = 1000;  // thousandths of the GPU
};

struct PlannedMig {
  int gpu = -1;  // index; -1: any
  std::string profile;
  int start = -1;  // -1: any
};

struct ContainerPlan {
  std::vector<PlannedGpu> gpus;
  std::vector<PlannedMig> mig;
  std::vector<PlannedGpu> places;  // replicas of GPUs: of one as often as it is there
};

struct PodPlan {
  std::map<std::string, ContainerPlan> containers;  // by name

  // All containers together, in the order of their names.
  [[nodiscard]] ContainerPlan Whole() const;
};

// Error: kInvalidArgument where it is no plan, or one for another node.
Result<PodPlan> ParsePlan(std::string_view annotation, std::string_view node);

// The planned devices that are among `available`, each once. A GPU goes by its UUID or, where that
// is not known, by its index in the facts; of a GPU with replicas any free one is taken.
std::vector<std::string> DevicesOf(const ContainerPlan& plan,
                                   const std::vector<std::string>& available,
                                   const NodeFacts& facts);

}  // namespace berth::node
