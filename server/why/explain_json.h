// SPDX-License-Identifier: Apache-2.0
//
// What /debug/pods/NS/NAME, /debug/nodes/NAME, /debug/gangs/NS/NAME, /debug/namespaces/NAME,
// /debug/classes/NAME and /debug/top answer, as JSON for programs (docs/api.md leads to every
// field) and as text for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/gpu_use.h"
#include "scoring/explain/model_summary.h"
#include "scoring/explain/node_report.h"
#include "scoring/mig/repartition_report.h"
#include "server/extender/gang_table.h"
#include "server/why/live.h"

namespace berth::wire {

struct PodReport {
  PodExplanation told;
  // What the API server says of a pod that waits.
  bool gated = false;
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
inline bool Waits(const GangView& gang) { return gang.state != "whole" && gang.state != "begun"; }

struct GangMemberReport {
  std::string pod;    // "namespace/name"
  std::string state;  // "waiting", "gated", "planned", "reserved", "bound"
  std::string node = {};
};

struct GangReport {
  GangView gang;
  std::vector<GangMemberReport> members;  // by name
  std::string sentence;
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
  std::vector<WaitingClass> waiting;
};

// "bound", "planned", "reserved": for programs.
const char* StateOf(PodState state);

std::string EncodeReport(const PodReport& report);
std::string EncodeReport(const NodeReport& node);
std::string EncodeReport(const GangReport& report);
std::string EncodeReport(const TopReport& report);
std::string EncodeReport(const UseReport& report);

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

}  // namespace berth::wire
