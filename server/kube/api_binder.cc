// SPDX-License-Identifier: Apache-2.0
#include "server/kube/api_binder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "server/kube/api_path.h"
#include "server/wire/binding_json.h"
#include "server/wire/hami_binding.h"
#include "server/wire/pod_object.h"
#include "server/wire/watch_json.h"

namespace berth::kube {
namespace {

constexpr Duration kMostPerRequest = std::chrono::seconds(10);
constexpr Duration kFirstWait = std::chrono::milliseconds(50);
constexpr Duration kMostWait = std::chrono::seconds(2);

// Doubled each time, and spread over its upper half: many binds fail together.
Duration WaitBefore(int attempt, std::uint64_t seed) {
  const Duration wait = std::min(kMostWait, kFirstWait * (1 << std::min(attempt, 10)));
  return wait / 2 + wait / 2 *
                        static_cast<int>(Mix64(seed + static_cast<std::uint64_t>(attempt)) % 1000) /
                        1000;
}

bool IsForNow(int status) { return status == 408 || status == 429 || status >= 500; }

}  // namespace

Status ApiBinder::Bind(const BindOrder& order) {
  FencedWrite write(parts_.fence);
  Status bound = Write(order);
  if (!bound && bound.error().code == Errc::kUnavailable) write.Unanswered();
  return bound;
}

Status ApiBinder::Write(const BindOrder& order) {
  if (!wire::SpeaksHami(order.placement, order.node)) return Post(order);
  const PodId& id = order.pod.id;
  HamiNodeLock::Held held{order.node.name};
  Status bound = lock_.Take(id, order.deadline, held);
  if (bound) {
    {
      const MutexLock lock(mutex_);  // what an earlier bind left of it is this one's now
      std::erase_if(
          left_, [&](const Locked& left) { return left.pod == id && left.held.node == held.node; });
    }
    bound = Post(order);
  }
  if (!bound && !held.text.empty()) (void)LetGo({id, std::move(held)});
  return bound;
}

bool ApiBinder::LetGo(Locked locked) {
  const Result<PodTruth> truth = Find(locked.pod);
  const bool known = truth || truth.error().code == Errc::kNotFound;
  if (truth && truth->placement && truth->placement->node == locked.held.node) return true;
  if (known && lock_.Release(locked.held)) return true;
  const MutexLock lock(mutex_);
  left_.push_back(std::move(locked));
  return false;
}

void ApiBinder::ReleaseLocks() {
  std::vector<Locked> left;
  {
    const MutexLock lock(mutex_);
    left.swap(left_);
  }
  auto next = left.begin();
  while (next != left.end() && LetGo(std::move(*next++))) {
  }
  const MutexLock lock(mutex_);
  left_.insert(left_.end(), next, left.end());
}

Status ApiBinder::Post(const BindOrder& order) {
  ApiRequest request;
  request.method = "POST";
  BERTH_TRY(request.path, PodPath(order.pod.id.namespace_name, order.pod.id.name));
  request.path += "/binding";
  request.body = wire::EncodeBinding(order.pod, order.placement, order.node, order.decision,
                                     parts_.clock.Wall());
  Attempt last{Fail(Errc::kDeadline, "this process does not lead any more")};
  bool in_doubt = false;
  for (int attempt = 0;; ++attempt) {
    const Instant end = std::min(order.deadline, parts_.fence.WritableUntil());
    const Instant now = parts_.clock.Now();
    if (end <= now + last.wait) break;
    if (attempt > 0) {
      ++retries_;
      parts_.sleep(last.wait);
    }
    request.timeout = std::min(kMostPerRequest, end - now - last.wait);
    last = TryOnce(request, attempt);
    // A refusal, of an API server that has just started and knows no rights yet for one, does not
    // say what became of an attempt before it. A conflict does, once the pod is looked at.
    const bool answers_all =
        !in_doubt || last.status || last.status.error().code == Errc::kConflict;
    if (last.final && answers_all) return std::move(last.status);
    if (last.final) break;
    in_doubt = in_doubt || last.in_doubt;
  }
  if (!in_doubt) return Fail(Errc::kDeadline, std::move(last.status).error().message);
  ++in_doubt_;
  return Fail(Errc::kUnavailable, std::move(last.status).error().message);
}

ApiBinder::Attempt ApiBinder::TryOnce(const ApiRequest& request, int attempt) {
  const Result<ApiResponse> response = parts_.client.Send(request);
  const auto seed = static_cast<std::uint64_t>(parts_.clock.Now().time_since_epoch().count());
  if (!response) return {tl::unexpected(response.error()), false, true, WaitBefore(attempt, seed)};
  if (response->ok()) return {.status = {}, .final = true};
  const std::string text = RefusalText(*response);
  switch (response->status) {
    case 404:
      return {Fail(Errc::kNotFound, text), true};
    case 409:
      return {Fail(Errc::kConflict, text), true};
    default:
      break;
  }
  if (!IsForNow(response->status)) return {Invalid(text), true};
  const Duration wait = WaitBefore(attempt, seed);
  return {Fail(Errc::kUnavailable, text), false, response->status != 429,
          std::max(wait, response->retry_after.value_or(wait))};
}

Result<PodTruth> ApiBinder::Find(const PodId& id) {
  BERTH_TRY(std::string path, PodPath(id.namespace_name, id.name));
  BERTH_TRY(ApiResponse response, parts_.client.Send({.path = std::move(path)}));
  if (response.status == 404) return Fail(Errc::kNotFound, "pod is gone");
  if (!response.ok()) return Fail(Errc::kUnavailable, RefusalText(response));
  auto pod = wire::DecodeObservedPod(PaddedText(std::move(response.body)), parts_.rules);
  if (!pod) return Fail(Errc::kUnavailable, std::move(pod).error().message);
  if (pod->pod.id.uid != id.uid) return Fail(Errc::kNotFound, "pod was replaced by another one");
  PodTruth truth{std::move(pod->pod), std::nullopt};
  if (!pod->node.empty() && !pod->over) truth.placement = std::move(pod->placement);
  return truth;
}

}  // namespace berth::kube
