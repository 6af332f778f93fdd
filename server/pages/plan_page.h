// SPDX-License-Identifier: Apache-2.0
//
// POST /plan: where new pods would be placed (scoring/explain/what_if.h), and what more nodes of
// each pool would take (pool_growth.h); or which pods to move to make room (make_room.h). The
// answer is JSON, or text if the query is "text". It changes nothing.
//
// Any thread may call it. It takes seconds for thousands of pods on thousands of nodes, so use a
// separate PageWriter; otherwise /metrics waits.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/http/http_message.h"
#include "server/pages/page_writer.h"
#include "server/why/live.h"

namespace berth {

// Maximum number of waiting plans, in addition to the running one.
inline constexpr std::size_t kMostWaitingPlans = 4;

// The reason to stop a plan; nullptr to continue. Called between pods.
using StopsPlan = std::function<const char*()>;

// The answer to a request of plan_request.h. Error: as there, kNotFound for an unknown node,
// kUnavailable with the reason of `stops`.
Result<std::string> MakePlan(const Live& live, std::string_view request, bool as_text,
                             const StopsPlan& stops = {});

// Status 400 for a wrong body, 404 for an unknown node, 413 beyond the limits of plan_request.h.
// 503 while not ready or draining, and if the client disconnects during the plan.
http::HttpResponse PlanPage(const Live& live, OwnRequest& request);

}  // namespace berth
