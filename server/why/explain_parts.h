// SPDX-License-Identifier: Apache-2.0
//
// Parts that several answers have. docs/api.md has their fields.
#pragma once

#include <string>
#include <vector>

#include "cluster/values/placement.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/gpu_use.h"
#include "scoring/explain/model_summary.h"
#include "scoring/explain/node_edits.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

Json DevicesJson(const Placement& placement);
Json CountsJson(const std::vector<ReasonCount>& counts);
Json NearJson(const NearNodeFacts& at);  // without what the node has
Json ModelsJson(const std::vector<ModelSummary>& models);
Json UseJson(const GpuUse& use);

// Nodes that are thought to come and go; as text a line for each sort, "" without any.
Json EditedNodesJson(const EditedNodes& nodes);
std::string TextOf(const EditedNodes& nodes);

}  // namespace berth::wire
