// SPDX-License-Identifier: Apache-2.0
//
// Judgement: the whole verdict on the nodes that a pod may go to. It is a function of a snapshot
// and a question; the Engine adds what depends on the pod's shape alone. The Extender serves these
// answers and berth-replay replays them.
//
//   const Question question{.pod = pod, .candidates = nodes, .group = GroupIn(*snapshot, ...)};
//   Judgement judged = Judge(engine, snapshot, question);   // which nodes take the pod
//   Shortlist(engine, snapshot, pod, 100, judged);          // the best 100 of them go on
//   engine.Prioritize(snapshot, pod.shape, judged.fitting, judged.pull);
//   auto placement = PlaceInGroup(engine, snapshot, pod, question.group, node);
//
// What decides about one node, in this order:
//   1. the pod itself may be at fault, or none of our business;
//   2. the filters (Engine::Filter): GPUs, CPU, memory, disk, model, links, MIG;
//   3. admission: taints, node selector, required affinity;
//   4. what is short now: whether evictions could make room for this pod;
//   5. what is kept for others that wait (Reservations);
//   6. the topology domain that the pod's group requires.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/engine/engine.h"
#include "scoring/groups/group_domains.h"
#include "scoring/reason.h"
#include "scoring/reservations/reservations.h"
#include "scoring/victims.h"
#include "topology/domains/domain_tree.h"

