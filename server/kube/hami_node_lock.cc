// SPDX-License-Identifier: Apache-2.0
#include "server/kube/hami_node_lock.h"

#include <algorithm>
#include <utility>

#include "server/kube/api_path.h"
#include "server/wire/hami_lock.h"
#include "server/wire/pod_object.h"

namespace berth::kube {
namespace {

constexpr Duration kMostPerRequest = std::chrono::seconds(3);
constexpr Duration kFirstWait = std::chrono::milliseconds(50);
constexpr Duration kMostWait = std::chrono::milliseconds(500);
constexpr int kReleaseAttempts = 3;

Duration WaitAfter(int attempt) {
  return std::min(kMostWait, kFirstWait * (1 << std::min(attempt, 10)));
}

bool IsForNow(int status) {
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

Error RefusalOf(const ApiResponse& response) {
  const Errc code = response.status == 404      ? Errc::kNotFound
                    : IsForNow(response.status) ? Errc::kDeadline
                                                : Errc::kInvalidArgument;
  return {code, "HAMi's lock on the node: " + RefusalText(response)};
}

Result<wire::LockedNode> NodeIn(ApiResponse response) {
  return wire::DecodeLockedNode(PaddedText(std::move(response.body)));
}

// Counts down at the end of the wait.
class WaitingPlace {
 public:
  explicit WaitingPlace(std::atomic<int>& waiting) : waiting_(waiting) {}
  ~WaitingPlace() {
    if (taken_) --waiting_;
  }
  WaitingPlace(const WaitingPlace&) = delete;
  WaitingPlace& operator=(const WaitingPlace&) = delete;

  bool Take() {
    if (!taken_) taken_ = ++waiting_ <= HamiNodeLock::kMostWaiting;
    if (!taken_) --waiting_;
    return taken_;
  }

 private:
  std::atomic<int>& waiting_;
  bool taken_ = false;
};

}  // namespace

Status HamiNodeLock::Take(const PodId& pod, Instant deadline, Held& held) {
  BERTH_TRY_STATUS(NodePath(held.node));
  Attempt last{Fail(Errc::kDeadline, "this process does not lead any more")};
  WaitingPlace place(waiting_);
  for (int attempt = 0;; ++attempt) {
    const Instant end = std::min(deadline, parts_.fence.WritableUntil());
    const Instant now = parts_.clock.Now();
    if (end <= now) break;
    last = TryTake(pod, held, std::min(kMostPerRequest, end - now));
    if (last.status) return {};
    if (last.final || (last.held_by_other && !place.Take())) break;
    parts_.sleep(std::min(WaitAfter(attempt), end - now));
  }
  return std::move(last.status);
}

HamiNodeLock::Attempt HamiNodeLock::TryTake(const PodId& pod, Held& held, Duration timeout) {
  auto response = parts_.client.Send({.path = *NodePath(held.node), .timeout = timeout});
  if (!response) return {Fail(Errc::kDeadline, std::move(response).error().message)};
  if (!response->ok()) {
    return {tl::unexpected(RefusalOf(*response)), !IsForNow(response->status)};
  }
  const auto node = NodeIn(*std::move(response));
  if (!node) return {Fail(Errc::kDeadline, node.error().message)};
  const auto open = IsOpen(node->lock, held.node, pod, timeout);
  if (!open) return {tl::unexpected(open.error()), true};
  if (!*open) {
    return {Fail(Errc::kDeadline, "HAMi's lock on the node is held for another pod"), false, true};
  }
  held.text = wire::EncodeHamiLock(parts_.clock.Wall(), pod);
  response = Patch(held.node, node->resource_version, held.text, timeout);
  if (!response) return {Fail(Errc::kDeadline, std::move(response).error().message)};
  if (response->ok()) return {.status = {}, .final = true};
  return {tl::unexpected(RefusalOf(*response)), !IsForNow(response->status)};
}

Result<bool> HamiNodeLock::IsOpen(const std::string& text, const std::string& node,
                                  const PodId& pod, Duration timeout) {
  if (text.empty()) return true;
  auto lock = wire::ParseHamiLock(text);
  if (!lock) {
    return tl::unexpected(std::move(lock).error().Within("node " + node + ": annotation " +
                                                         std::string(wire::kHamiLockAnnotation)));
  }
  if (lock->namespace_name == pod.namespace_name && lock->pod == pod.name) return true;
  if (parts_.clock.Wall() - lock->since > kExpires) return true;
  if (lock->pod.empty()) return false;
  auto path = PodPath(lock->namespace_name, lock->pod);
  if (!path) return true;  // there can be no such pod
  auto response = parts_.client.Send({.path = *std::move(path), .timeout = timeout});
  if (!response) return false;
  if (response->status == 404) return true;
  if (!response->ok()) return false;
  const PaddedText pod_text(std::move(response->body));
  const auto owner = wire::DecodeObservedPod(pod_text, parts_.rules);
  return owner && (owner->over || (!owner->node.empty() && owner->node != node));
}

Status HamiNodeLock::Release(const Held& held) {
  Error last;
  for (int attempt = 0; attempt < kReleaseAttempts; ++attempt) {
    if (attempt > 0) parts_.sleep(WaitAfter(attempt));
    auto response = parts_.client.Send({.path = *NodePath(held.node), .timeout = kMostPerRequest});
    if (response && response->status == 404) return {};
    if (response && response->ok()) {
      const auto node = NodeIn(*std::move(response));
      if (node && node->lock != held.text) return {};
      if (!node) return Fail(Errc::kUnavailable, node.error().message);
      response = Patch(held.node, node->resource_version, "", kMostPerRequest);
      if (response && response->ok()) return {};
    }
    last.message = response ? RefusalText(*response) : std::move(response).error().message;
  }
  return Fail(Errc::kUnavailable, std::move(last.message));
}

Result<ApiResponse> HamiNodeLock::Patch(const std::string& node, const std::string& version,
                                        std::string_view lock, Duration timeout) {
  ApiRequest request;
  request.method = "PATCH";
  request.path = *NodePath(node);
  request.body = wire::EncodeLockPatch(version, lock);
  request.content_type = "application/merge-patch+json";
  request.timeout = timeout;
  return parts_.client.Send(request);
}

}  // namespace berth::kube
