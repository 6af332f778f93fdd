// SPDX-License-Identifier: Apache-2.0
#include "server/verbs.h"

#include <algorithm>
#include <utility>

#include "server/wire/extender_v1.h"

namespace berth {
namespace {

http::HttpResponse Json(std::string body) {
  http::HttpResponse response;
  response.body = std::move(body);
  return response;
}

constexpr std::string_view kNoPod = "Pod: want a pod, got none";
constexpr std::string_view kAllocated =
    "a device was allocated to the pod's claim, which decides the node";
constexpr std::string_view kAwaited = "pods that were evicted for this one are not seen gone yet";

Status WaitedTooLong(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  return Fail(Errc::kDeadline, "bind waited for " + std::to_string(seconds) +
                                   " s: whoever asked for it gives it up by now");
}

}  // namespace

// A pod for whose claims a device may be allocated, and both answers to its filter.
struct Verbs::ClaimingPod {
  PodId id;
  std::vector<std::string> claims;
  std::vector<std::string> nodes;  // that fit
  std::string fits;
  std::string nowhere;
};

Verbs::Answer Verbs::Malformed(const Error& error) {
  return {CallResult::kBadRequest, http::ErrorResponse(400, error.message)};
}

template <class Handle>
http::HttpResponse Verbs::Timed(Verb verb, const http::HttpRequest& request, Handle handle) {
  Answer answer = handle();
  wire::ReleaseDecoder();
  if (answer.response.later) return std::move(answer.response);  // counted when it is there
  metrics_.CountCall(verb, answer.result, std::chrono::steady_clock::now() - request.began);
  return std::move(answer.response);
}

http::HttpResponse Verbs::Filter(http::HttpRequest& request) {
  return Timed(Verb::kFilter, request, [&] { return AnswerFilter(request); });
}

http::HttpResponse Verbs::Prioritize(http::HttpRequest& request) {
  return Timed(Verb::kPrioritize, request, [&] { return AnswerPrioritize(request.body); });
}

http::HttpResponse Verbs::Preempt(http::HttpRequest& request) {
  return Timed(Verb::kPreempt, request, [&] { return AnswerPreempt(request.body); });
}

http::HttpResponse Verbs::Bind(http::HttpRequest& request) {
  return Timed(Verb::kBind, request, [&] { return AnswerBind(request); });
}

Verbs::Answer Verbs::AnswerFilter(http::HttpRequest& request) {
  const std::shared_ptr<const Snapshot> snapshot = extender_.Current();
  const auto args = wire::DecodeExtenderArgs(request.body, rules_, snapshot->names());
  if (!args) return Malformed(args.error());
  if (!args->pod) return {CallResult::kRefused, Json(wire::EncodeFilterError(kNoPod))};
  const std::vector<Reason> reasons = extender_.Filter(snapshot, *args->pod, args->known);
  const bool any = std::ranges::find(reasons, Reason::kFits) != reasons.end() ||
                   (!args->unknown.empty() && wire::ReasonOfUnknown(*args->pod) == Reason::kFits);
  if (!any && extender_.AwaitsEvictions(*snapshot, *args->pod, args->known)) {
    return {CallResult::kRefused, Json(wire::EncodeFilterError(kAwaited))};
  }
  std::string answer = wire::EncodeFilterResult(*args, snapshot->names(), reasons);
  if (!any || args->claims.empty() || allocator_ == nullptr) {
    return {any ? CallResult::kOk : CallResult::kRefused, Json(std::move(answer))};
  }
  auto pod = std::make_shared<ClaimingPod>(
      ClaimingPod{args->pod->id,
                  args->claims,
                  {},
                  std::move(answer),
                  wire::EncodeFilterNowhere(*args, snapshot->names(), kAllocated)});
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i] == Reason::kFits)
      pod->nodes.emplace_back(snapshot->names().name(args->known[i]));
  }
  return {CallResult::kOk, AfterAllocation(pod, request.began)};
}

http::HttpResponse Verbs::AfterAllocation(const std::shared_ptr<const ClaimingPod>& pod,
                                          Instant began) const {
  const auto answer = [&metrics = metrics_, began, pod](const http::Reply& reply, bool allocated) {
    metrics.CountCall(Verb::kFilter, allocated ? CallResult::kRefused : CallResult::kOk,
                      std::chrono::steady_clock::now() - began);
    reply(Json(allocated ? pod->nowhere : pod->fits));
  };
  http::HttpResponse response;
  response.later = [&allocator = *allocator_, &pool = *pool_, pod,
                    answer](const http::Reply& reply) {
    allocator.Ask(pod->id, pod->claims);
    const bool taken = pool.Submit([&allocator, pod, answer, reply] {
      answer(reply, allocator.Allocate(pod->id, pod->claims, pod->nodes));
    });
    if (taken) return;
    allocator.Leave(pod->id, pod->claims);
    answer(reply, false);
  };
  return response;
}

Verbs::Answer Verbs::AnswerPrioritize(std::string& body) {
  const std::shared_ptr<const Snapshot> snapshot = extender_.Current();
  const auto args = wire::DecodeExtenderArgs(body, rules_, snapshot->names());
  if (!args) return Malformed(args.error());
  if (!args->pod) return {CallResult::kRefused, Json("[]")};
  const auto priorities = extender_.Prioritize(snapshot, *args->pod, args->known);
  return {CallResult::kOk,
          Json(wire::EncodeHostPriorityList(*args, snapshot->names(), priorities))};
}

Verbs::Answer Verbs::AnswerPreempt(std::string& body) {
  const auto args = wire::DecodePreemptionArgs(body, rules_);
  if (!args) return Malformed(args.error());
  const auto kept = extender_.Preempt(extender_.Current(), args->pod, args->nodes);
  return {kept.empty() ? CallResult::kRefused : CallResult::kOk,
          Json(wire::EncodePreemptionResult(kept))};
}

// kube-scheduler waits for a bind a little longer than Berth tries one (reservationSeconds). What
// has waited for a thread for all that time is refused: it would be carried out after it was given
// up, while the pod is scheduled anew.
Verbs::Answer Verbs::AnswerBind(http::HttpRequest& http_request) {
  const auto request = wire::DecodeBindingArgs(http_request.body);
  if (!request) return Malformed(request.error());
  const Duration waited = std::chrono::steady_clock::now() - http_request.began;
  const bool is_late = waited >= extender_.policy().reservation_time * 4 / 5;
  const Status bound = is_late ? WaitedTooLong(waited) : extender_.Bind(*request);
  return {bound ? CallResult::kOk : CallResult::kRefused,
          Json(wire::EncodeBindingResult(bound ? "" : bound.error().message))};
}

}  // namespace berth
