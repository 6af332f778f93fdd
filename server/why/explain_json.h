// SPDX-License-Identifier: Apache-2.0
//
// What /debug/pods/NS/NAME, /debug/nodes/NAME, /debug/gangs/NS/NAME, /debug/namespaces/NAME,
// /debug/classes/NAME, /debug/top, /debug/waiting and /debug/nodes answer, as JSON for programs
// (docs/api.md leads to every field) and as text for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/values/placement.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/gpu_use.h"
#include "scoring/explain/node_edits.h"
#include "scoring/explain/node_report.h"
#include "scoring/mig/repartition_report.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/why/live.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

struct PodReport {
  PodExplanation told;
  // What the API server says of a pod that waits.
  std::string held_back = {};        // WaitingPod::held_back
  bool unschedulable = false;        // its scheduler has found no node
  std::string scheduler_said = {};   // and said so in these words
  std::string not_bound = {};        // PendingPods::NotBound
  std::optional<Duration> age = {};  // since it was created; empty: not known
  std::string scheduler = {};        // spec.schedulerName; empty = not said
  std::optional<GangView> gang = {};
  GpuHolders holders = {};              // where the gang waits for room
  std::optional<RoomAdvice> room = {};  // where moves would let it in, and a person asks
  std::string sentence;                 // the whole answer in one
};

// Whether the gang as a whole keeps its members waiting.
inline bool Waits(const GangView& gang) {
  if (gang.state == "begun") return !gang.why.empty();
  return gang.state != "whole" && gang.state != "alone";
}

struct GangMemberReport {
  std::string pod;    // "namespace/name"
  std::string state;  // "waiting", "gated", "planned", "reserved", "bound", "ending"
  std::string node = {};
};

struct GangReport {
  GangView gang;
  std::vector<GangMemberReport> members;  // by name
  std::string sentence;
  std::vector<std::string> wishes = {};  // WishTexts
  // Of the first member that waits, what keeps it alone from the nodes; empty: none waits.
  std::optional<PodReport> waiting = {};
};

// Pods that wait and ask for the same number of GPUs.
struct WaitingClass {
  std::string asks;  // "1 GPU", "share", "mig"
  std::int64_t pods = 0;
  std::optional<Duration> oldest = {};
};

// What the GPU pods of a namespace or of a workload class hold.
struct UseReport {
  Owner by = Owner::kNamespace;
  std::string name;
  std::vector<NodeUse> nodes;  // that have such pods
};

struct TopReport {
  std::vector<ModelSummary> models;
  std::map<std::string, std::int64_t> by_claims = {};  // what else slices offer
  std::vector<WaitingClass> waiting;
};

// A pod that waits for GPUs, or a gang with the members that wait.
struct WaitingUnit {
  std::string name;  // "namespace/name"
  bool is_gang = false;
  std::string asks;                  // "2 GPUs", "4 pods with 8 GPUs each"
  std::optional<Duration> age = {};  // of its first pod in line
  std::string sentence;              // PodReport::sentence, GangReport::sentence
};

// In the order in which they are served; those with gates come last.
struct WaitingReport {
  static constexpr std::size_t kMost = 50;
  std::vector<WaitingUnit> units;
  std::size_t beyond = 0;  // more units
};

// The nodes with GPUs that are not simply fine.
struct NodesReport {
  struct Row {
    std::string node, model;
    std::vector<std::string> notes;  // NotesOn
  };
  std::size_t gpu_nodes = 0;  // these too
  std::vector<Row> rows;      // by name
};

// Pods on nodes with a text in "namespace/name".
struct FoundPods {
  static constexpr std::size_t kMost = 20;
  std::vector<std::pair<std::string, std::string>> pods;  // with their nodes
  std::size_t beyond = 0;                                 // more pods
};

// Of what is said of the node: what closes it or GPUs of it, and for whom it is kept.
std::vector<std::string> NotesOn(const NodeReport& node);

std::string EncodeReport(const PodReport& report);
std::string EncodeReport(const NodeReport& node);
std::string EncodeReport(const GangReport& report);
std::string EncodeReport(const TopReport& report);
std::string EncodeReport(const UseReport& report);
std::string EncodeReport(const WaitingReport& report);
std::string EncodeReport(const NodesReport& report);
std::string EncodeReport(const FoundPods& found);

// What /debug/gangs answers:
//
//   [{"gang": "berth:ml/train", "state": "waiting", "minimum": 4, "total": 4, "placed": 0,
//     "waiting": 4, "planned": 0, "held": 0, "age_seconds": 12.5,
//     "why": "3 of 4 members fit in zone a"}]
//
// `gang` is the convention and the name of the group; `total` is null where nobody says it.
std::string EncodeGangs(std::span<const GangView> gangs);

// What /debug/repartition answers:
//
//   [{"node": "n1", "product": "A100-40GB", "gpus": 8, "config": "all-balanced", "fits": 12,
//     "fits_now": 0, "fits_cut_at_will": 14}]
//
// `config` is a value of the label by which the node is partitioned; `fits_cut_at_will` is null
// where it is not known (scoring/mig/repartition_report.h).
std::string EncodeRepartition(std::span<const NodeAdvice> advices);

// Several lines, the last of which ends with a newline.
std::string TextOf(const PodReport& report);
std::string TextOf(const NodeReport& node);
std::string TextOf(const GangReport& report);
std::string TextOf(const TopReport& report);
std::string TextOf(const UseReport& report);
std::string TextOf(const WaitingReport& report);
std::string TextOf(const NodesReport& report);

// Parts that several answers have. docs/api.md has their fields.

Json DevicesJson(const Placement& placement);
Json CountsJson(const std::vector<ReasonCount>& counts);
Json NearJson(const NearNodeFacts& at);  // without what the node has
Json ModelsJson(const std::vector<ModelSummary>& models);
Json UseJson(const GpuUse& use);

// Nodes that are thought to come and go; as text a line for each sort, "" without any.
Json EditedNodesJson(const EditedNodes& nodes);
std::string TextOf(const EditedNodes& nodes);

}  // namespace berth::wire
