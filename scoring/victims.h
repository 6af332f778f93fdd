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
#include <compare>
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

// LighterVictims: pods to evict in place of those that kube-scheduler would, which lose less work.
//
// Of pods of equal priority kube-scheduler evicts those that started last, whatever they have
// saved. A set takes the place of the proposed one if it
//   1. loses less work (WorkLost), in fewer pods where several lose as little;
//   2. has no more pods: the most important is no more important than theirs, nor the
//      second most important, and so on: the node is as good a choice as it was;
//   3. exceeds disruption budgets with no more pods. They are counted as kube-scheduler counts
//   them:
//      it prefers pods that exceed none, and evicts others where it must;
//   4. makes room for all that Berth judges: GPUs, CPU, memory, disk;
//   5. differs from the proposed one by single pods with GPUs: bound ones, of no gang, not ending;
//   6. leaves nothing in the way of what kube-scheduler alone judges (OwnToScheduler).
// The proposed set stays where it has a pod that Berth would not have evicted: then something is
// short that Berth does not see, the room of a pod that was nominated to the node for example.
//
// The result is the best such set within the bounds of lighter_victims.cc, which a node of 8 GPUs
// stays within; beyond them it is the best one that was found. A pure function.

struct VictimSet {
  std::vector<std::string> uids;  // sorted
  std::int64_t pdb_violations = 0;
  friend bool operator==(const VictimSet&, const VictimSet&) = default;
};

// proposed: the pods on the node that are to be evicted, and how many of them exceed budgets by the
// scheduler's own count. Nothing: these stay.
std::optional<VictimSet> LighterVictims(const Node& node, const PodRequest& pod,
                                        const VictimSet& proposed, const EvictionLimits& limits);

// Pods to evict in place of the proposed ones where these would break a gang (BreaksGang): members
// of gangs stay. Nothing: no others will do.
std::optional<VictimSet> WholeGangVictims(const Node& node, const PodRequest& pod,
                                          const VictimSet& proposed, const EvictionLimits& limits);

// SchedulerVictims: whom kube-scheduler would evict for a pod by its own filters, before it asks
// Berth (verb preempt), and which of the nodes that are left it would take.
//
// As DefaultPreemption of kube-scheduler 1.36 and 1.37 does. On one node (SelectVictimsOnNode): all
// pods of lower priority go, whatever they are, and one after the other stays if there is room.
// First those stay whose eviction would exceed a disruption budget, then the others; of each, the
// most important first: by priority, then those that started first. So budgets are kept where that
// is possible, and exceeded where it is not. Of several nodes (pickOneNodeForPreemption) it takes
// the one with
//   1. the fewest pods beyond budgets, 2. the lowest highest priority, 3. the lowest sum of
//   priorities, 4. the fewest pods, 5. the latest start of those of the highest priority
// It counts CPU, memory, ephemeral storage, and whole GPUs and MIG devices by their resource. What
// Berth alone knows it does not count: links, shares, which GPU. What it judges beside this and
// Berth does not know is in OwnToScheduler.
//
// Pure functions.

// Empty optional: it would evict nobody there, because the pod has room by its count, because all
// pods of lower priority do not have enough, or because the node is closed to the pod.
std::optional<VictimSet> SchedulerVictims(const Node& node, const PodRequest& pod,
                                          std::span<const PodDisruptionBudget> budgets);

// Whether the pod has room on the node by kube-scheduler's count, as it is.
bool HasSchedulersRoom(const Node& node, const PodRequest& pod);

// What decides between nodes: what compares less is taken.
struct EvictionRank {
  std::int64_t pdb_violations = 0;
  int highest_priority = 0;
  std::int64_t priority_sum = 0;  // of numbers from 0: 2^31 is added to each
  std::size_t pods = 0;
  // Of those of the highest priority, the first that started: nanoseconds since 1970, negated.
  std::int64_t before_now = 0;

  friend auto operator<=>(const EvictionRank&, const EvictionRank&) = default;
};
// Requires: victims of the node.
EvictionRank RankOf(const Node& node, const VictimSet& victims);

// TakenAway: whether kube-scheduler asks about a cluster without the pods that it would evict.
//
// For a gang of Kubernetes' own it takes every pod of lower priority out of its copy of the
// cluster, asks filter about each member, and says nothing of it. The nodes tell: its own count of
// whole GPUs comes before filter. If it offers a node though the pods bound there leave too few of
// them by that count, it has taken some of these away, or has seen them end before us.
//
// Afterwards it puts back as many of these pods as it can by that count, on the nodes that filter
// has left, and evicts the others without asking. So filter may only let a pod pass where any GPUs
// will do, however many of them this count says are free then.
//
// Pure functions.

// Whether pods are gone from the node, if kube-scheduler offers it for the pod and has given
// `given` of its GPUs to pods that are not on it here.
bool PodsAreTakenAway(const Node& node, const PodRequest& pod, std::int64_t given = 0);
// The GPUs of the node that kube-scheduler counts for the pod: whole ones, by the node's resource.
// 0: none, or it asks in other words.
std::int64_t GpusCountedFor(const NodeSpec& node, const RequestShape& shape);

// Whether the pod gets its GPUs on the node, whichever pods of lower priority are evicted, once
// enough of them are by kube-scheduler's count. Requires: it would if all of them were.
bool AnyEvictionsWillDo(const Node& node, const PodRequest& pod);

// SchedulerScore: what kube-scheduler's own plugins say of a node, in whole points, as Kubernetes
// 1.36 counts them by default (pkg/scheduler/framework/plugins/noderesources):
//
//   NodeResourcesFit, 0..100 (LeastAllocated)   the mean over CPU and memory of the part that is
//                                               free once the pod is there; a container that asks
//                                               for none counts 100 m CPU and 200 MiB
//   NodeResourcesBalancedAllocation, 0..100     100 * (1 - half the difference of the parts of CPU
//                                               and memory in use)
//
// Between nodes that Berth finds equally good it decides. The other scoring plugins give equal
// scores to nodes without preferred affinity, spreading and images. Pure functions; they look at
// the pods of the node.

// An amount of a node that pods ask for.
struct ResourceUse {
  std::int64_t requested = 0;  // with the pod
  std::int64_t allocatable = 0;

  [[nodiscard]] std::int64_t free_points() const;  // 0..100
  [[nodiscard]] double part() const;               // in use, 0..1
};
ResourceUse CpuUse(const Node& node, const RequestShape& pod);
ResourceUse MemoryUse(const Node& node, const RequestShape& pod);

std::int64_t BalancePoints(const ResourceUse& cpu, const ResourceUse& memory);

// Requires: the pod is not on the node.
std::int64_t SchedulerScore(const Node& node, const PodRequest& pod);

}  // namespace berth
