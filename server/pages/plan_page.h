// SPDX-License-Identifier: Apache-2.0
//
// POST /plan: where pods would go that do not exist yet (scoring/explain/what_if.h), and what the
// next nodes of each pool would take (pool_growth.h), as JSON, or as text where the query is
// "text". It changes nothing.
//
// Any thread may ask. It takes seconds for thousands of pods on thousands of nodes: a PageWriter of
// its own is the one that should, so that /metrics does not wait.
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

// So many plans wait at most, beside the one that is being made.
inline constexpr std::size_t kMostWaitingPlans = 4;

// Why a plan had better end; nullptr when it goes on. Asked between pods.
using StopsPlan = std::function<const char*()>;

// The answer to a request of plan_request.h. Error: as there, kNotFound for a node that is not
// known, kUnavailable where `stops` says why.
Result<std::string> MakePlan(const Live& live, std::string_view request, bool as_text,
                             const StopsPlan& stops = {});

// 400 for a body that is wrong, 404 where a node is not known, 413 beyond the limits of
// plan_request.h; 503 while not ready or draining, and once the client has gone, in the middle of a
// plan too.
http::HttpResponse PlanPage(const Live& live, OwnRequest& request);

}  // namespace berth
