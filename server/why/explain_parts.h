// SPDX-License-Identifier: Apache-2.0
//
// Parts of the answers of explain_json.h that other answers have too. docs/explain.md has their
// fields.
#pragma once

#include <vector>

#include "cluster/values/placement.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/model_summary.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

Json DevicesJson(const Placement& placement);
Json CountsJson(const std::vector<ReasonCount>& counts);
Json NearJson(const NearNodeFacts& at);  // without what the node has
Json ModelsJson(const std::vector<ModelSummary>& models);

}  // namespace berth::wire
