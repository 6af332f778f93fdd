// SPDX-License-Identifier: Apache-2.0
//
// Need: one thing that a pod asks for and could do without. The same judgement is asked about the
// pod without it, to find out what keeps the pod from a node.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth {

// The cheapest to give up first.
enum class Need : std::uint8_t {
  kLink,       // berth.dev/link: required
  kNuma,       // berth.dev/numa: required
  kBandwidth,  // berth.dev/min-bandwidth-gbps
  kLinks,      // all of these together
  kDomain,     // a required topology domain
  kIsolation,  // berth.dev/isolation
  kGpuMemory,  // berth.dev/min-gpu-memory-gib
  kTaints,     // that it does not tolerate
  kSelection,  // node selector and required affinity
  kAccess,     // taints and these together
  kModel,      // berth.dev/gpu-model
  kTraits,     // that its workload class requires or forbids
  kGpuUuids,   // GPUs by their UUIDs
  kResource,   // the vendor's resource
  kCpu,        // as much CPU
  kMemory,     // as much memory
  kDisk,       // as much ephemeral storage
  kCount,
};
inline constexpr auto kNeeds = [] {
  std::array<Need, static_cast<std::size_t>(Need::kCount)> needs{};
  for (std::size_t i = 0; i < needs.size(); ++i) needs[i] = static_cast<Need>(i);
  return needs;
}();

// "link", "min_bandwidth": for programs.
std::string_view CodeOf(Need need);

// The pod without that need; nullopt: it does not have it.
std::optional<PodRequest> Without(const PodRequest& pod, Need need);

// What to change so that the pod fits that node, with the node's numbers: "with berth.dev/link:
// preferred", "with 2 GPUs instead of 4". "" where nothing sensible is left of the need. Requires:
// the pod without that need fits the node.
std::string Instead(const PodRequest& pod, Need need, const Node& node);

// The most of the pod's GPUs, share or MIG device that the node could give it now: "with 2 GPUs
// instead of 4", "with 1g.5gb instead of 3g.20gb". "" where it could give none of the kind.
std::string WithLess(const PodRequest& pod, const Node& node);

// The row of the largest MIG device that is smaller than the one asked for, and is free there so
// many times; nullptr: there is none. Requires: the pod asks for one kind by name, and the node's
// product is known.
const MigRow* LargestSmallerMig(const RequestShape& shape, int count, const Node& node);

}  // namespace berth
