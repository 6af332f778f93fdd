// SPDX-License-Identifier: Apache-2.0
//
// What POST /plan is asked (docs/api.md has every field).
//
//   {"pods": [Pod, Job, Deployment, List, ...],
//    "add": [{"like": "n1", "count": 3}, {"like": {"status": {...}}}], "remove": ["n2"]}
//
// Objects of controllers stand for their pods (plan_objects.h), which are named as the owner with a
// number, and a Pod without a name by its number. A PodGroup says what its pods need, wherever
// among them it is, and comes before one of that name in the cluster. What has no pods that are
// known here is named and left out, and so are pods that have a node or have ended.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/explain/node_edits.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::wire {

inline constexpr std::size_t kMostPlanBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMostPlannedPods = 10'000;
inline constexpr std::size_t kMostMachineTypes = 100;
inline constexpr std::size_t kMostRoomNames = 100;
inline constexpr int kMostIdleNodes = 1000;
// Templates are read once for all of their pods, but for those of a JobSet or LeaderWorkerSet,
// which are read for each Job or group: so many bytes of JSON in all.
inline constexpr std::size_t kMostTemplateBytes = std::size_t{64} << 20;

// What is known of a pod beside its request.
struct PodNotes {
  std::vector<std::string> not_judged;  // what Berth does not look at, by name (api_rules.h)
  std::string held_back;                // why nobody places it; "": somebody does
  std::vector<std::string> extended;    // ExtendedResourcesOf
  // Of its ResourceClaims, by "namespace/name"; "": one that is not made from a template.
  std::vector<std::string> claim_templates = {};
};

// For which pods or gangs room is to be made, and for what else.
struct PlanRoom {
  std::vector<std::string> names;  // "namespace/name"; empty: all, unless nodes are to be idle
  int idle_nodes = 0;
  std::string model;
};

// Pods of the cluster that wait or have a place, by "namespace/name".
struct KnownPod {
  std::string uid, node = {};  // no node: it waits
  bool planned = false;        // it has a place there, and waits to be bound
};
using KnownPods = std::unordered_map<std::string, KnownPod>;

struct PlanRequest {
  // Pods of one object, in a row.
  struct Source {
    std::string what;  // "Job team-a/train"
    std::size_t first = 0, count = 0;
  };
  // Pods that a DaemonSet has on each node that it chooses.
  struct OnEachNode {
    std::size_t source = 0;  // index into `sources`
    PodRequest pod;          // of any node
    std::shared_ptr<const PodNotes> notes;
  };
  std::vector<PodRequest> pods;
  std::vector<std::shared_ptr<const PodNotes>> notes;  // one per pod; those of a template share it
  std::vector<OnEachNode> on_each_node;                // that Expand makes pods of
  bool has_pods = false;                               // said, if only that there are none
  int grow = 0;                   // so many nodes of each pool at most; 0: that is not asked
  std::optional<PlanRoom> room;   // empty: that is not asked
  std::vector<KnownPod> planned;  // of the pods, those that have a place already
  std::vector<NodeSpec> at_zero;  // templates of pools that have no node yet; with `grow`
  std::vector<Source> sources;    // of all of them
  std::vector<std::string>
      left_out;  // "Service team-a/web: Berth does not know what pods it makes"
  // Of its ResourceClaimTemplates, by "namespace/name": a claim of each, as the API server has it.
  std::map<std::string, std::string> claims;
  NodeEdits nodes;
};

// Error: kInvalidArgument with the path of the field, also for a text beyond kMostPlanBytes and for
// more pods than kMostPlannedPods. A Pod that is one of `known` is that one: it has its UID, so
// that what is kept for it is its own, and is left out where it has a node.
Result<PlanRequest> DecodePlan(std::string_view text, const PodRules& rules, const NodeRules& nodes,
                               KnownPods known = {});

// Makes the pods of DaemonSets for the nodes that they choose, as their controller does, and adds
// the tolerations that admission adds there (api_rules.h). Error: more pods than kMostPlannedPods.
Status Expand(PlanRequest& plan, const Snapshot& snapshot);

// The schedulers (spec.schedulerName; "" is the default one) that ask this Berth; empty: not known.
// Pods of others get a note: they are not judged.
void NoteSchedulers(const std::set<std::string>& askers, PlanRequest& plan);

}  // namespace berth::wire
