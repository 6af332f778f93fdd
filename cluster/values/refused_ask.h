// SPDX-License-Identifier: Apache-2.0
//
// RefusedAsk: what pods asked for that the kubelet of a node refused. The node goes on taking pods
// that ask for something else, so it is remembered beside the node, not for all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cluster/values/pod_request.h"

namespace berth {

struct RefusedAsk {
  // Pods with more containers that ask for GPUs are not remembered.
  static constexpr std::size_t kMostContainers = 16;

  GpuAsk gpus;                     // of the whole pod
  std::vector<GpuAsk> containers;  // of each container that asks for GPUs, in the pod's order
  // Any of these may have been why: pods that ask for less may be admitted.
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t ephemeral_bytes = 0;
  OtherResources others = {};
  friend bool operator==(const RefusedAsk&, const RefusedAsk&) = default;

  // Returns whether the pod / the other asks for the same GPUs, container by container, and for no
  // less of all the rest.
  [[nodiscard]] bool Covers(const PodRequest& pod) const;
  [[nodiscard]] bool Covers(const RefusedAsk& other) const;
};

// What the pod asks for; nullopt: no GPUs, or too many containers.
std::optional<RefusedAsk> RefusedAskOf(const PodRequest& pod);

// Those of one node, at most kMostRefusedAsks; nullptr: none.
using RefusedAsks = std::shared_ptr<const std::vector<RefusedAsk>>;
constexpr std::size_t kMostRefusedAsks = 8;

}  // namespace berth
