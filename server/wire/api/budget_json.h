// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a policy/v1 PodDisruptionBudget, as the API server lists and watches it.
#pragma once

#include <string>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/groups/disruption_budgets.h"

namespace berth::wire {

// Error: kInvalidArgument for what is not JSON, not such a budget, or has an operator that there is
// not.
Result<PodDisruptionBudget> DecodeBudget(const PaddedText& text);

}  // namespace berth::wire
