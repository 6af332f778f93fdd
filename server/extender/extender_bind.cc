// SPDX-License-Identifier: Apache-2.0
//
// The bind verb: reserve, tell the cluster, confirm; and what becomes of binds in doubt.
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
#include "scoring/admission.h"
#include "scoring/filters/device_fit.h"
#include "server/extender/extender.h"

namespace berth {
namespace {

Status WaitedTooLong(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  return Fail(Errc::kDeadline, "bind waited for " + std::to_string(seconds) +
                                   " s, and its client has given up by now");
}

// Where memory ends the answer is lost, and the client learns that by `done` being gone.
void Tell(const BindsUnderWay::Bind& bind, Status bound) {
  try {
    bind.done(std::move(bound));
  } catch (...) {
  }
}

// What a claim has given the pod already is not chosen any more.
tl::expected<Placement, Reason> PlaceOn(Engine& engine,
                                        const std::shared_ptr<const Snapshot>& snapshot,
                                        const PodRequest& pod, const GroupPlaces& group,
                                        NodeIndex index) {
  const Node& node = snapshot->node(index);
  if (!node.IsHeldByClaim(pod)) return PlaceInGroup(engine, snapshot, pod, group, index);
  Placement placement = WithoutDevices(node.spec().name, pod.shape);
  placement.grants = GrantsByClaim(node.spec(), *node.claims(), pod);
  return placement;
}

}  // namespace

bool Extender::Bind(BindRequest request, BindDone done, std::function<bool()> waits) {
  if (request.pod_name.empty() || request.node.empty()) {
    done(Invalid("bind: want PodName and Node, got PodName \"" + request.pod_name +
                 "\" and Node \"" + request.node + "\""));
    return true;
  }
  if (request.uid.empty()) request.uid = request.namespace_name + "/" + request.pod_name;
  const auto bind = std::make_shared<const BindsUnderWay::Bind>(
      BindsUnderWay::Bind{std::move(request), std::move(done), std::move(waits)});
  const BindsUnderWay::Begun begun = under_way_.Begin(bind);
  switch (begun.outcome) {
    case BindsUnderWay::Outcome::kInLine:
      return true;
    case BindsUnderWay::Outcome::kTooMany:
      return false;
    case BindsUnderWay::Outcome::kElsewhere:
      bind->done(Fail(Errc::kConflict, "pod is being bound to node " + begun.node));
      return true;
    case BindsUnderWay::Outcome::kBegins:
      break;
  }
  if (!jobs_) {
    CarryOut(bind);
    return true;
  }
  if (Post(bind)) return true;
  // Nor is there room for those that stand in line by now, and this thread may not block.
  while (const auto next = under_way_.End(bind->request.uid)) {
    Tell(*next, Fail(Errc::kDeadline, std::string(kTooManyBinds)));
  }
  return false;
}

bool Extender::Post(const BindsUnderWay::Entry& bind, Turn turn) {
  try {
    return jobs_ && jobs_([this, bind, turn] { CarryOut(bind, turn); });
  } catch (const std::exception&) {  // out of memory
    return false;
  }
}

void Extender::CarryOnWith(const BindsUnderWay::Entry& next) {
  if (next != nullptr && !Post(next)) CarryOut(next);
}

void Extender::Answer(const BindsUnderWay::Entry& bind, Status bound) {
  const BindsUnderWay::Entry next = under_way_.End(bind->request.uid);
  Tell(*bind, std::move(bound));
  CarryOnWith(next);
}

void Extender::CarryOut(BindsUnderWay::Entry bind, Turn turn) {
  while (bind != nullptr) {
    std::optional<Status> bound;
    try {
      bound = BindOnce(bind, std::exchange(turn, Turn::kAsksGang));
      if (!bound) return;  // held: it is still under way
    } catch (...) {        // the others in line are carried out
    }
    // Before the answer: the client may ask for the next bind of the pod at once.
    BindsUnderWay::Entry next = under_way_.End(bind->request.uid);
    if (bound) Tell(*bind, *std::move(bound));
    bind = next != nullptr && Post(next) ? nullptr : std::move(next);
  }
}

std::optional<Status> Extender::BindOnce(const BindsUnderWay::Entry& bind, Turn turn) {
  const std::shared_ptr<const Policy> policy = this->policy();
  const BindRequest& request = bind->request;
  const PodId id{request.uid, request.namespace_name, request.pod_name};
  // kube-scheduler waits for a bind a little longer than Berth tries one (reservationSeconds). What
  // has waited for its turn for all that time is refused: it would be carried out after it was
  // given up, while the pod is scheduled anew.
  if (request.asked && turn == Turn::kAsksGang) {
    const Duration waited = parts_.clock.Now() - *request.asked;
    if (waited >= policy->reservation_time * 4 / 5) return WaitedTooLong(waited);
  }
  Result<Known> known = Know(id);
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
  const Result<Granted> granted = known ? Commit(*policy, *std::move(known), request.node, decision)
                                        : Result<Granted>(tl::unexpected(std::move(known).error()));
  if (!granted) {
    parts_.sink.Record(
        {.verb = Verb::kBind, .pod = &id, .error = &granted.error(), .id = decision});
    return bound = tl::unexpected(granted.error());
  }
  pending_.Forget(id.uid);
  evictions_.Forget(id.uid);
  earmarks_.Leave(id.uid);
  parts_.sink.Record({.verb = Verb::kBind,
                      .pod = &id,
                      .placement = &granted->placement,
                      .id = decision,
                      .link_quality = granted->link_quality,
                      .waited = SinceWall(created)});
  return bound = Status();
}

std::optional<WallTime> Extender::CreatedOf(const PodId& id) const {
  if (parts_.waiting == nullptr) return std::nullopt;
  const auto waiting = parts_.waiting->Find(id.uid);
  return waiting ? waiting->created : std::nullopt;
}

std::optional<Duration> Extender::SinceWall(const std::optional<WallTime>& then) const {
  if (!then) return std::nullopt;
  return AgeAt(parts_.clock.Wall(), *then);
}

// Sixteen hexadecimal digits: no two of a process are alike, and those of two hardly ever.
std::string Extender::NextDecisionId() {
  const auto time = static_cast<std::uint64_t>(parts_.clock.Wall().time_since_epoch().count());
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(Mix64(time + decisions_.fetch_add(1))));
  return text;
}

