// SPDX-License-Identifier: Apache-2.0
//
// GpuUse: what pods hold, counted by their namespace or workload class. Pure functions of a
// snapshot. Pods that are only planned hold nothing yet.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/node_constraints.h"
#include "cluster/values/pod_request.h"

namespace berth {

// In GPUs; a share and a GPU replica are their part of one. GPUs of a pod that are not known count
// as it asks. places: of its node.
double GpusHeld(const PodRecord& record, const GpuPlaces& places);

// MIG devices by profile. Devices of a pod that are not known count as it asks.
std::vector<std::pair<MigProfile, std::int64_t>> MigHeld(const PodRecord& record);

struct GpuUse {
  double gpus = 0;  // GpusHeld
  std::int64_t mig_devices = 0;
  std::int64_t pods = 0;  // that ask for GPUs
};

enum class Owner { kNamespace, kWorkloadClass };

struct OwnerUse {
  std::string name;
  GpuUse use;
  std::int64_t nodes = 0;  // that have such pods
};
// Those with the most GPUs first, equal ones by name. Pods without a class are of no class.
std::vector<OwnerUse> UseByOwner(const Snapshot& snapshot, Owner by);

struct NodeUse {
  std::string node;
  GpuUse use;
};
// What the pods of that namespace or class hold, by node, in the order of the nodes' names.
std::vector<NodeUse> UseByNode(const Snapshot& snapshot, Owner by, std::string_view name);

// GpuHolders: who has the GPUs that a gang waits for. A pure function of a snapshot.
struct GpuHolder {
  std::string pod;  // "namespace/name"
  std::string node;
  int gpus = 0;  // that it has, wholly or in part; MIG devices count as one each
};

struct GpuHolders {
  std::vector<GpuHolder> most;  // those that have most, the first `most` of them
  std::size_t pods = 0;         // in all
};

// Of the nodes that are open to the pod (node_access.h) and could take it if others ended, without
// the pods of its own gang.
GpuHolders HoldersFor(const Snapshot& snapshot, const PodRequest& pod, std::size_t most);

// ModelSummary: per GPU model what the cluster has, what is free, and how much of that is in one
// piece. A pure function of a snapshot.

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
  int places = 0, free_places = 0;  // on GPUs and MIG devices with several users
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
