// SPDX-License-Identifier: Apache-2.0
#include "server/extender/binds/binds.h"

#include <exception>
#include <span>

#include "base/cleanup.h"
#include "scoring/admission.h"
#include "scoring/filters/device_fit.h"

namespace berth {
namespace {

constexpr int kBindAttempts = 3;

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

// Where memory ends the answer is lost, and the client learns that by `done` being gone.
void Tell(const BindsUnderWay::Bind& bind, Status bound) {
  try {
    bind.done(std::move(bound));
  } catch (...) {
  }
}

}  // namespace

bool BindsUnderWay::Begin(const Entry& bind) {
  const BindRequest& request = bind->request;
  std::string elsewhere;
  {
    const MutexLock lock(mutex_);
    const auto [entry, is_new] = by_uid_.try_emplace(request.uid, OfPod{request.node, {}});
    OfPod& pod = entry->second;
    if (!is_new && !pod.node.empty() && pod.node != request.node) {
      elsewhere = pod.node;
    } else if (!is_new) {
      if (in_line_ >= kMostInLine) return false;
      pod.line.push_back(bind);
      ++in_line_;
      return true;
    }
  }
  if (!elsewhere.empty()) {
    bind->done(Fail(Errc::kConflict, "pod is being bound to node " + elsewhere));
    return true;
  }
  if (!jobs_) {
    CarryOut(bind);
    return true;
  }
  if (Post(bind)) return true;
  // Nor is there room for those that stand in line by now, and this thread may not block.
  while (const auto next = End(bind->request.uid)) {
    Tell(*next, Fail(Errc::kDeadline, std::string(kTooManyBinds)));
  }
  return false;
}

bool BindsUnderWay::Post(const Entry& bind, Turn turn) {
  try {
    return jobs_ && jobs_([this, bind, turn] { CarryOut(bind, turn); });
  } catch (const std::exception&) {  // out of memory
    return false;
  }
}

void BindsUnderWay::Release(const Entry& bind) {
  if (!Post(bind, Turn::kReleased)) CarryOut(bind, Turn::kReleased);
}

void BindsUnderWay::GoOnWith(const Entry& next) {
  if (next != nullptr && !Post(next)) CarryOut(next);
}

void BindsUnderWay::Answer(const Entry& bind, Status bound) {
  const Entry next = End(bind->request.uid);
  Tell(*bind, std::move(bound));
  GoOnWith(next);
}

void BindsUnderWay::CarryOut(Entry bind, Turn turn) {
  while (bind != nullptr) {
    std::optional<Status> bound;
    try {
      bound = once_(bind, std::exchange(turn, Turn::kAsksGang));
      if (!bound) return;  // held: it is still under way
    } catch (...) {        // the others in line are carried out
    }
    // Before the answer: the client may ask for the next bind of the pod at once.
    Entry next = End(bind->request.uid);
    if (bound) Tell(*bind, *std::move(bound));
    bind = next != nullptr && Post(next) ? nullptr : std::move(next);
  }
}

bool BindsUnderWay::BetweenBinds(const std::string& uid, const std::function<void()>& ask) {
  {
    const MutexLock lock(mutex_);
    if (!by_uid_.try_emplace(uid).second) return false;
  }
  // Also where it throws: with an entry that stayed every later bind of the pod waits.
  const Cleanup end([&] { GoOnWith(End(uid)); });
  ask();
  return true;
}

BindsUnderWay::Entry BindsUnderWay::End(const std::string& uid) {
  const MutexLock lock(mutex_);
  const auto entry = by_uid_.find(uid);
  OfPod& pod = entry->second;
  if (pod.line.empty()) {
    by_uid_.erase(entry);
    return nullptr;
  }
  Entry next = std::move(pod.line.front());
  pod.line.pop_front();
  --in_line_;
  pod.node = next->request.node;
  return next;
}

Result<PodCommit::Known> PodCommit::Know(const PodId& id,
                                         std::shared_ptr<const PodRequest> remembered) {
  Known known{std::move(remembered)};
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
Result<PodCommit::Granted> PodCommit::Commit(const How& how, Known known, const std::string& node) {
  if (known.bound) {
    if (known.bound->node == node) return Granted{*std::move(known.bound)};
    return Fail(Errc::kConflict, "pod is already bound to node " + known.bound->node);
  }
  const PodRequest& pod = *known.pod;
  if (!pod.refusal.empty()) return Invalid(pod.refusal);
  if (how.to_scheduler || IsGivenByClaim(pod, node)) {
    return BindUnbooked(how, pod, node);
  }
  BERTH_TRY(Granted granted, ReserveOn(how, pod, node));
  if (Status told = TellReserved(how, pod, granted); !told) {
    return AsBoundBefore(pod.id, node, std::move(told).error());
  }
  // A reservation that is gone by now went with its pod.
  (void)parts_.state.Confirm(pod.id.uid);
  return granted;
}

bool PodCommit::IsGivenByClaim(const PodRequest& pod, const std::string& node) const {
  if (!parts_.behind_scheduler || pod.device_class.empty()) return false;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const there = snapshot->FindNode(node);
  return there != nullptr && GetsClaimOn(*there, pod);
}

// Bound there by an earlier attempt: the devices are those that the cluster has.
Result<PodCommit::Granted> PodCommit::AsBoundBefore(const PodId& id, const std::string& node,
                                                    Error error) const {
  const std::optional<PodRecord> held = parts_.state.FindPod(id.uid);
  if (held && held->state == PodState::kBound && held->placement.node == node) {
    return Granted{held->placement};
  }
  return tl::unexpected(std::move(error));
}

// Nothing is reserved, so nothing can be refused: our books may be behind kube-scheduler's, and
// have no such node yet.
Result<PodCommit::Granted> PodCommit::BindUnbooked(const How& how, const PodRequest& pod,
                                                   const std::string& node) {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const there = snapshot->FindNode(node);
  NodeSpec named;
  named.name = node;
  const Placement placement = WithoutDevices(node, pod.shape);
  const Instant deadline = parts_.clock.Now() + how.reservation_time * 4 / 5;
  Status bound = parts_.binder.Bind(
      {pod, placement, there == nullptr ? named : there->spec(), deadline, how.decision});
  if (bound) return Granted{placement};
  if (bound.error().code == Errc::kConflict) {  // it may be bound already
    Result<PodTruth> truth = Settle(pod.id);
    if (truth && truth->placement && truth->placement->node == node) {
      return Granted{*std::move(truth->placement)};
    }
  }
  return AsBoundBefore(pod.id, node, std::move(bound).error());
}

Status PodCommit::TellReserved(const How& how, const PodRequest& pod, const Granted& granted) {
  // The cluster has to be told well before the reservation is overdue.
  const Instant deadline = parts_.clock.Now() + how.reservation_time * 4 / 5;
  Status bound =
      parts_.binder.Bind({pod, granted.placement, granted.node->spec(), deadline, how.decision});
  if (bound || bound.error().code == Errc::kUnavailable) return bound;
  if (bound.error().code == Errc::kConflict) {
    (void)Settle(pod.id);  // it may be bound elsewhere; while nobody knows, the reservation stays
  } else {
    parts_.state.Forget(pod.id.uid);
  }
  return bound;
}

Result<PodTruth> PodCommit::Settle(const PodId& id) {
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

Reason PodCommit::DomainAllows(const PodRequest& pod, const std::string& node) const {
  if (!pod.domain.required) return Reason::kFits;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const GroupPlaces group = parts_.group_of(snapshot, pod);
  if (group.tree == nullptr) return Reason::kFits;
  const NodeIndex index = snapshot->names().Find(node);
  if (index == kNoNode) return Reason::kNodeUnknown;
  return MayJoin(*group.tree, pod, group.members, index);
}

Result<PodCommit::Granted> PodCommit::ReserveOn(const How& how, const PodRequest& pod,
                                                const std::string& node) {
  Error last{Errc::kInternal, ""};
  // What a plan holds for the pod is the pod's; elsewhere the plan only stands in its way.
  if (const auto held = parts_.state.FindPod(pod.id.uid);
      held && held->state == PodState::kPlanned) {
    const Instant deadline = parts_.clock.Now() + how.reservation_time;
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
    const GroupPlaces group = parts_.group_of(snapshot, pod);
    const auto placement = PlaceOn(how.engine, snapshot, pod, group, index);
    if (!placement) {
      return Fail(Errc::kConflict, "pod does not fit: node " + node + " " +
                                       std::string(PredicateOf(placement.error())));
    }
    const Instant deadline = parts_.clock.Now() + how.reservation_time;
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