Result<Extender::Known> Extender::Know(const PodId& id) {
  pending_.BindComes(id.uid);
  Known known{pending_.Find(id.uid), {}};
  std::optional<PodRecord> held = parts_.state.FindPod(id.uid);
  // In doubt since an earlier bind, or never heard of since a restart: the cluster knows.
  if (held ? held->state == PodState::kReserved : known.pod == nullptr) {
    BERTH_TRY(PodTruth truth, Settle(id));
    known.pod = std::make_shared<const PodRequest>(std::move(truth.pod));
    known.bound = std::move(truth.placement);
    held = parts_.state.FindPod(id.uid);
  }
  if (held && held->state == PodState::kBound) known.bound = held->placement;
  if (known.pod == nullptr && held) known.pod = std::make_shared<const PodRequest>(held->pod);
  return known;
}

// Reserve, tell the cluster, confirm.
Result<Extender::Granted> Extender::Commit(const Policy& policy, Known known,
                                           const std::string& node, std::string_view decision) {
  if (known.bound) {
    if (known.bound->node == node) return Granted{*std::move(known.bound)};
    return Fail(Errc::kConflict, "pod is already bound to node " + known.bound->node);
  }
  const PodRequest& pod = *known.pod;
  if (!pod.refusal.empty()) return Invalid(pod.refusal);
  if (LeavesToScheduler(policy, pod) || IsGivenByClaim(pod, node)) {
    return BindUnbooked(policy, pod, node, decision);
  }
  BERTH_TRY(Granted granted, ReserveOn(policy, pod, node));
  if (Status told = TellReserved(policy, pod, granted, decision); !told) {
    return AsBoundBefore(pod.id, node, std::move(told).error());
  }
  // A reservation that is gone by now went with its pod.
  (void)parts_.state.Confirm(pod.id.uid);
  return granted;
}

bool Extender::IsGivenByClaim(const PodRequest& pod, const std::string& node) const {
  if (!parts_.behind_scheduler || pod.device_class.empty()) return false;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const there = snapshot->FindNode(node);
  return there != nullptr && GetsClaimOn(*there, pod);
}

// Bound there by an earlier attempt: the devices are those that the cluster has.
Result<Extender::Granted> Extender::AsBoundBefore(const PodId& id, const std::string& node,
                                                  Error error) const {
  const std::optional<PodRecord> held = parts_.state.FindPod(id.uid);
  if (held && held->state == PodState::kBound && held->placement.node == node) {
    return Granted{held->placement};
  }
  return tl::unexpected(std::move(error));
}

// Nothing is reserved, so nothing can be refused: our books may be behind kube-scheduler's, and
// have no such node yet.
Result<Extender::Granted> Extender::BindUnbooked(const Policy& policy, const PodRequest& pod,
                                                 const std::string& node,
                                                 std::string_view decision) {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const there = snapshot->FindNode(node);
  NodeSpec named;
  named.name = node;
  const Placement placement = WithoutDevices(node, pod.shape);
  const Instant deadline = parts_.clock.Now() + policy.reservation_time * 4 / 5;
  Status bound = parts_.binder.Bind(
      {pod, placement, there == nullptr ? named : there->spec(), deadline, decision});
  if (bound) return Granted{placement};
  if (bound.error().code == Errc::kConflict) {  // it may be bound already
    Result<PodTruth> truth = Settle(pod.id);
    if (truth && truth->placement && truth->placement->node == node) {
      return Granted{*std::move(truth->placement)};
    }
  }
  return AsBoundBefore(pod.id, node, std::move(bound).error());
}

