// SPDX-License-Identifier: Apache-2.0
//
// What POST /plan answers (docs/api.md has every field), as JSON for programs and as text for
// people.
#pragma once

#include <string>

#include "scoring/explain/what_if.h"
#include "server/why/plan_request.h"

namespace berth::wire {

// answer: of these pods.
std::string EncodePlan(const PlanRequest& request, const WhatIfAnswer& answer);
// Several lines, the last of which ends with a newline.
std::string TextOf(const PlanRequest& request, const WhatIfAnswer& answer);

}  // namespace berth::wire
