// SPDX-License-Identifier: Apache-2.0
#include "server/planners/moves/room_maker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "scoring/explain/node_report.h"
#include "scoring/room/room_nodes.h"
#include "scoring/victims.h"
#include "server/extender/inquiry.h"

namespace berth {
namespace {

bool MayBeOfAPlan(const PodRecord& pod) {
  return pod.leaving && pod.life.evicted && pod.pod.mobility == Mobility::kMoves &&
         !pod.pod.controller.empty() && pod.pod.grace_seconds <= kMostMoveGrace;
}

// Berth judges all that such a pod needs.
constexpr OwnToScheduler kNoneOfItsOwn;

// The controllers of pods that wait: whose pod comes next is not certain.
std::set<std::string> ControllersOf(std::span<const WaitingPod> waiting) {
  std::set<std::string> controllers;
  for (const WaitingPod& pod : waiting) controllers.insert(pod.pod->controller);
  return controllers;
}

// GPU thousandths free on the node that the moves empty most, once all of them are made.
std::int64_t RoomMade(const RoomPlan& plan, const Snapshot& snapshot) {
  std::map<NodeIndex, std::int64_t> free;
  for (const PodMove& move : plan.moves) {
    const std::int64_t held = GpuMilliOf(*move.pod);
    for (const NodeIndex node : {move.from, move.to}) {
      free.try_emplace(node, snapshot.node(node).free_gpu_milli());
    }
    free[move.from] += held;
    free[move.to] -= held;
  }
  std::int64_t most = 0;
  for (const PodMove& move : plan.moves) most = std::max(most, free[move.from]);
  return most;
}

bool IsIdle(const Node& node, const std::string& model) {
  const std::int64_t all = std::int64_t{node.healthy_gpus()} * kMilliPerGpu;
  return CanBeIdle(node, model) && node.free_gpu_milli() == all;
}

const std::string kIdleNodes = "idle nodes";  // no UID, and no text of a gang's id

// Adds those that are new, and forgets the others.
void Follow(const std::set<std::string>& now, Instant instant,
            std::map<std::string, Instant>& since) {
  std::erase_if(since, [&now](const auto& entry) { return !now.contains(entry.first); });
  for (const std::string& name : now) since.try_emplace(name, instant);
}

}  // namespace

void EvictionsUnderWay::Add(const PodRequest& pod, Instant now) {
  if (pods_.size() >= kMost) return;
  const Duration within = RoomRun::kComesWithin + std::chrono::seconds(pod.grace_seconds);
  pods_.try_emplace(pod.id.uid, Evicted{pod.id, pod.controller, now, now + within, now});
}

std::string EvictionsUnderWay::First(std::span<const WaitingPod> waiting, Instant now,
                                     Instant leads_since) {
  std::string first = now - leads_since < kOfBefore ? AddOfBefore(now) : "";
  if (pods_.empty()) return first;
  const std::set<std::string> waits = ControllersOf(waiting);
  for (auto entry = pods_.begin(); entry != pods_.end();) {
    Evicted& one = entry->second;
    const auto held = state_.FindPod(one.pod.uid);
    if (held) one.seen = now;
    const bool goes_on = held ? held->leaving || now - one.added < kAnswer
                              : waits.contains(one.controller) || now - one.seen < kMadeAnew;
    entry = goes_on && now < one.until ? std::next(entry) : pods_.erase(entry);
  }
  return pods_.empty() ? first : pods_.begin()->second.pod.full_name();
}

std::string EvictionsUnderWay::AddOfBefore(Instant now) {
  std::string first;
  state_.Current()->ForEachPod([&](const auto& pod, NodeIndex) {
    if (!MayBeOfAPlan(*pod)) return;
    Add(pod->pod, now);
    first = pod->pod.id.full_name();
  });
  return first;
}

bool MoveBudget::Allows(std::span<const Move> moves, const MakeRoomConfig& limits, Instant now) {
  std::erase_if(made_, [now](const Made& one) { return now - one.when >= std::chrono::hours(1); });
  const auto count = [&](std::string Move::*field, const std::string& value) {
    return std::ranges::count_if(moves, [&](const Move& one) { return one.*field == value; }) +
           std::ranges::count_if(made_, [&](const Made& one) { return one.move.*field == value; });
  };
  return std::ssize(made_) + std::ssize(moves) <= limits.moves_per_hour &&
         std::ranges::all_of(moves, [&](const Move& one) {
           return count(&Move::namespace_name, one.namespace_name) <= limits.moves_per_namespace &&
                  count(&Move::node, one.node) <= limits.moves_per_node;
         });
}

void MoveBudget::Count(Move move, Instant now) { made_.push_back({std::move(move), now}); }

std::string WhyNotByItself(const RoomPlan& plan, const Snapshot& snapshot, int most_moves) {
  if (std::ssize(plan.moves) > most_moves) {
    return "it has " + CountText(std::ssize(plan.moves), "move") + ", and at most " +
           std::to_string(most_moves) + " are allowed";
  }
  const std::int64_t room = RoomMade(plan, snapshot);
  for (const PodMove& move : plan.moves) {
    const std::string name = move.pod->pod.id.full_name();
    const Node& to = snapshot.node(move.to);
    if (move.from == move.to) return name + " would only change its devices";
    if (move.waits_for != kNoMove) return name + " would have no place for a while";
    if (to.free_gpu_milli() >= room) {
      return name + " would go to " + to.spec().name + ", which has as much room as is made";
    }
  }
  return "";
}

void RoomMaker::Use(MakeRoomConfig config) {
  idle_again_ = {};  // somebody has looked at the settings
  gave_idle_up_ = false;
  config_ = std::move(config);
  if (run_ == nullptr || config_.mode == MakeRoomMode::kAct) return;
  run_->GiveUp("makeRoom.mode is no longer act");
  End(false);
}

void RoomMaker::Look() {
  const Instant now = parts_.run.clock.Now();
  if (!leads_since_) leads_since_ = now;
  FollowIdle(*parts_.run.state.Current());
  if (run_ != nullptr) return GoOn();
  if (config_.mode == MakeRoomMode::kOff || now < next_plan_) return;
  if (now - *leads_since_ < std::chrono::minutes(config_.after_minutes)) return;
  next_plan_ = now + kBetweenPlans;
  std::vector<WaitingPod> everybody = parts_.run.waiting.Everybody();
  const Extender::Moment moment = parts_.run.extender.Now();  // after the list (waiting_pods.h)
  const bool acts = config_.mode == MakeRoomMode::kAct;
  if (acts && !under_way_.First(everybody, now, *leads_since_).empty()) return;
  if (const std::optional<WaitingPod> need = MostInNeed(std::move(everybody))) {
    turns_.Put(need->pod->id.namespace_name, now);
    PlanFor(moment, *need);
  } else if (LacksIdle()) {
    PlanForIdle(moment);
  }
}

void RoomMaker::LetGo() {
  leads_since_.reset();
  lacks_idle_since_.reset();
  idle_.clear();
  if (run_ == nullptr) return;
  run_->GiveUp("this replica no longer leads");
  End(false);
}

RoomMaker::Stats RoomMaker::stats() const {
  return {done_.load(),   given_up_.load(), evicted_.load(),     blocked_.load(),
          failed_.load(), left_.load(),     gave_idle_up_.load()};
}

std::shared_ptr<const RoomProgress> RoomMaker::progress() const {
  const MutexLock lock(mutex_);
  return progress_;
}

void RoomMaker::Show() {
  const RoomProgress& now = run_->progress();
  const auto shown = progress();
  if (shown != nullptr && *shown == now) return;
  auto next = std::make_shared<const RoomProgress>(now);
  const MutexLock lock(mutex_);
  progress_ = std::move(next);
}

void RoomMaker::GoOn() {
  const RoomRun::State state = run_->Step();
  Count();
  Show();
  if (state != RoomRun::State::kGoesOn) End(state == RoomRun::State::kDone);
}

// What the last step did.
void RoomMaker::Count() {
  const RoomRun::Counts counts = run_->counts();
  // One that failed may have been carried out all the same.
  const int tried = counts.evicted + counts.failed - counted_.evicted - counted_.failed;
  if (tried > 0) {
    const std::size_t index = run_->order().moves.size() - run_->moves_left();
    const RoomOrder::Move& move = run_->order().moves[index];
    budget_.Count({move.pod.id.namespace_name, move.from.node}, parts_.run.clock.Now());
  }
  evicted_ += static_cast<std::uint64_t>(counts.evicted - counted_.evicted);
  blocked_ += static_cast<std::uint64_t>(counts.blocked - counted_.blocked);
  failed_ += static_cast<std::uint64_t>(counts.failed - counted_.failed);
  counted_ = counts;
  left_ = run_->moves_left();
}

void RoomMaker::End(bool is_done) {
  const RoomOrder& order = run_->order();
  const auto begun = static_cast<std::size_t>(counted_.evicted + counted_.failed);
  const std::size_t made = order.moves.size() - run_->moves_left();
  if (begun > made) under_way_.Add(order.moves[made].pod, parts_.run.clock.Now());
  ++(is_done ? done_ : given_up_);
  std::string name = kIdleNodes;
  if (!order.places.empty()) {
    name = order.gang.empty() ? order.places.front().pod.uid : order.gang.text();
  }
  if (!is_done) PutOff(name, kAfterGivenUp);
  Show();
  run_.reset();
  counted_ = {};
  left_ = 0;
}

void RoomMaker::PutOff(const std::string& name, Duration least, bool longer_each_time) {
  Later later;
  const Later* const before = later_.Find(name);
  if (longer_each_time) {
    const Duration twice = before == nullptr ? Duration() : 2 * before->wait;
    later.wait = std::clamp<Duration>(twice, least, kLongestAfterNone);
  }
  later.until = parts_.run.clock.Now() + std::max(least, later.wait);
  later_.Put(name, later);
}

std::string RoomMaker::NameOf(const PodRequest& pod) {
  return pod.gang.empty() ? pod.id.uid : pod.gang.id.text();
}

std::optional<WaitingPod> RoomMaker::MostInNeed(std::vector<WaitingPod> everybody) {
  const Instant instant = parts_.run.clock.Now();
  const WallTime wall = parts_.run.clock.Wall();
  const std::set<std::string> askers = parts_.run.extender.pending().Schedulers();
  std::optional<WaitingPod> most;
  PlaceInLine first;
  for (WaitingPod& waiting : everybody) {
    const PodRequest& pod = *waiting.pod;
    if (!waiting.IsInNeed(askers, wall, std::chrono::minutes(config_.after_minutes))) continue;
    if (!pod.shape.wants_gpu() || !pod.refusal.empty()) continue;
    if (pod.own_to_scheduler != kNoneOfItsOwn || !pod.claims.empty()) continue;
    const Later* const later = later_.Find(NameOf(pod));
    if (later != nullptr && instant < later->until) continue;
    const Instant* const turn = turns_.Find(pod.id.namespace_name);
    PlaceInLine place = waiting.place();
    if (turn != nullptr) place.turn = *turn;
    if (most && !ComesBefore(place, first)) continue;
    first = place;
    most = std::move(waiting);
  }
  return most;
}

void RoomMaker::PlanFor(const Extender::Moment& now, const WaitingPod& waiting) {
  PutOff(NameOf(*waiting.pod), kAfterNone, true);
  const std::vector<PodRequest> pods =
      RoomUnitOf(parts_.run.extender, parts_.run.waiting, parts_.groups, now, waiting);
  if (pods.empty()) return;
  const RoomUnits units = Inquiry(parts_.run.extender, now)
                              .WouldMakeRoom(pods, {}, {},
                                             {.in_all = kPlanTime,
                                              .for_one = kPlanTime,
                                              .may_move = MayMove(waiting.pod->priority)});
  if (!units.units.empty() && !units.units.front().problem.empty()) {
    PutOff(NameOf(*waiting.pod), kIncomplete);
  }
  const RoomUnit* const unit = FindUnit(units, *waiting.pod);
  if (unit == nullptr) return;
  if (config_.mode == MakeRoomMode::kAct) return Begin(now, *unit, pods);
  PutOff(NameOf(*waiting.pod), kAfterAdvice);
  parts_.run.sink.Record(
      RoomNews{.what = RoomNews::What::kAdvised,
               .pod = waiting.pod->id,
               .text = RoomSentence(unit->name, unit->is_gang, std::ssize(unit->plan.moves))});
}

std::function<bool(const PodRecord& pod)> RoomMaker::MayMove(int priority) const {
  return [this, priority,
          controllers = ControllersOf(parts_.run.waiting.Everybody())](const PodRecord& pod) {
    const PodRequest& request = pod.pod;
    const auto& spaces = config_.namespaces;
    return request.priority <= priority && request.grace_seconds <= kMostMoveGrace &&
           request.own_to_scheduler == kNoneOfItsOwn && !request.controller.empty() &&
           !controllers.contains(request.controller) &&
           (spaces.empty() || std::ranges::find(spaces, request.id.namespace_name) != spaces.end());
  };
}

void RoomMaker::FollowIdle(const Snapshot& snapshot) {
  const Instant now = parts_.run.clock.Now();
  if (config_.mode == MakeRoomMode::kOff || config_.idle_nodes == 0 || now < idle_again_) {
    idle_.clear();
    return;
  }
  gave_idle_up_ = false;
  // Those that are kept already stay: else they would change when others become idle.
  std::erase_if(idle_, [&](const std::string& name) {
    const NodeIndex node = snapshot.names().Find(name);
    if (node == kNoNode && config_.mode == MakeRoomMode::kAct) vanished_.push_back(now);
    return node == kNoNode || !IsIdle(snapshot.node(node), config_.idle_model);
  });
  while (std::ssize(idle_) > config_.idle_nodes) idle_.erase(std::prev(idle_.end()));
  for (NodeIndex i = 0; i < snapshot.size() && std::ssize(idle_) < config_.idle_nodes; ++i) {
    const Node& node = snapshot.node(i);
    if (IsIdle(node, config_.idle_model)) idle_.insert(node.spec().name);
  }
  std::erase_if(vanished_, [now](Instant when) { return now - when > kVanishWithin; });
  if (vanished_.size() < kMostVanished) return;
  parts_.run.sink.Record(
      RoomNews{.what = RoomNews::What::kGaveIdleUp,
               .pod = parts_.self,
               .text = CountText(std::ssize(vanished_), "node") +
                       " that Berth kept idle vanished within an hour: a node autoscaler deletes "
                       "them. Berth keeps no idle nodes for a day. Apply components/keep-nodes, or "
                       "exclude these nodes from scale-down, or set makeRoom.idleNodes to 0"});
  vanished_.clear();
  idle_.clear();
  idle_again_ = now + kIdleGivenUp;
  gave_idle_up_ = true;
}

bool RoomMaker::LacksIdle() {
  const Instant now = parts_.run.clock.Now();
  if (config_.idle_nodes == 0 || now < idle_again_ || std::ssize(idle_) >= config_.idle_nodes) {
    lacks_idle_since_.reset();
    return false;
  }
  if (!lacks_idle_since_) lacks_idle_since_ = now;
  const Later* const later = later_.Find(kIdleNodes);
  return now - *lacks_idle_since_ >= std::chrono::minutes(config_.after_minutes) &&
         (later == nullptr || now >= later->until);
}

void RoomMaker::PlanForIdle(const Extender::Moment& now) {
  PutOff(kIdleNodes, kAfterNone);
  const RoomUnits units =
      Inquiry(parts_.run.extender, now)
          .WouldMakeRoom({}, {.idle_nodes = config_.idle_nodes, .model = config_.idle_model}, {},
                         {.in_all = kPlanTime, .for_one = kPlanTime, .may_move = MayMove(0)});
  if (units.units.empty() || !units.units.front().plan.found) return;
  RoomUnit unit = units.units.front();
  unit.name = CountText(config_.idle_nodes, "idle node");
  if (config_.mode == MakeRoomMode::kAct) return Begin(now, unit, {});
  PutOff(kIdleNodes, kAfterAdvice);
  parts_.run.sink.Record(RoomNews{
      .what = RoomNews::What::kAdvised,
      .pod = {},
      .text = CountText(std::ssize(unit.plan.moves), "move") + " would make " + unit.name});
}

void RoomMaker::Begin(const Extender::Moment& now, const RoomUnit& unit,
                      const std::vector<PodRequest>& pods) {
  const RoomPlan& plan = unit.plan;
  if (!WhyNotByItself(plan, *now.snapshot, config_.most_moves).empty()) return;
  RoomOrder order;
  order.name = unit.name;
  std::vector<MoveBudget::Move> moves;
  for (const PodMove& move : plan.moves) {
    order.moves.push_back({move.pod->pod, move.pod->placement, move.place});
    moves.push_back({move.pod->pod.id.namespace_name, move.pod->placement.node});
  }
  if (!budget_.Allows(moves, config_, parts_.run.clock.Now())) return;
  for (const RoomPlan::Place& place : plan.places) {
    const PodRequest& pod = pods[unit.pods[place.pod]];
    if (unit.is_gang) order.gang = pod.gang.id;
    order.priority = pod.priority;
    order.places.push_back({pod.id, place.placement.node});
  }
  run_ = std::make_unique<RoomRun>(parts_.run, std::move(order));
  Show();
  left_ = run_->moves_left();
}

void HeldNodes::Look() {
  const Instant now = parts_.clock.Now();
  const Extender::Moment moment = parts_.extender.Now();
  std::set<std::string> kept = parts_.maker.idle();
  const auto rooms = parts_.rooms.Current();
  for (const auto& [node, room] : *rooms) kept.insert(node);
  if (const KeptNodes* const nodes = moment.reservations.nodes()) {
    for (const auto& [node, one] : *nodes) kept.insert(node);
  }
  const Earmarks& earmarks = moment.reservations.earmarks();
  for (const Earmarks::OnNode& on : earmarks.nodes()) {
    kept.insert(earmarks.snapshot()->node(on.node).spec().name);
  }
  const std::set<std::string> held = parts_.holder.Held();
  std::set<std::string> unneeded;
  for (const std::string& name : held) {
    if (!kept.contains(name)) unneeded.insert(name);
  }
  Follow(kept, now, kept_);
  Follow(unneeded, now, unneeded_);
  std::erase_if(asked_, [now](const auto& entry) { return now - entry.second >= kAgain; });
  std::size_t left = kMostAtOnce, holds = held.size();
  const auto ask = [&](const std::string& node, bool hold) {
    if (left == 0 || (hold && holds >= kMost) || !asked_.try_emplace(node, now).second) return;
    parts_.holder.Hold(node, hold);
    --left;
    holds += hold ? 1 : 0;
  };
  for (const auto& [node, since] : unneeded_) {
    if (now - since >= kLinger) ask(node, false);
  }
  for (const auto& [node, since] : kept_) {
    if (now - since >= kSteady && !held.contains(node)) ask(node, true);
  }
}

void HeldNodes::LetGo() {
  kept_.clear();
  unneeded_.clear();
  asked_.clear();
}

}  // namespace berth
