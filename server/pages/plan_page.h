// SPDX-License-Identifier: Apache-2.0
//
// POST /plan: where pods would go that do not exist yet (scoring/explain/what_if.h), and what the
// next nodes of each pool would take (pool_growth.h), as JSON, or as text where the query is
// "text". It changes nothing.
//
// Any thread may ask. It takes seconds for thousands of pods on thousands of nodes: a PageWriter of
// its own is the one that should, so that /metrics does not wait.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/extender.h"
#include "server/http/http_message.h"
#include "server/pages/page_writer.h"
#include "server/why/explain_pages.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth {

// References: they outlive the page.
struct PlanParts {
  const Extender& extender;
  const wire::PodRules& pods;
  const wire::NodeRules& nodes;
  const WaitingPods* waiting = nullptr;  // nullptr: none wait
  // Why nothing can be planned at present; nullptr when it can. Asked between pods too: neither a
  // process that ends nor one that leads no longer goes on with a plan.
  std::function<const char*()> not_ready;
  LeaderName leader = {};
};

// So many plans wait at most, beside the one that is being made.
inline constexpr std::size_t kMostWaitingPlans = 4;

// The answer to a request of plan_request.h. Error: as there, kNotFound for a node that is not
// known, kUnavailable where not_ready says why.
Result<std::string> MakePlan(const PlanParts& parts, std::string_view request, bool as_text);

// 400 for a body that is wrong, 404 where a node is not known, 413 beyond the limits of
// plan_request.h, 503 while not ready, and once the client has gone.
http::HttpResponse PlanPage(const PlanParts& parts, OwnRequest& request);

}  // namespace berth