namespace berth {

// Where the members of a pod's group are, or where its predecessors ran (WaitingPods::FormerNodes).
// Without a tree domains do not matter to the pod.
struct GroupPlaces {
  std::shared_ptr<const DomainTree> tree;  // of the snapshot
  GroupMembers members;
  std::vector<NodeIndex> former = {};  // ascending; of a pod without a gang
};

// Whether a question about the pod needs its GroupPlaces, where there are levels at all.
bool NeedsGroup(const PodRequest& pod);

// The pod is at no fault, asks for no GPU, and for nothing else that only Berth knows.
bool AsksForNothingOfOurs(const PodRequest& pod);

struct Question {
  const PodRequest& pod;
  std::span<const NodeIndex> candidates;  // nodes of the snapshot, each at most once
  GroupPlaces group = {};
  // kube-scheduler is in front and decides about pods that ask for nothing of ours: all nodes fit.
  bool behind_scheduler = false;
  NodeGuard guard = NodeGuard::kOff;           // of GPU nodes, against such pods
  const Reservations* reservations = nullptr;  // what is kept for others; nullptr: nothing
  bool claims = false;                         // the pod has claims that are to get devices
};

struct Judgement {
  std::vector<Reason> reasons;          // one per candidate
  std::vector<NodeIndex> fitting;       // the candidates that fit, in their order
  std::vector<int> pull;                // of `fitting`, as Engine::Prioritize takes it
  Reason first_reason = Reason::kFits;  // of the first candidate that does not fit
  std::string shortage;                 // what links that candidate lacks (device_fit.h)
};

// The reasons alone, one per candidate.
std::vector<Reason> ReasonsFor(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                               const Question& question);
// The same, asked of the filters themselves: it leaves nothing in the engine's tables, which are
// for the shapes that pods have. For questions that no scheduler waits for.
std::vector<Reason> ReasonsAnew(const Snapshot& snapshot, const Question& question);
Judgement Judge(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                const Question& question);

// Where more than `most` nodes fit, all but the best of them become kBetterElsewhere: the caller
// would compare them for nothing. Of equal ones the first by name stay. 0: all of them go on.
void Shortlist(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
               const PodRequest& pod, std::size_t most, Judgement& judgement);

// Makes the others kBetterElsewhere. goes_on: one per fitting node.
void PassOver(const std::vector<bool>& goes_on, Judgement& judgement);

// What draws the pod to each candidate, as Engine::Prioritize takes it; empty: nothing does. A node
// of a predecessor draws most: what that had loaded is still there.
std::vector<int> PullOn(const Snapshot& snapshot, const PodRequest& pod, const GroupPlaces& group,
                        std::span<const NodeIndex> candidates);

// Engine::PlaceOn; a member of a group gets the GPUs that the other members have (group_domains.h).
tl::expected<Placement, Reason> PlaceInGroup(Engine& engine,
                                             const std::shared_ptr<const Snapshot>& snapshot,
                                             const PodRequest& pod, const GroupPlaces& group,
                                             NodeIndex node);

// The pods to evict from the node beside the given ones so that the pod may go there and, where it
// is the first of its group, so may the rest. Empty optional: no set that is allowed suffices, or
// what they leave is kept for others (reservations; nullptr: nothing is kept).
std::optional<std::vector<std::string>> VictimsOn(const Snapshot& snapshot, const PodRequest& pod,
                                                  const GroupPlaces& group, NodeIndex index,
                                                  std::span<const std::string> given,
                                                  const EvictionLimits& limits,
                                                  const Reservations* reservations = nullptr);

// The pods to evict from the node in place of the proposed ones, with which VictimsOn adds none
// (victims.h). Nothing: these stay.
std::optional<VictimSet> LighterVictimsOn(const Snapshot& snapshot, const PodRequest& pod,
                                          const GroupPlaces& group, NodeIndex index,
                                          const VictimSet& proposed, const EvictionLimits& limits,
                                          const Reservations* reservations = nullptr);

// What Berth answers where kube-scheduler would evict the proposed pods from the node: these and
// those that VictimsOn adds, or others in their place. Empty optional: nobody is to go there.
// breaks_gangs: they may be a part of a gang; else none is broken.
std::optional<VictimSet> AgreedVictims(const Snapshot& snapshot, const PodRequest& pod,
                                       const GroupPlaces& group, NodeIndex index,
                                       const VictimSet& proposed, const EvictionLimits& limits,
                                       const Reservations* reservations = nullptr,
                                       bool breaks_gangs = false);

// Engine::Prioritize. Candidates with a taint of effect PreferNoSchedule that the pod does not
// tolerate come behind all others, with 0, if there are others. Where kube-scheduler gives the GPUs
// by a claim (admission.h), one node alone is the best.
std::vector<std::uint8_t> Priorities(Engine& engine,
                                     const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> candidates,
                                     std::span<const int> pull);

// What a node that the snapshot does not have is to the pod.
Reason ReasonOfUnknown(const PodRequest& pod);

// Whether a pod that leaves, or a node that is seen, may change the reason within moments.
bool MayChangeSoon(Reason reason);

// ScoreReport: which of the nodes that fit the profile likes best, and what each scorer says.

struct ScorePart {
  std::string scorer;
  int weight = 1;
  // As the scorer gives it for these devices, on its own scale; higher is better.
  int score = 0;
};

struct ScoredNode {
  NodeIndex node = kNoNode;
  std::size_t place = 1;  // 1 = the best; equal ones share a place, but the best of Priorities()
  Placement placement;    // what the pod would get
  std::vector<ScorePart> parts;
  std::string behind;  // Behind::text; it may hold for all of them
};

// The best nodes, at most `most`, best first, and `always` if it is one of them, wherever it is.
// The order has all that decides between nodes: scores, weights, prices of what is scarce, and how
// empty a node is among equals. real: the snapshot that the engine decides on; snapshot: that one,
// or one with the same nodes that is only thought of; pull: as Engine::Prioritize takes it.
// Requires: the pod fits all of `fitting` on `snapshot`; in order.
std::vector<ScoredNode> ReportScores(Engine& engine, const std::shared_ptr<const Snapshot>& real,
                                     const std::shared_ptr<const Snapshot>& snapshot,
                                     const PodRequest& pod, std::span<const NodeIndex> fitting,
                                     std::size_t most, NodeIndex always = kNoNode,
                                     std::span<const int> pull = {});

}  // namespace berth
