// SPDX-License-Identifier: Apache-2.0
//
// The template of the nodes of a machine type: what the first node of a pool would be that has
// none.
//
// GPUs, their model and memory are those of the type (topology/machine_types.h), links those
// of the model. What the type does not tell is as said in kTemplateAssumes.
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/node_json.h"

namespace berth::wire {

inline constexpr std::string_view kTemplateAssumes =
    "CPU, memory and disk for all pods, no labels but machine type, linux and GPU model, no "
    "taints, no MIG, no agent for shares of GPUs";

// Its name is "node". Error: kInvalidArgument, without a place: a type that is not known, with
// the nearest names; GPUs by whose resource the configuration counts none.
Result<NodeSpec> TemplateNode(std::string_view machine_type, const NodeRules& rules);

// A Node that need not exist, as the example of nodes that may come: as the API server has it
// (`kubectl get node NAME -o yaml`), or as much of it as somebody has written by hand:
//
//   metadata: {labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
//   status: {allocatable: {cpu: 128, memory: 1Ti, nvidia.com/gpu: 8}}
//
// It is read as any Node (node_json.h). What is said of capacity alone is allocatable too.

// The node that the object is; without a name it is called "node". Error: kInvalidArgument with the
// place (".status.allocatable.cpu: ..."): another kind, no CPU or memory, or as DecodeNode.
// Requires: an object.
Result<DecodedNode> DecodeNodeShape(const Json& object, const NodeRules& rules);

}  // namespace berth::wire
