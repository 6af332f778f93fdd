// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/api_pod_evictor.h"

#include <algorithm>
#include <utility>

#include "server/kube/client/api_client.h"
#include "server/kube/write/retry.h"
#include "server/wire/api/pod_writes.h"

namespace berth::kube {

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
    Report(response.error().message);
    return Outcome::kUnknown;
  }
  const bool is_another = response->status == 409 &&  // that has its name
                          response->body.find("UID in precondition") != std::string::npos;
  if (response->ok() || response->status == 404 || is_another) return Outcome::kEvicted;
  // 409: somebody changed the pod or its budget in that moment.
  if (response->status == 429 || response->status == 409) return Outcome::kBlocked;
  Report(RefusalText(*response));
  return Outcome::kFailed;
}

void ApiPodEvictor::Report(const std::string& problem) {
  // The text of a refusal names the pod: refusals that differ only in that are reported once.
  std::string kind = problem.substr(0, problem.find(':'));
  {
    const MutexLock lock(mutex_);
    if (kind == problem_) return;
    problem_ = std::move(kind);
  }
  on_problem_(problem);
}

}  // namespace berth::kube
