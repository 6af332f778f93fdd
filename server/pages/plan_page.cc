// SPDX-License-Identifier: Apache-2.0
#include "server/pages/plan_page.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/extender/waiting_line.h"
#include "server/why/growth_json.h"
#include "server/why/plan_json.h"
#include "server/wire/json/json_text.h"

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

Result<std::string> MakeGrowth(const PlanParts& parts, const wire::PlanRequest& plan,
                               bool as_text) {
  const bool of_waiting = !plan.has_pods && parts.waiting != nullptr;
  auto listed = of_waiting ? parts.waiting->Everybody() : std::vector<WaitingPod>();
  const Extender::Moment now = parts.extender.Now();  // after the list (still_waiting.h)
  const WaitingLine line =
      LineOf(std::move(listed), *now.snapshot, parts.pods.groups(), wire::kMostPlannedPods);
  wire::GrowthReport report{.request = plan, .pods = plan.has_pods ? plan.pods : line.pods};
  report.gated = line.gated;
  report.beyond = line.beyond;
  BERTH_TRY(report.told, parts.extender.WouldTake(now, report.pods, plan.nodes, plan.grow,
                                                  plan.at_zero, parts.not_ready));
  return as_text ? wire::TextOf(report) : wire::EncodeGrowth(report);
}

}  // namespace

Result<std::string> MakePlan(const PlanParts& parts, std::string_view request, bool as_text) {
  BERTH_TRY(const wire::PlanRequest plan, wire::DecodePlan(request, parts.pods, parts.nodes));
  if (plan.grow > 0) return MakeGrowth(parts, plan, as_text);
  BERTH_TRY(const WhatIfAnswer answer, parts.extender.WouldPlace(parts.extender.Now(), plan.pods,
                                                                 plan.nodes, parts.not_ready));
  return as_text ? wire::TextOf(plan, answer) : wire::EncodePlan(plan, answer);
}

http::HttpResponse PlanPage(const PlanParts& parts, OwnRequest& request) {
  if (const char* const why = parts.not_ready ? parts.not_ready() : nullptr) {
    return NotReadyAnswer(why, parts.leader);
  }
  PlanParts awaited = parts;  // between pods it is asked whether to go on
  awaited.not_ready = [&parts, &request]() -> const char* {
    if (request.waits && !request.waits()) return "the client of this plan has gone";
    return parts.not_ready ? parts.not_ready() : nullptr;
  };
  const bool is_large = request.body.size() > wire::kMostPlanBytes;
  const bool as_text = request.query == "text";
  auto answer = MakePlan(awaited, request.body, as_text);
  if (!answer) {
    return Refusal(is_large ? 413 : StatusOf(answer.error().code), answer.error().message);
  }
  http::HttpResponse response;
  if (as_text) response.content_type = "text/plain; charset=utf-8";
  response.body = *std::move(answer);
  return response;
}

}  // namespace berth
