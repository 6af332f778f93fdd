// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_node_lock.h"

#include <algorithm>
#include <utility>

#include "server/kube/client/api_client.h"
#include "server/wire/api/writes_json.h"
#include "server/wire/json/json_text.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/pod_object.h"

namespace berth::dialects {

namespace {

constexpr Duration kMostPerRequest = std::chrono::seconds(3);
constexpr Duration kFirstWait = std::chrono::milliseconds(50);
constexpr Duration kMostWait = std::chrono::milliseconds(500);
constexpr int kReleaseAttempts = 3;

// A conflict: the node was changed since it was read.
bool IsForNow(int status) { return status == 409 || kube::IsTransient(status); }

kube::Attempt RefusalOf(const kube::ApiResponse& response) {
  const bool is_for_now = IsForNow(response.status);
  const Errc code = response.status == 404 ? Errc::kNotFound
                    : is_for_now           ? Errc::kDeadline
                                           : Errc::kInvalidArgument;
  return {.status = Fail(code, "HAMi's lock on the node: " + kube::RefusalText(response)),
          .final = !is_for_now,
          .retry_after = response.retry_after};
}

Result<LockedNode> NodeIn(kube::ApiResponse response) {
  return DecodeLockedNode(PaddedText(std::move(response.body)));
}

// Whether HAMi's scheduler has placed the pod; yes where that cannot be read.
bool IsHamis(std::string_view pod) {
  const wire::Json json = wire::Json::parse(pod, nullptr, false);
  if (!json.is_object()) return true;
  return json.contains(wire::Json::json_pointer("/metadata/annotations/hami.io~1vgpu-node"));
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

kube::Backoff HamiNodeLock::Waits() const {
  const auto seed = static_cast<std::uint64_t>(write_.clock.Now().time_since_epoch().count());
  return {kFirstWait, kMostWait, seed};
}

Status HamiNodeLock::Take(const PodId& pod, Instant deadline, Held& held) {
  BERTH_TRY_STATUS(kube::NodePath(held.node));
  WaitingPlace place(waiting_);
  return kube::FencedRetry(write_, deadline, Waits(), [&](Duration left) {
    bool held_by_other = false;
    kube::Attempt attempt = TryTake(pod, held, std::min(kMostPerRequest, left), held_by_other);
    if (held_by_other && !place.Take()) attempt.final = true;
    return attempt;
  });
}

kube::Attempt HamiNodeLock::TryTake(const PodId& pod, Held& held, Duration timeout,
                                    bool& held_by_other) {
  auto response = write_.client.Send({.path = *kube::NodePath(held.node), .timeout = timeout});
  if (!response) return {.status = Fail(Errc::kDeadline, std::move(response).error().message)};
  if (!response->ok()) return RefusalOf(*response);
  const auto node = NodeIn(*std::move(response));
  if (!node) return {.status = Fail(Errc::kDeadline, node.error().message)};
  const auto open = IsOpen(node->lock, held.node, pod, timeout);
  if (!open) return {.status = tl::unexpected(open.error()), .final = true};
  if (!*open) {
    held_by_other = true;
    return {.status = Fail(Errc::kDeadline, "HAMi's lock on the node is held for another pod")};
  }
  held.text = EncodeHamiLock(write_.clock.Wall(), pod);
  response = Patch(held.node, node->resource_version, held.text, timeout);
  if (!response) return {.status = Fail(Errc::kDeadline, std::move(response).error().message)};
  if (response->ok()) return {.status = {}, .final = true};
  return RefusalOf(*response);
}

Result<bool> HamiNodeLock::IsOpen(const std::string& text, const std::string& node,
                                  const PodId& pod, Duration timeout) {
  if (text.empty()) return true;
  auto lock = ParseHamiLock(text);
  if (!lock) {
    return tl::unexpected(std::move(lock).error().Within("node " + node + ": annotation " +
                                                         std::string(kHamiLockAnnotation)));
  }
  if (lock->namespace_name == pod.namespace_name && lock->pod == pod.name) return true;
  if (write_.clock.Wall() - lock->since > kExpires) return true;
  if (lock->pod.empty()) return false;
  auto path = kube::PodPath(lock->namespace_name, lock->pod);
  if (!path) return true;  // there can be no such pod
  auto response = write_.client.Send({.path = *std::move(path), .timeout = timeout});
  if (!response) return false;
  if (response->status == 404) return true;
  if (!response->ok()) return false;
  const PaddedText pod_text(std::move(response->body));
  const auto owner = wire::DecodeObservedPod(pod_text, rules_);
  if (!owner) return false;
  if (owner->over || (!owner->node.empty() && owner->node != node)) return true;
  return owner->node.empty() && write_.clock.Wall() - lock->since > kAbandoned &&
         !is_binding_(FullName(lock->namespace_name, lock->pod)) && !IsHamis(pod_text.view());
}

Status HamiNodeLock::Release(const Held& held) {
  Error last;
  kube::Backoff waits = Waits();
  for (int attempt = 0; attempt < kReleaseAttempts; ++attempt) {
    if (attempt > 0) write_.sleep(waits.Next());
    auto response =
        write_.client.Send({.path = *kube::NodePath(held.node), .timeout = kMostPerRequest});
    if (response && response->status == 404) return {};
    if (response && response->ok()) {
      const auto node = NodeIn(*std::move(response));
      if (node && node->lock != held.text) return {};
      if (!node) return Fail(Errc::kUnavailable, node.error().message);
      response = Patch(held.node, node->resource_version, "", kMostPerRequest);
      if (response && response->ok()) return {};
    }
    last.message = response ? kube::RefusalText(*response) : std::move(response).error().message;
  }
  return Fail(Errc::kUnavailable, std::move(last.message));
}

Result<kube::ApiResponse> HamiNodeLock::Patch(const std::string& node, const std::string& version,
                                              std::string_view lock, Duration timeout) {
  kube::ApiRequest request;
  request.method = "PATCH";
  request.path = *kube::NodePath(node);
  request.body = EncodeLockPatch(version, lock);
  request.content_type = "application/merge-patch+json";
  request.timeout = timeout;
  return write_.client.Send(request);
}

namespace {

using wire::ForEachField;
using wire::Json;
using wire::ReadObject;

}  // namespace

Result<HamiLock> ParseHamiLock(std::string_view text) {
  const std::size_t first = text.find(',');
  const std::size_t second = first == std::string_view::npos ? first : text.find(',', first + 1);
  HamiLock lock;
  const auto since = wire::ParseTime(text.substr(0, first));
  bool well_formed = since.has_value();
  if (first != std::string_view::npos) {
    well_formed = well_formed && second != std::string_view::npos &&
                  text.find(',', second + 1) == std::string_view::npos;
  }
  if (!well_formed) {
    return Invalid("want TIME,NAMESPACE,POD with the time as 2026-08-21T10:00:00Z, got \"" +
                   std::string(text.substr(0, 100)) + "\"");
  }
  lock.since = *since;
  if (first != std::string_view::npos) {
    lock.namespace_name = text.substr(first + 1, second - first - 1);
    lock.pod = text.substr(second + 1);
  }
  return lock;
}

std::string EncodeHamiLock(WallTime now, const PodId& pod) {
  return wire::SecondTime(now) + "," + pod.namespace_name + "," + pod.name;
}

Result<LockedNode> DecodeLockedNode(const PaddedText& text) {
  LockedNode node;
  BERTH_TRY_STATUS(ReadObject(text, [&node](simdjson::ondemand::object fields) -> Status {
    ForEachField(fields, [&node](std::string_view key, simdjson::ondemand::value metadata) {
      if (key != "metadata") return;
      ForEachField(metadata.get_object(), [&node](std::string_view name, auto content) {
        if (name == "resourceVersion") {
          node.resource_version = std::string_view(content.get_string());
        }
        if (name != "annotations") return;
        ForEachField(content.get_object(), [&node](std::string_view annotation, auto value) {
          if (annotation == kHamiLockAnnotation) node.lock = std::string_view(value.get_string());
        });
      });
    });
    return {};
  }));
  if (node.resource_version.empty()) return Invalid("want a Node with a resourceVersion, got none");
  return node;
}

std::string EncodeLockPatch(std::string_view resource_version, std::string_view lock) {
  Json annotations = {{kHamiLockAnnotation, nullptr}};
  if (!lock.empty()) annotations[std::string(kHamiLockAnnotation)] = lock;
  return wire::JsonText(
      {{"metadata",
        {{"resourceVersion", resource_version}, {"annotations", std::move(annotations)}}}});
}

}  // namespace berth::dialects
