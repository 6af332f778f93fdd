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

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/node_constraints.h"

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
// GPUs and take no pod. plans_hold: GPUs that are planned for a pod are no longer idle.
std::vector<ModelSummary> SummarizeModels(const Snapshot& snapshot, bool plans_hold = true);

// GpuCells: what each GPU of a node is to someone who looks at the whole cluster, a character per
// GPU, so that all GPUs of a large cluster are a short text.
//
//   '.'        idle, and can be given now
//   'u'        idle, and of no use: the node takes no pods, its GPUs are another scheduler's, or it
//              has less CPU or memory left than any pod with a GPU asks for
//   'x'        out of order
//   '#'        held whole, by a pod or a claim
//   'g'        held whole, by a pod of a group
//   'h'        held for a pod of a group that has not begun
//   '1'..'9'   held in parts: about so many tenths; 'a': wholly held in parts
//
// After the GPUs that are given whole come the partitioned ones, in brackets, a character per unit
// of memory: 'T' and 't' (the following units) a device that is held, 'F' and 'f' one that is free,
// '.' nothing is cut there. "[TtttFf.F]" is a 1/2 of the GPU at 0, a 1/4 at 4 and a 1/8 at 7.

// For a picture: a pod with a GPU asks for no less than this.
inline constexpr std::int64_t kLeastCpuMilli = 1000;
inline constexpr std::int64_t kLeastMemoryBytes = std::int64_t{1} << 30;

// Whether pods with GPUs may go to the node: it is ready and not cordoned, and its kubelet takes
// them.
bool TakesPods(const NodeSpec& spec);

// Whether idle GPUs of the node are of no use to anybody at present.
bool IsUseless(const Node& node);

std::string GpuCells(const Node& node);

}  // namespace berth
