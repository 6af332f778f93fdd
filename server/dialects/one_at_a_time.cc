// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/one_at_a_time.h"

#include <algorithm>
#include <utility>

#include "base/cleanup.h"
#include "server/kube/client/api_client.h"

namespace berth::dialects {
namespace {

using wire::In;
using wire::Json;
using wire::TextIn;

constexpr Duration kListTimeout = std::chrono::seconds(3);
constexpr Duration kFirstPause = std::chrono::milliseconds(50);
constexpr Duration kMostPause = std::chrono::milliseconds(500);

bool IsOver(const Json& pod) {
  const std::string phase = TextIn(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed" ||
         !TextIn(pod, {"metadata", "deletionTimestamp"}).empty();
}

// Whether a container asks for some of it. The API server has filled in requests.
bool Asks(const Json& pod, std::string_view resource) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : In(pod, {"spec", list})) {
      const Json& resources = In(container, {"resources"});
      for (const char* amounts : {"requests", "limits"}) {
        const std::string amount = TextIn(resources, {amounts, resource});
        if (!amount.empty() && amount != "0") return true;
      }
    }
  }
  return false;
}

}  // namespace

Result<std::string> OneAtATime::WaitingOn(const std::string& node, const PodId& but,
                                          Duration timeout) {
  const std::string query = kube::EscapeForQuery("spec.nodeName=" + node);
  auto response = write_.client.Send(
      {.path = "/api/v1/pods?fieldSelector=" + query, .timeout = std::min(timeout, kListTimeout)});
  if (!response) return Fail(Errc::kDeadline, std::move(response).error().message);
  if (!response->ok()) {
    const bool for_now = kube::IsTransient(response->status);
    return Fail(for_now ? Errc::kDeadline : Errc::kInvalidArgument,
                "pods of node " + node + ": " + kube::RefusalText(*response));
  }
  const Json list = Json::parse(response->body, nullptr, false);
  if (!list.is_object()) return Fail(Errc::kDeadline, "pods of node " + node + ": want a list");
  return FirstWaiting(node, In(list, {"items"}), but);
}

std::string OneAtATime::FirstWaiting(const std::string& node, const Json& pods, const PodId& but) {
  const WallTime now = write_.clock.Wall();
  const MutexLock lock(mutex_);
  const auto seen_before = seen_.find(node);
  const Times before = seen_before == seen_.end() ? Times() : seen_before->second.since;
  Seen seen{write_.clock.Now(), {}};
  std::string first;
  for (const Json& pod : pods) {
    const Json& metadata = In(pod, {"metadata"});
    const std::string uid = TextIn(metadata, {"uid"});
    if (IsOver(pod) || uid == but.uid || !Asks(pod, handover_.resource)) continue;
    const auto known = before.find(uid);
    const auto says = handover_.waits_since(In(metadata, {"annotations"}));
    if ((!says && known == before.end()) || seen.since.size() >= kMostSeen) continue;
    const WallTime since = known != before.end() ? known->second : std::min(now, *says);
    seen.since.emplace(uid, since);
    if (!says || now - since > kExpires || !first.empty()) continue;
    first = TextIn(metadata, {"namespace"}) + "/" + TextIn(metadata, {"name"});
  }
  KeepSeen(node, std::move(seen));
  return first;
}

void OneAtATime::KeepSeen(const std::string& node, Seen seen) {
  if (const auto before = seen_.find(node); before != seen_.end()) {
    seen_pods_ -= before->second.since.size();
    seen_.erase(before);
  }
  seen_pods_ += seen.since.size();
  if (!seen.since.empty()) seen_.emplace(node, std::move(seen));
  while (seen_pods_ > kMostSeen) {
    const auto oldest =
        std::ranges::min_element(seen_, {}, [](const auto& entry) { return entry.second.looked; });
    seen_pods_ -= oldest->second.since.size();
    seen_.erase(oldest);
  }
}

kube::Attempt OneAtATime::LookAt(const BindOrder& order, Duration left, bool& entered) {
  if (!entered) {
    const MutexLock lock(mutex_);
    entered = binding_.insert(order.node.name).second;
  }
  if (!entered) {
    return {.status =
                Fail(Errc::kDeadline, "another pod is being bound to node " + order.node.name +
                                          ", whose agent serves one at a "
                                          "time")};
  }
  const auto waiting = WaitingOn(order.node.name, order.pod.id, left);
  if (!waiting) {
    return {.status = tl::unexpected(waiting.error()),
            .final = waiting.error().code != Errc::kDeadline};
  }
  if (waiting->empty()) return {.status = {}, .final = true};
  return {.status = Fail(Errc::kDeadline, "the agent of node " + order.node.name +
                                              " has not served pod " + *waiting + " yet")};
}

Status OneAtATime::Await(const BindOrder& order, bool& entered) {
  const auto seed = static_cast<std::uint64_t>(write_.clock.Now().time_since_epoch().count());
  bool waits = false;
  const Cleanup leave([&] {
    if (waits) --waiting_;
  });
  return kube::FencedRetry(write_, order.deadline, {kFirstPause, kMostPause, seed},
                           [&](Duration left) {
                             kube::Attempt attempt = LookAt(order, left, entered);
                             if (!attempt.final && !waits) {
                               waits = ++waiting_ <= kMostWaiting;
                               if (!waits) --waiting_;
                               attempt.final = !waits;
                             }
                             return attempt;
                           });
}

Status OneAtATime::AroundBind(const BindOrder& order, const std::function<Status()>& bind) {
  if (order.node.share_agent != handover_.agent || order.placement.grants.empty()) return bind();
  bool entered = false;
  Status bound = Await(order, entered);
  if (bound) bound = bind();
  if (entered) {
    const MutexLock lock(mutex_);
    binding_.erase(order.node.name);
  }
  return bound;
}

}  // namespace berth::dialects
