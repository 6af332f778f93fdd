// SPDX-License-Identifier: Apache-2.0
//
// The bind verb: whom a bind waits for (binds/binds.h, the pod's gang), how it is carried
// out, and what is remembered and recorded of it.
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/random.h"
#include "server/extender/extender.h"

namespace berth {

bool Extender::Bind(BindRequest request, BindDone done, std::function<bool()> waits) {
  if (request.pod_name.empty() || request.node.empty()) {
    done(Invalid("bind: want PodName and Node, got PodName \"" + request.pod_name +
                 "\" and Node \"" + request.node + "\""));
    return true;
  }
  if (request.uid.empty()) request.uid = request.namespace_name + "/" + request.pod_name;
  return binds_.Begin(std::make_shared<const BindsUnderWay::Bind>(
      BindsUnderWay::Bind{std::move(request), std::move(done), std::move(waits)}));
}

std::optional<Status> Extender::BindOnce(const BindsUnderWay::Entry& bind,
                                         BindsUnderWay::Turn turn) {
  const std::shared_ptr<const Policy> policy = this->policy();
  const BindRequest& request = bind->request;
  const PodId id{request.uid, request.namespace_name, request.pod_name};
  // kube-scheduler waits for a bind a little longer than Berth tries one (reservationSeconds). What
  // has waited for its turn for all that time is refused: it would be carried out after it was
  // given up, while the pod is scheduled anew.
  if (request.asked && turn == BindsUnderWay::Turn::kAsksGang) {
    const Duration waited = parts_.clock.Now() - *request.asked;
    if (waited >= policy->reservation_time * 4 / 5) {
      return Fail(Errc::kDeadline, "bind waited for " +
                                       std::to_string(waited / std::chrono::seconds(1)) +
                                       " s, and its client has given up by now");
    }
  }
  pending_.BindComes(id.uid);
  Result<PodCommit::Known> known = commit_.Know(id, pending_.Find(id.uid));
  const bool is_member = known && !known->bound && StartsWithGang(*policy, *known->pod);
  if (is_member) {
    GangActions actions;
    const bool is_held =
        parts_.gangs->Hold(*policy->engine, bind, known->pod, parts_.clock.Now(), actions);
    Do(std::move(actions));
    if (is_held) return std::nullopt;
  }
  Status bound = Fail(Errc::kInternal, "the bind gave no result");
  const std::shared_ptr<const PodRequest> member = is_member ? known->pod : nullptr;
  const Cleanup ended([&] {  // also where the binder throws
    if (member == nullptr) return;
    try {
      GangActions actions;
      parts_.gangs->Ended(*member, bound, parts_.clock.Now(), actions);
      Do(std::move(actions));
    } catch (const std::exception&) {  // out of memory: GangTable finds out by looking
    }
  });
  const std::string decision = NextDecisionId();
  const std::optional<WallTime> created = CreatedOf(id);  // the watch may forget it meanwhile
  const auto granted = std::move(known).and_then([&](PodCommit::Known pod) {
    const bool to_scheduler = LeavesToScheduler(*policy, *pod.pod);
    return commit_.Commit({*policy->engine, policy->reservation_time, to_scheduler, decision},
                          std::move(pod), request.node);
  });
  if (!granted) {
    parts_.sink.Record(
        {.verb = Verb::kBind, .pod = &id, .error = &granted.error(), .id = decision});
    return bound = tl::unexpected(granted.error());
  }
  std::optional<Duration> waited;
  if (created) waited = AgeAt(parts_.clock.Wall(), *created);
  pending_.Forget(id.uid);
  evictions_.Forget(id.uid);
  earmarks_.Leave(id.uid);
  parts_.sink.Record({.verb = Verb::kBind,
                      .pod = &id,
                      .placement = &granted->placement,
                      .id = decision,
                      .link_quality = granted->link_quality,
                      .waited = waited});
  return bound = Status();
}

std::optional<WallTime> Extender::CreatedOf(const PodId& id) const {
  if (parts_.waiting == nullptr) return std::nullopt;
  const auto waiting = parts_.waiting->Find(id.uid);
  return waiting ? waiting->created : std::nullopt;
}

// Sixteen hexadecimal digits: no two of a process are alike, and those of two hardly ever.
std::string Extender::NextDecisionId() {
  const auto time = static_cast<std::uint64_t>(parts_.clock.Wall().time_since_epoch().count());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(Mix64(time + decisions_.fetch_add(1))));
  return text;
}

std::size_t Extender::SettleOverdue() {
  std::size_t settled = 0;
  for (const ClusterState::Doubt& overdue : parts_.state.Overdue(parts_.clock.Now())) {
    const PodId& id = overdue.pod;
    bool is_down = false;
    binds_.BetweenBinds(id.uid, [&] {
      const auto doubt = parts_.state.DoubtAbout(id.uid);
      if (!doubt || doubt->number != overdue.number) return;  // a bind has come and gone meanwhile
      const auto truth = commit_.Settle(id);
      is_down = !truth && truth.error().code != Errc::kNotFound;
      settled += is_down ? 0 : 1;
    });
    if (is_down) break;
  }
  return settled;
}

}  // namespace berth
