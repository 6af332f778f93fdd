// SPDX-License-Identifier: Apache-2.0
#include "server/pages/plan_page.h"

#include <string>
#include <string_view>
#include <utility>

#include "server/wire/json_text.h"
#include "server/wire/plan_json.h"

namespace berth {
namespace {

// With its quotes, of which http::ErrorResponse knows nothing.
http::HttpResponse Refusal(int status, std::string_view why) {
  http::HttpResponse response;
  response.status = status;
  response.body = wire::ObjectOf("error", why);
  return response;
}

int StatusOf(Errc code) {
  if (code == Errc::kUnavailable) return 503;
  return code == Errc::kNotFound ? 404 : 400;
}

}  // namespace

http::HttpResponse PlanPage(const PlanParts& parts, OwnRequest& request) {
  if (const char* const why = parts.not_ready ? parts.not_ready() : nullptr) {
    return http::ErrorResponse(503, std::string("not ready: ") + why);
  }
  const bool is_large = request.body.size() > wire::kMostPlanBytes;
  const auto plan = wire::DecodePlan(request.body, parts.pods, parts.nodes);
  if (!plan) return Refusal(is_large ? 413 : 400, plan.error().message);
  const auto answer = parts.extender.WouldPlace(plan->pods, plan->nodes, parts.not_ready);
  if (!answer) return Refusal(StatusOf(answer.error().code), answer.error().message);
  http::HttpResponse response;
  if (request.query == "text") {
    response.content_type = "text/plain; charset=utf-8";
    response.body = wire::TextOf(*plan, *answer);
  } else {
    response.body = wire::EncodePlan(*plan, *answer);
  }
  return response;
}

}  // namespace berth
