// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/api_pod_waker.h"

#include <algorithm>

#include "server/wire/api/writes_json.h"

namespace berth::kube {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(200);  // between attempts
constexpr Duration kMostPerWake = std::chrono::seconds(5);
constexpr Duration kMostPerHold = std::chrono::seconds(5);

}  // namespace

void RefusalNews::Refused(const std::string& problem) {
  std::string kind = problem.substr(0, problem.find(':'));
  {
    const MutexLock lock(mutex_);
    if (kind == kind_) return;
    kind_ = std::move(kind);
  }
  tell_(problem);
}

void RefusalNews::Accepted() {
  const MutexLock lock(mutex_);
  kind_.clear();
}

ApiPodWaker::ApiPodWaker(ApiClient& client, const Clock& clock, const WriteFence& fence,
                         OnProblem on_problem)
    : client_(client),
      clock_(clock),
      fence_(fence),
      news_(std::move(on_problem)),
      queue_(kMostWaiting, [this](const PodId& pod) { Post(pod); }) {}

bool ApiPodWaker::Wake(const PodId& pod) { return queue_.PushBack(pod); }

void ApiPodWaker::Post(const PodId& pod) {
  const Result<std::string> path = PodPath(pod.namespace_name, pod.name);
  if (!path) return;  // no such pod can be
  ApiRequest request;
  request.method = "PATCH";
  request.path = *path + "/status";
  request.content_type = wire::kWakeContentType;
  request.timeout = kMostPerWake;
  std::string problem;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (clock_.Now() >= fence_.WritableUntil()) return;
    request.body = wire::EncodeWake(pod, clock_.Wall());
    const Result<ApiResponse> response = client_.Send(request);
    if (response && response->ok()) {
      ++woken_;
      return news_.Accepted();
    }
    // Gone, or another pod has its name.
    if (response && (response->status == 404 || response->status == 409)) return;
    problem = ProblemOf(response);
    if (response && !IsTransient(response->status)) break;
    if (!queue_.Pause(kPause)) return;
  }
  ++failed_;
  news_.Refused(problem);
}

PodEvictor::Outcome ApiPodEvictor::Evict(const PodId& pod) {
  const Result<std::string> path = PodPath(pod.namespace_name, pod.name);
  if (!path) return Outcome::kFailed;  // no such pod can be
  FencedWrite write(fence_);
  const Instant now = clock_.Now(), until = fence_.WritableUntil();
  if (now >= until) return Outcome::kFailed;
  ApiRequest request;
  request.method = "POST";
  request.path = *path + "/eviction";
  request.body = wire::EncodeEviction(pod);
  request.timeout = std::min<Duration>(kMostPerEviction, until - now);
  const Result<ApiResponse> response = client_.Send(request);
  if (!response) {
    write.Unanswered();
    news_.Refused(response.error().message);
    return Outcome::kUnknown;
  }
  const bool is_another = response->status == 409 &&  // that has its name
                          response->body.find("UID in precondition") != std::string::npos;
  if (response->ok() || response->status == 404 || is_another) return Outcome::kEvicted;
  // 409: somebody changed the pod or its budget in that moment.
  if (response->status == 429 || response->status == 409) return Outcome::kBlocked;
  news_.Refused(RefusalText(*response));
  return Outcome::kFailed;
}

ApiNodeHolder::ApiNodeHolder(ApiClient& client, const Clock& clock, const WriteFence& fence,
                             OnProblem on_problem)
    : client_(client),
      clock_(clock),
      fence_(fence),
      news_(std::move(on_problem)),
      queue_(kMostWaiting, [this](const Order& order) { Post(order); }) {}

std::set<std::string> ApiNodeHolder::Held() const {
  const MutexLock lock(mutex_);
  std::set<std::string> held;
  for (const auto& [node, hold] : seen_) {
    if (!hold.mark.empty()) held.insert(node);
  }
  return held;
}

void ApiNodeHolder::Hold(const std::string& node, bool hold) {
  (void)queue_.PushBack({node, hold});
}

void ApiNodeHolder::Saw(const std::string& node, const wire::NodeHold& hold) {
  const MutexLock lock(mutex_);
  if (hold.empty()) {
    seen_.erase(node);
  } else {
    seen_.insert_or_assign(node, hold);
  }
}

void ApiNodeHolder::Post(const Order& order) {
  const auto& [node, hold] = order;
  const Result<std::string> path = NodePath(node);
  if (!path || clock_.Now() < not_before_ || clock_.Now() >= fence_.WritableUntil()) return;
  std::string patch;
  {
    const MutexLock lock(mutex_);
    const auto seen = seen_.find(node);
    patch = wire::EncodeHold(seen == seen_.end() ? wire::NodeHold() : seen->second, hold);
  }
  if (patch.empty()) return;
  const Result<ApiResponse> response =
      client_.Send(MergePatch(*path, std::move(patch), kMostPerHold));
  if (response && (response->ok() || response->status == 404)) return news_.Accepted();
  if (response && !IsTransient(response->status)) not_before_ = clock_.Now() + kAfterRefusal;
  news_.Refused(ProblemOf(response));
}

}  // namespace berth::kube
