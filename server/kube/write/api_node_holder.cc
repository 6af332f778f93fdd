// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/api_node_holder.h"

#include "server/kube/client/api_client.h"
#include "server/kube/write/retry.h"

namespace berth::kube {
namespace {

constexpr Duration kMostPerHold = std::chrono::seconds(5);

}  // namespace

ApiNodeHolder::ApiNodeHolder(ApiClient& client, const Clock& clock, const WriteFence& fence,
                             OnProblem on_problem)
    : client_(client),
      clock_(clock),
      fence_(fence),
      on_problem_(std::move(on_problem)),
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
  ApiRequest request;
  {
    const MutexLock lock(mutex_);
    const auto seen = seen_.find(node);
    request.body = wire::EncodeHold(seen == seen_.end() ? wire::NodeHold() : seen->second, hold);
  }
  if (request.body.empty()) return;
  request.method = "PATCH";
  request.path = *path;
  request.content_type = "application/merge-patch+json";
  request.timeout = kMostPerHold;
  const Result<ApiResponse> response = client_.Send(request);
  if (response && (response->ok() || response->status == 404)) return problem_.clear();
  if (response && !IsTransient(response->status)) not_before_ = clock_.Now() + kAfterRefusal;
  // The text names the node: refusals that differ only in that are reported once.
  const std::string problem = response ? RefusalText(*response) : response.error().message;
  std::string kind = problem.substr(0, problem.find(':'));
  if (kind != problem_) on_problem_(problem);
  problem_ = std::move(kind);
}

}  // namespace berth::kube
