// SPDX-License-Identifier: Apache-2.0
//
// The template of the nodes of a machine type: what the first node of a pool would be that has
// none.
//
// GPUs, their model and memory are those of the type (topology/known_machine_types.h), links those
// of the model. What the type does not tell is as said in kTemplateAssumes.
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/wire/node/node_json.h"

namespace berth::wire {

inline constexpr std::string_view kTemplateAssumes =
    "CPU, memory and disk for all pods, no labels but machine type, linux and GPU model, no "
    "taints, no MIG, no agent for shares of GPUs";

// Its name is "node". Error: kInvalidArgument, without a place: a type that is not known, with
// the nearest names; GPUs by whose resource the configuration counts none.
Result<NodeSpec> TemplateNode(std::string_view machine_type, const NodeRules& rules);

}  // namespace berth::wire
