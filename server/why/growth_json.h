// SPDX-License-Identifier: Apache-2.0
//
// What POST /plan answers where it is asked what the next nodes of each pool would take
// (docs/api.md has every field), as JSON for programs and as text for people.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "cluster/values/pod_request.h"
#include "scoring/explain/pool_growth.h"
#include "server/why/plan_request.h"

namespace berth::wire {

struct GrowthReport {
  const PlanRequest& request;
  std::span<const PodRequest> pods;  // that were asked about: of the request, or those that wait
  Growth told = {};
  std::size_t gated = 0, beyond = 0;  // of those that wait (server/extender/inquiry.h)
};

std::string EncodeGrowth(const GrowthReport& report);
// Several lines, the last of which ends with a newline.
std::string TextOf(const GrowthReport& report);

}  // namespace berth::wire
