// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/api_pod_waker.h"

#include <utility>

#include "server/kube/client/api_client.h"
#include "server/kube/write/retry.h"
#include "server/wire/api/pod_writes.h"

namespace berth::kube {
namespace {

constexpr Duration kPause = std::chrono::milliseconds(200);  // between attempts
constexpr Duration kMostPerWake = std::chrono::seconds(5);

}  // namespace

ApiPodWaker::ApiPodWaker(ApiClient& client, const Clock& clock, const WriteFence& fence,
                         OnProblem on_problem)
    : client_(client),
      clock_(clock),
      fence_(fence),
      on_problem_(std::move(on_problem)),
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
      problem_.clear();
      return;
    }
    // Gone, or another pod has its name.
    if (response && (response->status == 404 || response->status == 409)) return;
    problem = response ? RefusalText(*response) : response.error().message;
    if (response && !IsTransient(response->status)) break;
    if (!queue_.Pause(kPause)) return;
  }
  ++failed_;
  // The text of a refusal names the pod: refusals that differ only in that are reported once.
  const std::string kind = problem.substr(0, problem.find(':'));
  if (kind != problem_) on_problem_(problem);
  problem_ = kind;
}

}  // namespace berth::kube
