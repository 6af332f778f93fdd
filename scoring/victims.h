// SPDX-License-Identifier: Apache-2.0
//
// Victims: the pods of a node to evict for a pod of higher priority.
//
// A victim that Berth adds is a bound GPU pod of lower priority; never a reservation, whose bind
// may be under way. A gang is added whole or not at all, and only if no other set suffices. A
// disruption budget is never exceeded. Among the remaining sets the best is the one with
//   1. no gang in it, 2. the lowest highest priority, 3. the fewest pods, 4. the lowest sum of
//   priorities, 5. the least work lost, 6. the least GPU compute set free, 7. the lowest UIDs
// Work is GPU compute times the time since the pod was checkpointed (PodRequest::checkpointed), at
// most kMostLost, which is also that of a pod that does not say it. This is kube-scheduler's order
// (priority before number), continued by criteria for GPUs. The result is exact for the GPUs of a
// node, and for one MIG device, within the bounds of victims.cc. Beyond them, for several MIG
// devices, and if CPU or memory is short as well, pods are reprieved one after the other from the
// highest priority down, as kube-scheduler does.
//
// Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/reason.h"

namespace berth {

inline constexpr std::chrono::minutes kMostLost = std::chrono::days(30);

// The GPU compute that the pod has, in thousandths. MIG devices count by their slices, an eighth of
// a GPU each: only the order matters.
std::int64_t GpuMilliOf(const PodRecord& held);
// The work that is lost if the pod ends, in thousandths of GPU-minutes.
std::int64_t WorkLost(const PodRecord& held, WallTime now);

// The limits of evictions: gangs and disruption budgets; and what they cost.
struct EvictionLimits {
  std::span<const PodDisruptionBudget> budgets;
  // How many pods of a gang there are, on all nodes.
  std::function<std::size_t(const GangId& gang)> gang_size;
  WallTime now = {};
  // kube-scheduler may evict a part of a gang where no other node will do.
  bool gangs_may_break = false;
  // Gangs that go whole, with their pods on other nodes, so that none is broken. nullptr: none.
  const std::set<GangId>* ending = nullptr;
  [[nodiscard]] bool Ends(const GangId& gang) const {
    return ending != nullptr && ending->contains(gang);
  }
};

using NodeSuffices = std::function<bool(const Node& left)>;

// The node without the pods with these UIDs (UIDs of others change nothing) / without these.
Node WithoutPods(const Node& node, std::span<const std::string> uids);
Node WithoutPods(const Node& node, std::vector<const PodRecord*> gone);

bool MayBeEvictedFor(const PodRecord& held, const PodRequest& pod);

// Everything on the node that may be evicted for the pod, gangs whole and as many pods of a budget
// as it allows, those of the lowest priority first; also pods without GPUs.
std::vector<std::string> EvictableFrom(const Node& node, const PodRequest& pod,
                                       const EvictionLimits& limits);

// The UIDs to evict in addition to the given ones (given ones that are not on the node free
// nothing), so that the pod fits the node; none if it fits without. nullopt: no permitted set
// suffices.
// suffices: what has to hold of the node without them too; empty: nothing else has to. For a pod
// that asks for no GPU it alone knows what pods set free: devices of claims, and parts of them.
std::optional<std::vector<std::string>> AddedVictims(const Node& node, const PodRequest& pod,
                                                     std::span<const std::string> given,
                                                     const EvictionLimits& limits,
                                                     const NodeSuffices& suffices = {});

// Whether a gang would be left with some of its pods, and fewer than have to start together.
bool BreaksGang(const Node& node, std::span<const std::string> uids, const EvictionLimits& limits);

// The reason that filter should answer: unresolvable if the pod would not fit even if every pod of
// lower priority were evicted, gangs and budgets aside. Requires: the reason of FirstObjection.
Reason AfterEvictions(const Node& node, const PodRequest& pod, Reason reason);

}  // namespace berth
