// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "cluster/groups/disruption_budgets.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/lighter_victims.h"

namespace berth {

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
