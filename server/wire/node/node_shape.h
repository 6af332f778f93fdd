// SPDX-License-Identifier: Apache-2.0
//
// A Node that need not exist, as the example of nodes that may come: as the API server has it
// (`kubectl get node NAME -o yaml`), or as much of it as somebody has written by hand:
//
//   metadata: {labels: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}}
//   status: {allocatable: {cpu: 128, memory: 1Ti, nvidia.com/gpu: 8}}
//
// It is read as any Node (node_json.h). What is said of capacity alone is allocatable too.
#pragma once

#include "base/result.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/node/node_json.h"

namespace berth::wire {

// The node that the object is; without a name it is called "node". Error: kInvalidArgument with the
// place (".status.allocatable.cpu: ..."): another kind, no CPU or memory, or as DecodeNode.
// Requires: an object.
Result<DecodedNode> DecodeNodeShape(const Json& object, const NodeRules& rules);

}  // namespace berth::wire
