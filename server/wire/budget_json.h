// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a policy/v1 PodDisruptionBudget, as the API server lists and watches it.
#pragma once

#include <string>

#include "base/result.h"
#include "cluster/disruption_budgets.h"

namespace berth::wire {

// Error: kInvalidArgument for what is not JSON, not such a budget, or has an operator that there is
// not. Requires: text.capacity() >= text.size() + kPadding (extender_v1.h).
Result<PodDisruptionBudget> DecodeBudget(const std::string& text);

}  // namespace berth::wire