Status Extender::TellReserved(const Policy& policy, const PodRequest& pod, const Granted& granted,
                              std::string_view decision) {
  // The cluster has to be told well before the reservation is overdue.
  const Instant deadline = parts_.clock.Now() + policy.reservation_time * 4 / 5;
  Status bound =
      parts_.binder.Bind({pod, granted.placement, granted.node->spec(), deadline, decision});
  if (bound || bound.error().code == Errc::kUnavailable) return bound;
  if (bound.error().code == Errc::kConflict) {
    (void)Settle(pod.id);  // it may be bound elsewhere; while nobody knows, the reservation stays
  } else {
    parts_.state.Forget(pod.id.uid);
  }
  return bound;
}

// Asks the cluster about the pod, and books the answer if it is about a doubt that still exists. A
// pod that the books do not hold is left to the watch: it may have been deleted since the answer.
Result<PodTruth> Extender::Settle(const PodId& id) {
  const std::optional<ClusterState::Doubt> doubt = parts_.state.DoubtAbout(id.uid);
  Result<PodTruth> truth = parts_.binder.Find(id);
  if (doubt && truth && truth->placement) {
    parts_.state.Settle(*doubt, PodBound{truth->pod, *truth->placement, true, truth->leaving,
                                         truth->lacks_devices, truth->given});
  } else if (doubt && (truth || truth.error().code == Errc::kNotFound)) {
    parts_.state.Settle(*doubt, std::nullopt);
  }
  return truth;
}

std::size_t Extender::SettleOverdue() {
  std::size_t settled = 0;
  for (const ClusterState::Doubt& overdue : parts_.state.Overdue(parts_.clock.Now())) {
    const PodId& id = overdue.pod;
    if (!under_way_.BeginToAsk(id.uid)) continue;
    // Also when the binder throws: with an entry that stayed every later bind of the pod waits.
    const Cleanup end([&] { CarryOnWith(under_way_.End(id.uid)); });
    const auto doubt = parts_.state.DoubtAbout(id.uid);
    if (!doubt || doubt->number != overdue.number) continue;  // a bind has come and gone meanwhile
    if (const auto truth = Settle(id); !truth && truth.error().code != Errc::kNotFound) break;
    ++settled;
  }
  return settled;
}

Reason Extender::DomainAllows(const PodRequest& pod, const std::string& node) const {
  if (parts_.domains == nullptr || !pod.domain.required) return Reason::kFits;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const NodeIndex index = snapshot->names().Find(node);
  if (index == kNoNode) return Reason::kNodeUnknown;
  const GroupPlaces group = GroupOf(snapshot, pod);
  return MayJoin(*group.tree, pod, group.members, index);
}

Result<Extender::Granted> Extender::ReserveOn(const Policy& policy, const PodRequest& pod,
                                              const std::string& node) {
  Error last{Errc::kInternal, ""};
  // What a plan holds for the pod is the pod's; elsewhere the plan only stands in its way.
  if (const auto held = parts_.state.FindPod(pod.id.uid);
      held && held->state == PodState::kPlanned) {
    const Instant deadline = parts_.clock.Now() + policy.reservation_time;
    if (held->placement.node == node) {
      if (auto on = parts_.state.Reserve(pod, held->placement, deadline)) {
        return Granted{held->placement, LinkQualityRatio(**on, held->placement), *std::move(on)};
      }
    }
    parts_.state.Unplan(std::span(&pod.id.uid, 1));
  }
  for (int attempt = 0; attempt < kBindAttempts; ++attempt) {
    const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
    const NodeIndex index = snapshot->names().Find(node);
    if (index == kNoNode) return Fail(Errc::kNotFound, "node " + node + " is not known");
    const GroupPlaces group = GroupOf(snapshot, pod);
    const auto placement = PlaceOn(*policy.engine, snapshot, pod, group, index);
    if (!placement) {
      return Fail(Errc::kConflict, "pod does not fit: node " + node + " " +
                                       std::string(PredicateOf(placement.error())));
    }
    const Instant deadline = parts_.clock.Now() + policy.reservation_time;
    auto reserved = parts_.state.Reserve(pod, *placement, deadline);
    if (reserved) {
      // Asked when the reservation can be seen: of two members that are bound at the same time, at
      // least the later one finds the other.
      const Reason domain = DomainAllows(pod, node);
      if (domain != Reason::kFits) {
        parts_.state.Forget(pod.id.uid);
        return Fail(Errc::kConflict,
                    "pod does not fit: node " + node + " " + std::string(PredicateOf(domain)));
      }
      return Granted{*placement, LinkQualityRatio(**reserved, *placement), *std::move(reserved)};
    }
    last = std::move(reserved).error();
    if (last.code != Errc::kConflict) break;
  }
  return tl::unexpected(std::move(last));
}

}  // namespace berth
