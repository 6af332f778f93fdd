// SPDX-License-Identifier: Apache-2.0
#include "server/planners/moves/room_run.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "base/text.h"
#include "scoring/explain/node_report.h"
#include "scoring/room/room_nodes.h"

namespace berth {
namespace {

std::string MoveText(const RoomOrder::Move& move) {
  return move.pod.id.full_name() + " from " + move.from.node + " to " + move.to.node;
}

}  // namespace

RoomRun::RoomRun(const Parts& parts, RoomOrder order) : parts_(parts), order_(std::move(order)) {
  progress_ = {.name = order_.name, .is_gang = !order_.gang.empty(), .begun = parts_.clock.Wall()};
  for (const RoomOrder::Move& move : order_.moves) {
    progress_.moves.push_back({move.pod.id, move.from.node, move.to.node});
  }
  problem_ = KeepNodes();
  for (const RoomOrder::Move& move : order_.moves) {
    if (problem_.empty() && parts_.holds.Hold(move.pod, move.to)) {
      known_.insert(MoveHolds::StandInOf(move.pod.id.uid));
    }
  }
  if (!problem_.empty()) return;
  Tell(RoomNews::What::kBegun, "Berth moves " + CountText(std::ssize(order_.moves), "pod") + " " +
                                   Aim() + ": " + Join(order_.moves, ", ", MoveText));
}

RoomRun::~RoomRun() { LetGo(); }

RoomRun::State RoomRun::Step() {
  if (reached_) return Finish();
  std::string why = problem_;
  if (why.empty()) why = WhyGoalIsGone();
  const bool all_made = next_ == order_.moves.size();
  if (why.empty() && in_ == order_.places.size() && (all_made || in_ > 0)) {
    reached_ = true;
    LeaveNodes();
    return Finish();
  }
  if (why.empty()) why = WhoCame();
  if (why.empty() && all_made) {
    why = LetIn();
  } else if (why.empty()) {
    const RoomOrder::Move& move = order_.moves[next_];
    if (evicted_ || !MayNeedNoRoom()) {
      elsewhere_.reset();
      why = evicted_ ? AwaitSuccessor(move) : Evict(move);
    } else if (!elsewhere_) {
      elsewhere_ = parts_.clock.Now();
    } else if (parts_.clock.Now() - *elsewhere_ >= kComesWithin) {
      why = order_.name + " has had a place elsewhere for long, and is not bound there";
    }
  }
  if (why.empty()) return State::kGoesOn;
  GiveUp(why);
  return State::kGivenUp;
}

RoomRun::State RoomRun::Finish() {
  // The pod that was evicted last still has its place.
  if (evicted_ && AwaitSuccessor(order_.moves[next_]).empty() && evicted_) return State::kGoesOn;
  LetGo();
  progress_.ended = CountText(counts_.evicted, "pod") + (counts_.evicted == 1 ? " was" : " were") +
                    " moved for it";
  progress_.is_done = true;
  Tell(RoomNews::What::kDone, progress_.ended);
  return State::kDone;
}

void RoomRun::GiveUp(const std::string& why) {
  LetGo();
  const std::string made =
      std::to_string(next_) + " of " + CountText(std::ssize(order_.moves), "move") + " made";
  progress_.ended = why + " (" + made + ")";
  Tell(RoomNews::What::kGivenUp,
       "Berth makes no more room for " + order_.name + ": " + progress_.ended);
}

std::string RoomRun::KeepNodes() {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  for (const RoomOrder::Move& move : order_.moves) kept_.insert(move.from.node);
  for (const RoomOrder::Place& place : order_.places) {
    kept_.insert(place.node);
    known_.insert(place.pod.uid);
  }
  const auto rooms = parts_.rooms.Current();
  for (const std::string& name : kept_) {
    if (rooms->contains(name)) {
      kept_.clear();  // nothing was kept yet
      return name + " is kept for another pod";
    }
  }
  for (const std::string& name : kept_) {
    if (const Node* const node = snapshot->FindNode(name)) {
      for (const auto& pod : node->pods()) known_.insert(pod->pod.id.uid);
    }
    DeviceRoom room{.pod = ForWhom(), .gang = order_.gang, .moves = true};
    room.priority = order_.priority;
    room.node = name;
    room.since = parts_.clock.Now();
    for (const RoomOrder::Move& move : order_.moves) {
      if (move.from.node == name) room.victims.push_back(move.pod.id);
    }
    if (!parts_.rooms.Put(std::move(room))) return "too many nodes are kept for pods";
  }
  return "";
}

std::string RoomRun::HoldTarget(const RoomOrder::Move& move) {
  if (parts_.holds.Has(move.pod.id.uid)) {
    // Somebody who does not ask Berth may have been bound there.
    const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
    if (const Node* const node = snapshot->FindNode(move.to.node)) {
      Node without = *node;
      without.Remove(MoveHolds::StandInOf(move.pod.id.uid));
      if (without.CanTake(move.to)) return "";
    }
    return "the place on " + move.to.node + " for " + move.pod.id.full_name() + " is taken";
  }
  if (const Status held = parts_.holds.Hold(move.pod, move.to); !held) {
    return "there is no place on " + move.to.node + " for " + move.pod.id.full_name() + " (" +
           held.error().message + ")";
  }
  known_.insert(MoveHolds::StandInOf(move.pod.id.uid));
  return "";
}

std::string RoomRun::WhyGoalIsGone() {
  in_ = 0;
  for (const RoomOrder::Place& place : order_.places) {
    const auto held = parts_.state.FindPod(place.pod.uid);
    if (held && held->state == PodState::kBound) {
      ++in_;
      continue;
    }
    if (held && held->state == PodState::kReserved) continue;
    const auto waits = parts_.waiting.Find(place.pod.uid);
    if (!waits) return place.pod.full_name() + " is gone";
    if (waits->gated()) return place.pod.full_name() + " has a scheduling gate";
  }
  return "";
}

bool RoomRun::MayNeedNoRoom() const {
  PodRecords pods;
  if (!order_.gang.empty()) {
    pods = parts_.state.GangPods(order_.gang).pods;  // its plan may be for others of its members
  } else if (!order_.places.empty()) {
    if (auto pod = parts_.state.FindPod(order_.places.front().pod.uid)) {
      pods.push_back(std::make_shared<const PodRecord>(*std::move(pod)));
    }
  }
  return std::ranges::any_of(pods, [this](const std::shared_ptr<const PodRecord>& pod) {
    return pod->state == PodState::kReserved ||
           (pod->state == PodState::kPlanned && !kept_.contains(pod->placement.node));
  });
}

std::string RoomRun::WhoCame() {
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  // After the snapshot: a successor that has its place in it is known by then.
  for (const RoomOrder::Move& move : order_.moves) {
    if (const auto successor = parts_.holds.SuccessorOf(move.pod.id.uid)) {
      known_.insert(successor->uid);
    }
  }
  for (const std::string& name : kept_) {
    const Node* const node = snapshot->FindNode(name);
    if (node == nullptr) return "node " + name + " is gone";
    for (const auto& pod : node->pods()) {
      if (!pod->pod.shape.wants_gpu() || known_.contains(pod->pod.id.uid)) continue;
      if (!order_.gang.empty() && pod->pod.gang.id == order_.gang) continue;
      return pod->pod.id.full_name() + " came to " + name;
    }
  }
  return "";
}

std::string RoomRun::WhyNot(const RoomOrder::Move& move) const {
  const std::string name = move.pod.id.full_name();
  const auto held = parts_.state.FindPod(move.pod.id.uid);
  if (!held || held->leaving) return name + " has ended";
  if (!(held->placement == move.from)) return name + " has other devices than planned";
  const auto budgets = parts_.budgets == nullptr ? nullptr : parts_.budgets->Current();
  MoveRules rules{.now = parts_.clock.Wall(),
                  .keep_model = parts_.extender.policy()->moves_keep_model,
                  .schedulers = parts_.extender.pending().Schedulers()};
  if (budgets != nullptr) rules.budgets = *budgets;
  const Stays stays = WhyItStays(*held, rules);
  if (stays != Stays::kNot) return name + " stays: " + std::string(TextOf(stays));
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  const Node* const to = snapshot->FindNode(move.to.node);
  if (to == nullptr) return "node " + move.to.node + " is gone";
  if (!to->spec().ready) return "node " + move.to.node + " is not ready";
  const Node* const from = snapshot->FindNode(move.from.node);
  if (from != nullptr && !MayMoveTo(*to, held->pod, *from, rules)) {
    return "node " + move.to.node + " no longer takes " + name;
  }
  return "";
}

std::string RoomRun::Evict(const RoomOrder::Move& move) {
  std::string why = WhyNot(move);
  if (why.empty()) why = HoldTarget(move);
  if (!why.empty()) return why;
  const std::string name = move.pod.id.full_name();
  parts_.holds.Open(move.pod.id.uid);  // first: its controller may be faster than the answer
  switch (parts_.evictor.Evict(move.pod.id)) {
    case PodEvictor::Outcome::kEvicted:
      break;
    case PodEvictor::Outcome::kBlocked:
      ++counts_.blocked;
      return "a PodDisruptionBudget does not allow the eviction of " + name;
    case PodEvictor::Outcome::kFailed:
    case PodEvictor::Outcome::kUnknown:
      ++counts_.failed;
      return "the eviction of " + name + " failed; Berth's log says why";
  }
  ++counts_.evicted;
  evicted_ = parts_.clock.Now();
  progress_.moves[next_].step = RoomProgress::Step::kEnds;
  Tell(RoomNews::What::kEvicted,
       "Berth evicts it from " + move.from.node + " " + Aim() + "; a place on " + move.to.node +
           " is held for its successor",
       move.pod.id);
  return "";
}

std::string RoomRun::AwaitSuccessor(const RoomOrder::Move& move) {
  const std::string& uid = move.pod.id.uid;
  const std::string name = move.pod.id.full_name();
  const auto successor = parts_.holds.SuccessorOf(uid);
  if (successor) {
    const auto held = parts_.state.FindPod(successor->uid);
    if (held && held->placement.node != move.to.node) {
      return successor->full_name() + " went to " + held->placement.node + " and not to " +
             move.to.node;
    }
    if (!held && !parts_.waiting.Find(successor->uid)) return successor->full_name() + " is gone";
    if (held && held->state == PodState::kBound && !IsOn(uid, move.from.node)) {
      Tell(RoomNews::What::kMoved,
           "It takes the place on " + move.to.node +
               " that Berth held for "
               "the successor of " +
               name,
           *successor);
      parts_.holds.Release(uid);
      progress_.moves[next_].step = RoomProgress::Step::kMoved;
      ++next_;
      evicted_.reset();
      return "";
    }
  }
  const Duration within = kComesWithin + std::chrono::seconds(move.pod.grace_seconds);
  if (parts_.clock.Now() - *evicted_ < within) return "";
  return successor ? successor->full_name() + " did not start on " + move.to.node + " in time"
                   : "no successor of " + name + " came in time";
}

std::string RoomRun::LetIn() {
  const Instant now = parts_.clock.Now();
  const PodId& first = order_.places.front().pod;
  if (!made_) {
    made_ = now;
    // A gang plans for itself: it is asked about again, and the nodes are kept for it meanwhile.
    if (!order_.gang.empty()) (void)parts_.waker.Wake(first);
  }
  if (order_.gang.empty() && !placed_) {
    const auto waits = parts_.waiting.Find(first.uid);
    const Extender::Moment moment = parts_.extender.Now();
    const NodeIndex index = moment.snapshot->names().Find(order_.places.front().node);
    std::optional<Placement> place;
    if (waits && index != kNoNode) {
      auto found = moment.policy->engine->PlaceOn(moment.snapshot, waits->pod->shape, index);
      if (found) place = *std::move(found);
    }
    if (place) {
      const PodPlacement planned{*waits->pod, *std::move(place)};
      placed_ = parts_.state.Plan(std::span(&planned, 1)).has_value();
    }
    if (placed_) (void)parts_.waker.Wake(first);
  }
  if (now - *made_ < kIsInWithin) return "";
  return placed_ || !order_.gang.empty() ? "kube-scheduler did not place it in time"
                                         : "its room was not free in time";
}

PodId RoomRun::ForWhom() const {
  return order_.places.empty() ? PodId() : order_.places.front().pod;
}

std::string RoomRun::Aim() const {
  return order_.places.empty() ? "for " + order_.name : "so that " + order_.name + " has room";
}

bool RoomRun::IsOn(const std::string& uid, const std::string& node) const {
  const auto held = parts_.state.FindPod(uid);
  return held && held->placement.node == node;
}

void RoomRun::LeaveNodes() {
  for (const std::string& node : kept_) parts_.rooms.Drop(node);
  kept_.clear();
}

void RoomRun::LetGo() {
  for (const RoomOrder::Move& move : order_.moves) parts_.holds.Release(move.pod.id.uid);
  if (kept_.empty()) return;  // the goal is reached, or nothing was kept
  LeaveNodes();
  if (order_.gang.empty() && !order_.places.empty()) {
    (void)parts_.state.Unplan(std::span(&order_.places.front().pod.uid, 1));
  }
}

void RoomRun::Tell(RoomNews::What what, const std::string& text, const PodId& moved) {
  parts_.sink.Record(RoomNews{.what = what, .pod = ForWhom(), .moved = moved, .text = text});
}

}  // namespace berth
