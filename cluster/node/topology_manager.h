// SPDX-License-Identifier: Apache-2.0
//
// TopologyManager: how the kubelet of a node keeps the devices of a container together by NUMA
// node, and which GPUs it therefore gives. A model of Kubernetes 1.26 to 1.37 (pkg/kubelet/cm,
// topologymanager and devicemanager/topology_hints.go), checked against one that follows the source
// line by line (test/property/topology_manager_property_test.cc).
//
// A container that asks for n GPUs gets them from the smallest set of NUMA nodes that has n GPUs
// free; of several as small the one with the lowest number, a NUMA node counting as a bit of it.
//
//   best-effort       always
//   restricted        only if n GPUs would need as many NUMA nodes on the empty node
//   single-numa-node  only if one NUMA node is enough
//
// Otherwise the kubelet refuses the pod (TopologyAffinityError). GPUs of an init container that has
// ended are given again first, and their NUMA nodes are among those of the set. With the scope
// "pod" all containers together count as one.
//
// Not modelled: the CPU manager and the memory manager. With their policy "static" a pod of the
// class Guaranteed may get GPUs of another NUMA node, or be refused, since its CPUs are there. Nor
// the policy option prefer-closest-numa-nodes, and devices other than whole GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/gpu_mask.h"

namespace berth {

enum class TopologyPolicy : std::uint8_t { kNone, kBestEffort, kRestricted, kSingleNumaNode };

struct TopologyManager {
  // Kubelets refuse to start with a policy on machines with more, unless an option allows it.
  static constexpr std::size_t kMostNumaNodes = 8;

  TopologyPolicy policy = TopologyPolicy::kNone;
  bool by_pod = false;  // the scope
  friend bool operator==(const TopologyManager&, const TopologyManager&) = default;

  // The GPUs from which a container that asks for `count` gets those that it does not reuse; 0:
  // it is refused, or reuses all that it needs. numa_nodes: the GPUs of each, free or not, by its
  // number. reused: GPUs that are not free, and that the pod's init containers have left.
  // Requires: policy is not kNone, at most kMostNumaNodes, count > 0.
  struct Offer {
    bool admits = false;
    GpuMask gpus = 0;  // of `free`
  };
  [[nodiscard]] Offer OfferTo(std::span<const GpuMask> numa_nodes, GpuMask free, GpuMask reused,
                              int count) const;
};

// "single-numa-node"; "none".
std::string_view NameOf(TopologyPolicy policy);
std::optional<TopologyPolicy> ParseTopologyPolicy(std::string_view name);

// First fit: which GPUs kube-scheduler gives a pod that asks for an extended resource of a
// DeviceClass (KEP-5004). Its allocator cannot be told which: it takes the first that are free, by
// pool, by slice and as their driver published them. So Berth chooses the node by what that will
// be. Pure functions.

// GPUs of a node that pods get by the name of one resource.
struct GpusByName {
  std::string resource;    // "example.com/gpu", "deviceclass.resource.kubernetes.io/CLASS"
  std::vector<int> order;  // indices of them, each once, as kube-scheduler tries them
  friend bool operator==(const GpusByName&, const GpusByName&) = default;
};

// The entry of that resource, of an ask that names none the first; nullptr: there is none.
const GpusByName* FindByName(std::span<const GpusByName> names, std::string_view resource);

// All GPUs of the entry.
GpuMask GpusOf(const GpusByName& name);

// The first `count` of them that are free; 0: there are not so many.
GpuMask FirstFree(const GpusByName& name, GpuMask free, int count);

}  // namespace berth
