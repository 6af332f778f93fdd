// SPDX-License-Identifier: Apache-2.0
//
// ExplainPod: where one pod is and why, or why it waits and what would change that. For people and
// programs that ask; it decides nothing, holds nothing, and leaves no trace in the state, the mix
// or the books.
//
//   PodExplanation told = ExplainPod(engine, {.snapshot = state.Current(), .pod = pod});
//   told.sentence;  // "fits none of 12 nodes; nearest is n17: 0 of 2 GPUs idle, needs 2; fits ..."
//
// A pod that is on a node is judged again without itself: what the answer says of scores and other
// nodes is of this moment, not of the moment of the decision.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "scoring/engine/engine.h"
#include "scoring/explain/first_line.h"
#include "scoring/explain/gpu_use.h"
#include "scoring/explain/kept_room.h"
#include "scoring/explain/near_nodes.h"
#include "scoring/explain/node_access.h"
#include "scoring/explain/node_report.h"
#include "scoring/explain/preemption_outlook.h"
#include "scoring/judgement.h"
#include "scoring/mig/repartition_report.h"
#include "scoring/victims.h"

namespace berth {

// What the API server says of a pod that waits, beside the request.
struct PodSaid {
  std::string nominated = {};    // status.nominatedNodeName; empty: none
  std::string replica_set = {};  // PodLife::replica_set
  // Where Berth evicted pods for it, because its GPUs are given by claims; empty: nowhere.
  std::string room = {};
  std::vector<std::string> evicted = {};  // these: "namespace/name"
};

struct PodToExplain {
  std::shared_ptr<const Snapshot> snapshot;
  const PodRequest& pod;
  GroupPlaces group = {};
  EvictionLimits limits = {};
  bool behind_scheduler = false;      // as in Question
  NodeGuard guard = NodeGuard::kOff;  // the same
  PodSaid said = {};
  const Reservations* reservations = nullptr;  // as in Question
};

struct ReasonCount {
  Reason reason = Reason::kFits;  // the first against the node (FirstInOrder)
  std::int64_t nodes = 0;
};

// On how many nodes kube-scheduler's own filters would refuse the pod, whatever Berth says. A node
// may count more than once.
struct SchedulerCounts {
  // As a program reads it, and in words.
  static constexpr std::pair<const char*, const char*> kChecks[] = {
      {"not_ready", "not ready"},
      {"tainted", "taint not tolerated"},
      {"not_selected", "node selector or required affinity"},
      {"cpu", "CPU"},
      {"memory", "memory"},
      {"disk", "ephemeral storage"}};
  std::array<std::int64_t, std::size(kChecks)> by_check{};
  std::int64_t any = 0;  // of these at least one
};

struct NearNodeFacts {
  NearNode near;
  NodeReport facts;
};

struct PodExplanation {
  PodId pod;
  RequestShape shape;
  bool in_units = false;  // its agent counts memory in units of more than 1 MiB on some node
  int priority = 0;
  std::vector<std::string> classes;  // PodRequest::classes
  std::vector<LinePart> line;        // the answer in one line, ...
  std::string sentence;              // ...as it fits behind the pod's name
  std::string devices = {};          // where it is: "GPU 0, GPU 3"
  std::string refusal = {};          // PodRequest::refusal
  // What would make its choice of GPUs certain, where the device plugin makes it; empty: nothing.
  std::string advice = {};
  // Where it is; empty: nowhere.
  std::optional<PodRecord> placed;

  std::size_t nodes = 0;    // that there are
  std::size_t fitting = 0;  // that fit now (without the pod itself)
  // Those that would, by what kube-scheduler counts there and they have too little of (LackOf()).
  std::map<std::string, int> lacking = {};
  std::size_t kept = 0;  // of these, kept for others that have waited longer
  std::optional<Reservation> reservation = {};
  std::size_t by_claim = 0;              // on which kube-scheduler decides (admission.h)
  std::string best_by_claim = {};        // of these
  std::vector<ReasonCount> counts;       // of the others, the most frequent first
  ClosedNodes closed;                    // these are among the counts, ...
  std::vector<ReasonCount> open_counts;  // ...and these are the rest of them
  SchedulerCounts scheduler;
  std::vector<ScoredNode> best;        // of those that fit; empty for members of a group, whose
                                       // nodes depend on the others
  std::vector<NearNodeFacts> nearest;  // where none fits
  std::string never = {};              // where nothing helps on any of these: NeverInPool()
  std::optional<PreemptionOutlook> preemption;  // where none fits
  std::optional<RolloutBlock> rollout = {};     // where none fits
  std::vector<NodeAdvice> recuts;               // idle nodes that would take it if cut otherwise
  std::vector<ModelSummary> models;
};

inline constexpr std::size_t kToldNodes = 5;  // of the nearest and of the best

// It fits nodes now, and all of them have to be left to others.
inline bool IsPassedOver(const PodExplanation& told) {
  return told.fitting > 0 && told.kept == told.fitting;
}
// It fits no node that it may go to now, and one is reserved for it.
inline bool AwaitsReserved(const PodExplanation& told) {
  return told.reservation && told.kept == told.fitting;
}

// "40 nodes are not in pool=z", "4 nodes had too few idle GPUs": first the nodes that are closed to
// the pod as one number, then the others, the most frequent first, by the texts that kube-scheduler
// shows. Where all are closed, these by their texts.
std::vector<std::string> CountTexts(const PodExplanation& told);

PodExplanation ExplainPod(Engine& engine, const PodToExplain& ask);

}  // namespace berth
