// SPDX-License-Identifier: Apache-2.0
//
// Victims: which pods of a node would have to go for a pod of higher priority.
//
// A victim that Berth adds is a bound GPU pod of lower priority; never a reservation, whose bind
// may be under way. A gang goes whole or not at all, and only where nothing else suffices; a
// disruption budget is never overdrawn. Among the sets that remain the best is the one with
//   1. no gang in it, 2. the lowest highest priority, 3. the fewest pods, 4. the lowest sum of
//   priorities, 5. the least GPU compute set free, 6. the lowest UIDs
// - which is kube-scheduler's order (priority before number), continued by what matters to GPUs. It
// is exact for the GPUs of a node, and for one MIG device, within the bounds of victims.cc; beyond
// them, for several MIG devices, and where CPU or memory is short as well, pods are spared one
// after the other from the highest priority down, as kube-scheduler does.
//
// Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/disruption_budgets.h"
#include "cluster/node.h"
#include "cluster/pod_request.h"
#include "scoring/reason.h"

namespace berth {

// What evictions must leave whole.
struct EvictionLimits {
  std::span<const PodDisruptionBudget> budgets;
  // How many pods of a gang there are, on whatever node.
  std::function<std::size_t(std::string_view gang)> gang_size;
};

// The node once the pods with these UIDs have left it; UIDs of others change nothing.
Node WithoutPods(const Node& node, std::span<const std::string> uids);

// The UIDs to evict beside the given ones (of which those that are not on the node free nothing) so
// that the pod fits the node; none if it fits without. Empty optional: no set that is allowed
// suffices.
std::optional<std::vector<std::string>> AddedVictims(const Node& node, const PodRequest& pod,
                                                     std::span<const std::string> given,
                                                     const EvictionLimits& limits);

// The reason as filter should tell it: unresolvable where the pod would not fit even if every pod
// of lower priority were evicted, gangs and budgets aside. Requires: it is what FirstObjection
// says.
Reason AfterEvictions(const Node& node, const PodRequest& pod, Reason reason);

}  // namespace berth
