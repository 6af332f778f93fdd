// SPDX-License-Identifier: Apache-2.0
//
// The JSON of Kubernetes Nodes -> NodeSpec.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/node/mig_library.h"
#include "cluster/node/node.h"
#include "config/config.h"
#include "server/wire/node/node_traits.h"
#include "server/wire/pod/dialect.h"
#include "topology/machine_types.h"

namespace berth::wire {

// How nodes publish what they have.
struct NodeRules {
  GpuWords words;
  NodeLabelKeys labels;
  bool shares_need_uuids = false;                             // NodeSpec::shares_need_uuids
  SeveralReplicas several_replicas = SeveralReplicas::kAuto;  // GpuPlaces::several
  std::vector<ConditionRule> gpu_conditions;  // by which a node gets no pods with GPUs
  std::shared_ptr<const MachineTypes> machine_types;
  NodeTraits traits;
  std::shared_ptr<const Dialects> dialects;
  // Shared by all that decode nodes of one cluster.
  std::shared_ptr<LinkLibrary> links = std::make_shared<LinkLibrary>();
  std::shared_ptr<MigLibrary> mig = std::make_shared<MigLibrary>();

  NodeRules(const Config& config, std::shared_ptr<const Dialects> dialects);
};

struct DecodedNode {
  NodeSpec spec;
  // What could not be read and the node does without; empty = nothing.
  std::string problem;
  NodeHold hold = {};
  // The first of it that Kubernetes itself writes otherwise, with its place: what a Node that a
  // person writes is refused for.
  std::string unread = {};
};

// Decodes a NodeList, or a List of Nodes as `kubectl get nodes -o json` prints it. CPU, memory
// and ephemeral storage are those of status.allocatable, GPUs and MIG devices as the dialects say,
// their model and memory as in node_gpu_facts.h, links as in topology_json.h. Error:
// kInvalidArgument with the place ("items[3].metadata.name: ...") of what is no Node. Labels and
// taints come along; a node that is cordoned (spec.unschedulable) has the taint
// node.kubernetes.io/unschedulable.
Result<std::vector<DecodedNode>> DecodeNodeList(const PaddedText& text, const NodeRules& rules);

// Decodes one Node, as a watch sends it. Error: kInvalidArgument naming node and field
// ("node n1: name: ...").
Result<DecodedNode> DecodeNode(const PaddedText& text, const NodeRules& rules);

}  // namespace berth::wire
