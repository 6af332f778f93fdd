// SPDX-License-Identifier: Apache-2.0
//
// GpuUse: what pods hold, counted by their namespace or workload class. Pure functions of a
// snapshot. Pods that are only planned hold nothing yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/state/snapshot.h"
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

}  // namespace berth
