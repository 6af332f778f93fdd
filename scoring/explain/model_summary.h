// SPDX-License-Identifier: Apache-2.0
//
// ModelSummary: per GPU model what the cluster has, what is free, and how much of that is in one
// piece. A pure function of a snapshot.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/version_needs.h"

namespace berth {

struct ModelSummary {
  static constexpr std::array<int, 4> kSizes = {1, 2, 4, 8};

  std::string model;  // "" = not known
  int nodes = 0;
  int gpus = 0;                      // whole GPUs and those that are shared in parts, sick ones too
  int out_of_order = 0;              // of these, those of nodes whose GPUs are out of order too
  int closed = 0;                    // of these, healthy ones on nodes not ready or cordoned
  std::int64_t allocated_milli = 0;  // thousandths of GPUs that pods and claims hold
  int idle = 0;                      // GPUs that can be given whole now
  int largest_hole = 0;              // the most of them on one node...
  std::string hole_node;             // ...the first such node by name; "" where nothing is idle
  // How many pods of kSizes[i] GPUs, and no other needs, fit one after the other.
  std::array<std::int64_t, kSizes.size()> fit{};
  int places = 0, free_places = 0;  // on GPUs with several users
  int shared_gpus = 0;              // so many GPUs, beside `gpus`, where the nodes say it
  int mig_gpus = 0;                 // partitioned GPUs
  // How many of the nodes have which driver, where they say it: the newest first.
  std::vector<std::pair<Version, int>> drivers;
};

// Sorted by model; nodes without GPUs are left out. Nodes that are not ready or are cordoned have
// GPUs and take no pod.
std::vector<ModelSummary> SummarizeModels(const Snapshot& snapshot);

}  // namespace berth
