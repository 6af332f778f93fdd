// SPDX-License-Identifier: Apache-2.0
//
// SliceGpus: the whole GPUs that a driver offers on a node by ResourceSlices.
//
// A node whose device plugin offers GPUs is judged by these, as kube-scheduler does by the node's
// allocatable resources. On any other one they are the node's GPUs.
#pragma once

#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/node/topology_manager.h"
#include "topology/links/gpu_links.h"

namespace berth {

struct SliceGpus {
  std::string model = {};  // as GPU Feature Discovery writes it into a label
  std::vector<GpuSpec> gpus =
      {};               // all with UUIDs; not healthy: no pod without tolerations gets it
  GpuLinks links = {};  // of the product catalogue; unknown: it does not have the product
  // The resources by which pods can ask for them. None: claims alone get them.
  std::vector<GpusByName> names = {};
  std::map<std::string, int> of_drivers = {};  // GpusBeside
  friend bool operator==(const SliceGpus&, const SliceGpus&) = default;
};

// Whether the node offers GPUs itself, by a device plugin or an agent.
bool OffersOwnGpus(const NodeSpec& spec);

// The node with these GPUs in place of those that are not offered. Their order is that of
// `offered`, or that of NodeSpec::beside if it names the same ones: the links are then those that
// the node says.
NodeSpec WithSliceGpus(NodeSpec spec, const SliceGpus& offered);

}  // namespace berth
