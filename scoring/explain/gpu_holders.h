// SPDX-License-Identifier: Apache-2.0
//
// GpuHolders: who has the GPUs that a gang waits for.
//
// A pure function of a snapshot.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct GpuHolder {
  std::string pod;  // "namespace/name"
  std::string node;
  int gpus = 0;  // that it has, wholly or in part; MIG devices count as one each
};

struct GpuHolders {
  std::vector<GpuHolder> most;  // those that have most, the first `most` of them
  std::size_t pods = 0;         // in all
};

// Of the nodes that are open to the pod (node_access.h), without the pods of its own gang.
GpuHolders HoldersFor(const Snapshot& snapshot, const PodRequest& pod, std::size_t most);

}  // namespace berth
