// SPDX-License-Identifier: Apache-2.0
//
// The cluster as a file: what /debug/snapshot answers and `berth serve --cluster` loads.
//
//   {"version": 1, "observed": true,
//    "nodes": [{"name": "n1", "gpu_model": "T4", "cpu_milli": 96000, "memory_bytes": 412316860416,
//               "ready": true, "gpus": [{"uuid": "", "memory_mib": 15109, "healthy": true}, ...]}],
//    "pods": [{"uid": "..", "namespace": "..", "name": "..", "state": "bound",
//              "node": "n1", "cpu_milli": 8000, "memory_bytes": 1073741824,
//              "ask": {"gpus": 2} | {"milli": 300, "memory_mib": 0} | {}, "models": [],
//              "containers": [{"name": "main", "ask": {"gpus": 2}, "ends_first": false}],
//              "grants": [{"gpu": 0, "milli": 1000, "memory_mib": 15109}, ...]}]}
//
// The members of nodes, pods and what they consist of are in cluster/values/describe.h, each with
// its key; MIG in mig_json.h and given_json.h, links in topology_json.h. Beside them "learned_mix"
// is what the pods that have arrived asked for (scoring/waste/request_mix.h), "device_classes" what
// resources stand for that kube-scheduler gives out by claims. What a snapshot was *observed* to be
// is the truth and is taken as it is: GPUs granted twice, pods on nodes that are not there. Without
// that mark the file is what somebody wants, and has to fit.
//
// Written by hand, "gpus" of a node may also be their number (with "gpu_memory_mib" beside it), and
// all but the name may be left out. A Kubernetes NodeList is taken as well, and a List of nodes,
// pods, PodGroups, PodDisruptionBudgets and others (kubectl get nodes,pods,podgroups,pdb -A -o
// json): pods that have ended are passed over, and kinds that nobody reads are counted.
//
// "has_constraints": the pods say where they may be moved; of a dump without that mark none is.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/cluster_event.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/waste/request_mix.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/dialect.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::wire {

// classes: by which pods ask for what kube-scheduler gives by claims.
std::string EncodeCluster(const ClusterState::Contents& contents,
                          const std::optional<LearnedMix::Memory>& learned = {},
                          std::span<const DeviceClass> classes = {});

struct ClusterFile {
  std::vector<ClusterEvent> events;           // that build the cluster
  std::vector<WaitingPod> waiting;            // of a List: the pods without a node, in its order
  std::optional<LearnedMix::Memory> learned;  // where the file has it
  std::vector<DeviceClass> classes;           // of a dump: without their selectors, not readable
  std::vector<PodDisruptionBudget> budgets;   // of a List
  bool is_list = false;                       // of objects of Kubernetes
  // What the nodes of a NodeList do without (node_json.h), pods whose devices cannot be read, what
  // cannot be read of PodGroups; and how many objects are of kinds that nobody reads.
  std::vector<std::string> problems;
};

// Takes an object of a kind that DecodeCluster does not read itself. False: nobody reads that kind.
using TakeOther =
    std::function<bool(std::string_view api_version, std::string_view kind, const PaddedText&)>;

// What a text is that is no JSON and no YAML, as people's tools make it: "a table of kubectl",
// "several JSON documents, ...". "": it may be one of these.
std::string WrongText(const std::string& text);

// The text of such a file as JSON. Error: kInvalidArgument for what is neither JSON nor YAML.
Result<std::string> ClusterAsJson(std::string text);

// Of a List: lists among its items, as documents of YAML may be, give way to their own items.
// Requires: "items" is a list.
void OpenLists(nlohmann::ordered_json& cluster);

// Reservations are left out, as a restart leaves them out.
// Error: kInvalidArgument with the path of the field: an unknown key, a wrong type, a node that is
// there twice, a negative capacity; unless it was observed so, a pod on a node that is not there or
// a GPU granted beyond what it has.
// pods: how those of a List are read; nullptr: it has nodes alone. groups: where PodGroups go,
// which the pods are read with (PodRules::groups); nullptr: they are passed over. take_other:
// called before nodes and pods are read; empty: nobody reads other kinds.
Result<ClusterFile> DecodeCluster(std::string text, const NodeRules& rules,
                                  const PodRules* pods = nullptr, PodGroups* groups = nullptr,
                                  const TakeOther& take_other = {});

// SlimCluster: the cluster of a file for somebody else's eyes. Left out are environment, commands,
// arguments, images, probes and messages of containers, what volumes mount, names of pull secrets,
// messages of conditions, annotations that no dialect reads, fields of Nodes, Pods and metadata
// that nobody reads, and objects of kinds that nobody reads. Names, labels, amounts and times stay,
// so that every answer about it is the same.

// Whether somebody reads objects of that kind, other than Node, Pod, PodGroup, PodDisruptionBudget.
using ReadsKind = std::function<bool(std::string_view api_version, std::string_view kind)>;

// A List, an object a line; of a dump of /debug/snapshot, which has none of this, the text itself.
// Requires: DecodeCluster has read the text.
std::string SlimCluster(std::string text, const Dialects& dialects, const ReadsKind& reads_kind);

}  // namespace berth::wire
