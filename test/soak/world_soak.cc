// SPDX-License-Identifier: Apache-2.0
#include "test/soak/world_soak.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

#include "scoring/admission.h"
#include "scoring/explain/other_limits.h"
#include "scoring/room/room_nodes.h"
#include "scoring/victims.h"
#include "server/extender/inquiry.h"

namespace berth::test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::size_t kMostPending = 14;
constexpr Duration kPodIsPlacedWithin = minutes(3), kGangIsPlacedWithin = minutes(6);
constexpr Duration kGangStartsWithin = minutes(5);
constexpr int kAny = std::numeric_limits<int>::max();
// Of a kubelet that is short of something that is no GPU (kubernetes#120733).
constexpr const char* kNoMemory =
    "UnexpectedAdmissionError: Allocate failed due to [memorymanager] failed to get memory blocks, "
    "which is unexpected";

bool IsMadeAnew(const PodRequest& pod) {
  return pod.mobility != Mobility::kNoController && pod.mobility != Mobility::kComesBack;
}

MakeRoomConfig Acts() {
  MakeRoomConfig config;
  config.mode = MakeRoomMode::kAct;
  config.after_minutes = 2;
  config.moves_per_hour = config.moves_per_namespace = config.moves_per_node = 60;
  return config;
}

}  // namespace

class WorldSoak::Binder final : public PodBinder {
 public:
  Status Bind(const BindOrder& /*order*/) override { return {}; }
  Result<PodTruth> Find(const PodId& /*id*/) override { return Fail(Errc::kNotFound, "gone"); }
};

class WorldSoak::Waker final : public PodWaker {
 public:
  explicit Waker(WorldSoak& soak) : soak_(soak) {}
  bool Wake(const PodId& pod) override {
    const auto found = soak_.pending_.find(pod.uid);
    if (found != soak_.pending_.end()) found->second.ask_at = soak_.clock_.Now();
    return true;
  }

 private:
  WorldSoak& soak_;
};

// What Berth tells of the room that it makes.
class WorldSoak::News final : public DecisionSink {
 public:
  explicit News(WorldSoak& soak) : soak_(soak) {}
  void Record(const Decision& /*decision*/) override {}
  void Record(const GangNews& news) override {
    soak_.Note("gang " + news.gang.name + ": " + news.text);
  }
  void Record(const RoomNews& news) override {
    soak_.Note("make-room: " + news.text);
    if (news.what == RoomNews::What::kBegun) {
      goal = news.pod;
      ++soak_.counts_["plans of moves"];
    }
    if (news.what == RoomNews::What::kDone) ++soak_.counts_["plans of moves that are done"];
    if (news.what == RoomNews::What::kGivenUp) ++soak_.counts_["plans of moves given up"];
  }
  PodId goal;  // of the plan that is under way

 private:
  WorldSoak& soak_;
};

// The API server's Eviction, for the room that Berth makes.
class WorldSoak::Evictor final : public PodEvictor {
 public:
  explicit Evictor(WorldSoak& soak) : soak_(soak) {}
  Outcome Evict(const PodId& pod) override {
    const auto held = soak_.state_.FindPod(pod.uid);
    if (!held || held->state != PodState::kBound) return Outcome::kFailed;
    for (const PodDisruptionBudget& budget : *soak_.budgets_.Current()) {
      if (budget.Covers(held->pod) && budget.disruptions_allowed < 1) return Outcome::kBlocked;
    }
    if (soak_.random_.Chance(5)) return Outcome::kBlocked;  // by a budget that was not seen yet
    CheckIsOfUse(pod);
    const auto place = soak_.state_.FindPod(MoveHolds::StandInOf(pod.uid));
    soak_.held_for_[pod.uid] = place ? place->placement.node : "";
    ++soak_.counts_["evicted to make room"];
    soak_.Note("evicted to make room: " + pod.name + ", its place is " + soak_.held_for_[pod.uid]);
    soak_.Evict(pod.uid);
    return Outcome::kEvicted;
  }

 private:
  // Nobody is evicted for a pod that has its place, or is about to, somewhere else.
  void CheckIsOfUse(const PodId& pod) {
    const PodId& goal = soak_.news_->goal;
    const auto has = soak_.state_.FindPod(goal.uid);
    const auto rooms = soak_.rooms_.Current();
    const bool elsewhere = has && !rooms->contains(has->placement.node);
    if (!elsewhere && (!has || has->state == PodState::kPlanned)) return;
    soak_.Find(soak_.checks_.moves, "vain move",
               pod.name + " is evicted for " + goal.name + ", which has its place on " +
                   has->placement.node);
  }

  WorldSoak& soak_;
};

WorldSoak::WorldSoak(std::uint64_t seed, const SoakChecks& checks)
    : checks_(checks),
      world_(seed, {.nodes = 7, .gpus = 4, .held_percent = 80}),
      random_(seed + 1'000'003),
      binder_(std::make_unique<Binder>()),
      evictor_(std::make_unique<Evictor>(*this)),
      waker_(std::make_unique<Waker>(*this)),
      news_(std::make_unique<News>(*this)),
      scaler_(world_, {.idle = minutes(4), .most_nodes = 9}) {
  clock_.Advance(minutes(10));
  extender_.emplace(Extender::Parts{.state = state_,
                                    .binder = *binder_,
                                    .sink = *news_,
                                    .clock = clock_,
                                    .budgets = &budgets_,
                                    .domains = &domains_,
                                    .watches_arrivals = true,
                                    .behind_scheduler = true,
                                    .gangs = &gangs_,
                                    .waiting = &waiting_,
                                    .waker = waker_.get(),
                                    .rooms = &rooms_,
                                    .moves = &holds_},
                    Extender::Policy{.engine = EngineOf("best-fit"),
                                     .reservation_time = seconds(30),
                                     .gangs = {{"berth"}, seconds(50)},
                                     .earmarks = EarmarkLimits{}});
  maker_.emplace(RoomMaker::Parts{.run = {.state = state_,
                                          .waiting = waiting_,
                                          .extender = *extender_,
                                          .rooms = rooms_,
                                          .holds = holds_,
                                          .evictor = *evictor_,
                                          .waker = *waker_,
                                          .sink = *news_,
                                          .clock = clock_,
                                          .budgets = &budgets_}},
                 Acts());
  refusals_.emplace(kube::KubeletRefusals::Parts{
      .state = state_,
      .clock = clock_,
      .why_not_admitted = [this](const PodId& pod) -> std::optional<std::string> {
        const auto found = lost_.find(pod.uid);
        return found == lost_.end() ? "" : found->second;
      },
      .log =
          [this](bool, std::string_view, std::string_view text) {
            Note(std::string(text));
            constexpr std::string_view kNode = "node ";
            if (!text.starts_with(kNode)) return;
            text.remove_prefix(kNode.size());
            Excuse(std::string(text.substr(0, text.find(':'))), kAny, "");
          }});
  world_.PutBudgets(budgets_);
  world_.Populate(state_);
  for (const World::RunningPod& one : world_.pods()) {
    if (one.life.ends && !one.ended) leaving_[one.pod.id.uid] = clock_.Now() + seconds(30);
  }
  for (const PodRequest& pod : world_.waiting()) Put(pod);
}

WorldSoak::~WorldSoak() = default;

bool WorldSoak::Step() {
  ++steps_;
  clock_.Advance(seconds(random_.Between(1, 4)));
  EndLeaving();
  // Now and then nothing comes, ends or changes for some minutes.
  constexpr std::uint64_t kPhase = 500, kBusy = 320;
  if (steps_ % kPhase < kBusy) {
    Arrive();
    EndSome();
    if (steps_ % 4 == 0) Scale();
  }
  extender_->LookAtEarmarks();
  extender_->LookAtGangs();
  (void)extender_->SettleOverdue();
  refusals_->Look();
  AskAll();
  maker_->Look();
  CheckDebts();
  CheckHomeless();
  CheckClosed();
  CheckAsleep();
  CheckKept();
  if (steps_ % 16 == 0) CheckTwice();
  return failure_.empty();
}

// --- the cluster

void WorldSoak::Apply(const ClusterEvent& event) {
  const Status applied = state_.Apply(std::span(&event, 1));
  if (!applied && failure_.empty()) failure_ = "an event is not taken: " + applied.error().message;
}

void WorldSoak::Put(const PodRequest& pod) {
  waiting_.Put({.pod = std::make_shared<const PodRequest>(pod), .created = clock_.Wall()});
  pending_[pod.id.uid] = {.pod = pod, .ask_at = clock_.Now(), .since = clock_.Now()};
}

void WorldSoak::Arrive() {
  if (pending_.size() < kMostPending && random_.Chance(12)) {
    if (random_.Chance(25)) {
      for (const PodRequest& pod : world_.AGang()) Put(pod);
      ++counts_["gangs made"];
    } else {
      const PodRequest pod = world_.APod();
      Put(pod);
      if (bad_owners_.empty() && !pod.controller.empty() && random_.Chance(20)) {
        bad_owners_.insert(pod.controller);
      }
    }
  }
  // A pod that waits for hours is deleted.
  for (auto pod = pending_.begin(); pod != pending_.end();) {
    const bool goes = !pod->second.binding && clock_.Now() - pod->second.since > minutes(90) &&
                      random_.Chance(10);
    const std::string uid = pod->first;
    ++pod;
    if (!goes) continue;
    Note("deleted: " + uid);
    pending_.erase(uid);
    homeless_.erase(uid);
    waiting_.Remove(uid);
    Apply(PodGone{uid});
  }
}

void WorldSoak::EndSome() {
  if (random_.Chance(12)) {
    std::vector<std::string> running;
    for (const PodRecord& record : state_.Everything().pods) {
      const bool ends = record.state == PodState::kBound && !record.life.comes_back &&
                        !record.leaving && record.pod.shape.wants_gpu();
      if (ends) running.push_back(record.pod.id.uid);
    }
    if (!running.empty()) {
      const std::string uid = random_.OneOf(running);
      Note("ended: " + uid);
      Gone(uid, false);
    }
  }
  if (!random_.Chance(1)) return;
  const auto snapshot = state_.Current();
  const auto at =
      static_cast<NodeIndex>(random_.Between(0, static_cast<int>(snapshot->size()) - 1));
  NodeSpec spec = snapshot->node(at).spec();
  constexpr const char* kCordon = "node.kubernetes.io/unschedulable";
  const bool is_open = spec.ready && std::ranges::none_of(spec.taints, [](const Taint& taint) {
                         return taint.key.starts_with("node.");
                       });
  spec.ready = true;
  std::erase_if(spec.taints, [](const Taint& taint) { return taint.key.starts_with("node."); });
  if (is_open) spec.taints.push_back({kCordon, "", TaintEffect::kNoSchedule});
  Note(spec.name + (is_open ? " is cordoned" : " is open"));
  Excuse(spec.name, kAny, "");
  Apply(NodeUpserted{spec});
}

void WorldSoak::EndLeaving() {
  std::vector<std::string> over;
  for (const auto& [uid, until] : leaving_) {
    if (until <= clock_.Now()) over.push_back(uid);
  }
  for (const std::string& uid : over) Gone(uid, true);
}

void WorldSoak::Gone(const std::string& uid, bool has_successor) {
  const auto held = state_.FindPod(uid);
  leaving_.erase(uid);
  Apply(PodGone{uid});
  const auto place = held_for_.extract(uid);
  if (!held || !has_successor || !IsMadeAnew(held->pod)) return;
  const PodRequest next = world_.Successor(held->pod);
  PodRequest whole = next;
  // The books may hold less of a pod that runs than it asks for.
  for (const World::RunningPod& one : world_.pods()) {
    if (one.pod.id.uid == uid) whole.constraints = one.pod.constraints;
  }
  const auto known = constraints_.find(uid);
  if (known != constraints_.end()) whole.constraints = known->second;
  constraints_[whole.id.uid] = whole.constraints;
  Put(whole);
  if (!place.empty()) {
    homeless_[whole.id.uid] = {held->pod.id.name, place.mapped(), clock_.Now(), false};
  }
}

void WorldSoak::Evict(const std::string& uid) {
  const auto held = state_.FindPod(uid);
  if (!held || held->state != PodState::kBound || leaving_.contains(uid)) return;
  const seconds grace(random_.Between(1, 40));
  leaving_[uid] = clock_.Now() + grace;
  PodBound ends{.pod = held->pod, .placement = held->placement, .life = held->life};
  ends.leaving = true;
  ends.life.ends = clock_.Wall() + grace;
  ends.life.evicted = true;
  Apply(ends);
}

void WorldSoak::Scale() {
  std::vector<PodRequest> waiting;
  for (const auto& [uid, pod] : pending_) {
    if (pod.refusals > 0) waiting.push_back(pod.pod);
  }
  for (const ClusterEvent& event : scaler_.Look(*state_.Current(), waiting, clock_.Now())) {
    if (const auto* const gone = std::get_if<NodeRemoved>(&event)) {
      Note("the autoscaler takes " + gone->name);
      ++counts_["nodes taken"];
      Excuse(gone->name, kAny, "");
    }
    if (const auto* const node = std::get_if<NodeUpserted>(&event)) {
      Note("the autoscaler shows " + node->spec.name + " with " +
           std::to_string(node->spec.gpus.size()) + " GPUs");
      ++counts_["nodes shown"];
    }
    Apply(event);
  }
}

// --- kube-scheduler

void WorldSoak::AskAll() {
  std::vector<std::string> uids;
  for (const auto& [uid, pod] : pending_) {
    if (!pod.binding && pod.ask_at <= clock_.Now()) uids.push_back(uid);
  }
  random_.Shuffle(uids);
  std::ranges::stable_sort(uids, std::greater<>(),
                           [this](const auto& uid) { return pending_.at(uid).pod.priority; });
  for (const std::string& uid : uids) {
    const auto pod = pending_.find(uid);
    if (pod != pending_.end() && !pod->second.binding) Ask(pod->second);
  }
}

// With the pods that are nominated there and are no less important than that one.
Node WorldSoak::WithNominated(const Node& node, const Pod& pod) const {
  Node with = node;
  for (const auto& [uid, other] : pending_) {
    const bool is_nominated = other.nominated == node.spec().name && !other.binding;
    if (!is_nominated || uid == pod.pod.id.uid) continue;
    const PodRecord* const held = node.FindPod(uid);
    const bool is_counted = held != nullptr && held->state != PodState::kPlanned;
    if (other.pod.priority < pod.pod.priority || is_counted) continue;
    with.Remove(uid);
    const Placement place{
        other.nominated, other.pod.shape.cpu_milli, other.pod.shape.memory_bytes, {}};
    with.Put(std::make_shared<const PodRecord>(PodRecord{other.pod, place, PodState::kBound, {}}));
  }
  // What Berth plans for the pod itself kube-scheduler does not know.
  with.Remove(pod.pod.id.uid);
  return with;
}

bool WorldSoak::MayOffer(const Node& node, const Pod& pod) const {
  if (!node.spec().ready || Admits(node.spec(), pod.pod) != Reason::kFits) return false;
  const Node with = WithNominated(node, pod);
  return HasSchedulersRoom(with, pod.pod) && LackOf(with, pod.pod).empty();
}

void WorldSoak::Ask(Pod& pod) {
  ++counts_["questions"];
  const Extender::Moment now = extender_->Now();
  const auto& snapshot = now.snapshot;
  std::vector<NodeIndex> offered;
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    if (MayOffer(snapshot->node(i), pod)) offered.push_back(i);
  }
  if (offered.empty()) {
    if (!pod.nominated.empty()) {
      Note(pod.pod.id.name +
           " is not offered where others were evicted for it: " + WhyNotOn(pod.nominated, pod));
    }
    Preempt(pod, now, {});
    ShowUnschedulable(pod, "0/8 nodes are available: 8 Insufficient nvidia.com/gpu.");
    return Refuse(pod);
  }
  if (!pod.pod.shape.wants_gpu()) {  // kube-scheduler's alone
    return Shown(pod.pod, std::string(snapshot->names().name(random_.OneOf(offered))));
  }
  const FilterAnswer answer = extender_->Filter(now, pod.pod, offered);
  std::vector<std::string> fits;
  std::set<std::string> never;
  for (std::size_t i = 0; i < offered.size(); ++i) {
    const std::string name(snapshot->names().name(offered[i]));
    if (answer.reasons[i] == Reason::kFits) fits.push_back(name);
    if (VerdictOf(answer.reasons[i]) == Verdict::kUnresolvable) never.insert(name);
  }
  if (fits.empty()) {
    if (!pod.nominated.empty()) {
      Note(pod.pod.id.name +
           " is refused where others were evicted for it: " + WhyNotOn(pod.nominated, pod));
    }
    Preempt(pod, now, never);
    ShowUnschedulable(pod, "");
    return Refuse(pod);
  }
  const bool has_own = std::ranges::find(fits, pod.nominated) != fits.end();
  const std::string node = has_own ? pod.nominated : random_.OneOf(fits);
  pod.binding = true;
  const PodId id = pod.pod.id;
  const bool taken = extender_->Bind({id.namespace_name, id.name, id.uid, node, clock_.Now()},
                                     [this, uid = id.uid, node](const Status& bound) {
                                       const auto found = pending_.find(uid);
                                       if (found == pending_.end()) return;
                                       found->second.binding = false;
                                       if (bound) return Bound(uid, node);
                                       ++counts_["binds that failed"];
                                       Refuse(found->second);
                                     });
  if (!taken) pending_.at(id.uid).binding = false;
}

void WorldSoak::ShowUnschedulable(const Pod& pod, const std::string& said) {
  waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.pod),
                .unschedulable = true,
                .created = clock_.Wall() - (clock_.Now() - pod.since),
                .scheduler_said = said,
                .nominated = pod.nominated});
}

void WorldSoak::Refuse(Pod& pod) {
  ++pod.refusals;
  const int pause = std::min(1 << std::min(pod.refusals, 3), 10);
  pod.ask_at = clock_.Now() + seconds(pause + random_.Between(0, 5));
}

void WorldSoak::Preempt(Pod& pod, const Extender::Moment& now, const std::set<std::string>& never) {
  const auto& snapshot = now.snapshot;
  if (!pod.nominated.empty()) {
    const NodeIndex at = snapshot->names().Find(pod.nominated);
    const bool waits =
        at != kNoNode && std::ranges::any_of(snapshot->node(at).pods(), [&pod](const auto& held) {
          return held->leaving && held->pod.priority < pod.pod.priority;
        });
    if (waits) return;  // it preempts for one node at a time
    pod.nominated.clear();
  }
  const auto budgets = budgets_.Current();
  std::vector<NodeVictims> asked;
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const Node& node = snapshot->node(i);
    if (never.contains(node.spec().name)) continue;
    const auto victims = SchedulerVictims(WithNominated(node, pod), pod.pod, *budgets);
    if (victims) asked.push_back({node.spec().name, victims->uids, victims->pdb_violations});
  }
  if (asked.empty()) return;
  const auto kept = extender_->Preempt(now, pod.pod, asked);
  if (kept.empty()) return;
  ++counts_["agreed preemptions"];
  auto& [when, victims] = agreed_[pod.pod.id.uid];
  when = clock_.Now();
  victims.clear();
  for (const NodeVictims& one : kept) victims.insert(one.uids.begin(), one.uids.end());
  const auto rank = [&](const NodeVictims& one) {
    return RankOf(snapshot->node(snapshot->names().Find(one.node)),
                  {.uids = one.uids, .pdb_violations = one.pdb_violations});
  };
  const NodeVictims& best = *std::ranges::min_element(
      kept, [&rank](const NodeVictims& a, const NodeVictims& b) { return rank(a) < rank(b); });
  pod.nominated = best.node;
  Debt debt{.uids = {pod.pod.id.uid},
            .node = best.node,
            .victims = best.uids,
            .priority = pod.pod.priority,
            .of_gang = !pod.pod.gang.empty(),
            .since = clock_.Now()};
  std::string names;
  bool are_going = true;
  for (const std::string& uid : best.uids) {
    names += " " + uid;
    are_going = are_going && leaving_.contains(uid);
    Evict(uid);
  }
  Note(pod.pod.id.name + " of priority " + std::to_string(pod.pod.priority) + " preempts on " +
       best.node + ":" + names);
  Excuse(best.node, pod.pod.priority, pod.pod.id.uid);
  if (!are_going) debts_.push_back(std::move(debt));
}

void WorldSoak::Bound(const std::string& uid, const std::string& node) {
  const auto held = state_.FindPod(uid);
  if (!held) return;
  constraints_[uid] = pending_.at(uid).pod.constraints;
  Note("bound: " + uid + " on " + node);
  ++counts_[held->pod.gang.empty() ? "bound" : "bound members of gangs"];
  pending_.erase(uid);
  waiting_.Remove(uid);
  const auto home = homeless_.find(uid);
  if (home != homeless_.end()) {
    ++counts_[home->second.node == node ? "moved" : "moved elsewhere"];
    homeless_.erase(home);
  }
  Excuse(node, held->pod.priority, uid);
  const auto start = refusals_->Begins(uid, node);
  PodBound shown{.pod = held->pod, .placement = held->placement};
  shown.life.started = clock_.Wall();
  shown.life.completes = held->pod.series != 0;
  Apply(shown);
  if (!bad_owners_.contains(held->pod.controller)) return refusals_->Runs(held->pod, node);
  ++counts_["refused by kubelets"];
  constexpr std::uint64_t kUntilItIsMended = 6;
  if (++refused_ % kUntilItIsMended == 0) bad_owners_.clear();
  refused_by_[node].insert(held->pod.id.namespace_name);
  Excuse(node, kAny, "");  // Berth takes what a kubelet refuses elsewhere
  lost_[uid] = kNoMemory;
  if (start) refusals_->Vanished(held->pod.id, *start);
  Gone(uid, true);
}

// A pod without GPUs runs there.
void WorldSoak::Shown(const PodRequest& pod, const std::string& node) {
  PodBound shown{.pod = pod, .placement = {node, pod.shape.cpu_milli, pod.shape.memory_bytes, {}}};
  shown.life.started = clock_.Wall();
  const std::string uid = pod.id.uid;
  constraints_[uid] = pod.constraints;
  Excuse(node, pod.priority, uid);
  Apply(shown);
  homeless_.erase(uid);
  waiting_.Remove(uid);
  pending_.erase(uid);
}

// --- what may never be

void WorldSoak::Excuse(const std::string& node, int priority, const std::string& uid) {
  for (Debt& debt : debts_) {
    const bool is_own = std::ranges::find(debt.uids, uid) != debt.uids.end();
    // A gang's other members were to go to other nodes.
    const bool was_its = debt.node == node || debt.of_gang;
    if (was_its && priority > debt.priority && !is_own) debt.excused = true;
  }
  for (auto& [successor, home] : homeless_) {
    if (home.node == node && (priority == kAny || uid.empty())) home.excused = true;
  }
}

void WorldSoak::CheckDebts() {
  std::erase_if(debts_, [this](Debt& debt) {
    const std::string& uid = debt.uids.front();
    const auto held = state_.FindPod(uid);
    if (held && held->state == PodState::kBound) {
      const bool is_there = held->placement.node == debt.node;
      ++counts_[is_there ? "placed where others were evicted" : "placed elsewhere"];
      // Its node is the first that is looked at: long after they had gone it was refused there.
      const bool was_free = debt.free_since && clock_.Now() - *debt.free_since > minutes(1);
      if (!is_there && was_free && !debt.excused && held->pod.gang.empty()) {
        Find(checks_.vain_evictions, "vain eviction",
             "others were evicted on " + debt.node + " for " + held->pod.id.name +
                 ", which got its place elsewhere");
      }
      return true;
    }
    const auto pod = pending_.find(uid);
    if (pod == pending_.end() || debt.excused || HasMoreImportantPlanned(debt)) return true;
    const bool are_gone = std::ranges::none_of(
        debt.victims, [this](const auto& victim) { return state_.FindPod(victim).has_value(); });
    if (!are_gone) return false;
    if (!debt.free_since) debt.free_since = clock_.Now();
    const Duration most = pod->second.pod.gang.empty() ? kPodIsPlacedWithin : kGangIsPlacedWithin;
    if (clock_.Now() - *debt.free_since < most || pod->second.binding) return false;
    const bool of_gang = !pod->second.pod.gang.empty();
    Find(of_gang ? checks_.vain_for_gangs : checks_.vain_evictions,
         of_gang ? "vain eviction for a gang" : "vain eviction",
         std::to_string(debt.victims.size()) + " were evicted on " + debt.node + " for " +
             pod->second.pod.id.name +
             ", which is not placed there: " + WhyNotOn(debt.node, pod->second));
    return true;
  });
}

// A member of a gang that holds its place there until the others have come.
bool WorldSoak::HasMoreImportantPlanned(const Debt& debt) const {
  const auto snapshot = state_.Current();
  const NodeIndex at = snapshot->names().Find(debt.node);
  return at != kNoNode && std::ranges::any_of(snapshot->node(at).pods(), [&debt](const auto& held) {
           return held->state == PodState::kPlanned && held->pod.priority > debt.priority;
         });
}

void WorldSoak::CheckHomeless() {
  std::erase_if(homeless_, [this](const auto& one) {
    const auto& [uid, home] = one;
    if (home.excused || !pending_.contains(uid)) return true;
    if (clock_.Now() - home.since < RoomRun::kComesWithin) return false;
    Find(checks_.moves, "homeless",
         uid + " came for " + home.from + ", was to go to " + home.node + " and has no node");
    return true;
  });
}

void WorldSoak::CheckClosed() {
  const auto snapshot = state_.Current();
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    const std::string& name = snapshot->node(i).spec().name;
    if (!snapshot->node(i).spec().refuses_gpu_pods) continue;
    Excuse(name, kAny, "");
    if (refused_by_[name].size() > 1) continue;
    Find(checks_.closed_by_one, "closed by one", name + " is closed by pods of one owner");
    refused_by_[name].insert("told");
  }
}

bool WorldSoak::HasRoom(const std::vector<const Pod*>& members) const {
  const Extender::Moment now = extender_->Now();
  BesideEarmarks beside(now.reservations.earmarks(), *now.snapshot);
  std::size_t placed = 0;
  for (NodeIndex i = 0; i < now.snapshot->size() && placed < members.size(); ++i) {
    Node node = now.snapshot->node(i);
    while (placed < members.size()) {
      const PodRequest& pod = members[placed]->pod;
      const bool is_kept = now.reservations.KeptFor(pod, *now.snapshot, i) != nullptr;
      if (is_kept || !MayOffer(node, *members[placed])) break;
      const auto place = PlaceOnNode(node, pod);
      if (!place || !beside.Put(pod, i)) break;
      node.Put(std::make_shared<const PodRecord>(PodRecord{pod, *place, PodState::kBound, {}}));
      ++placed;
    }
  }
  return placed == members.size();
}

std::string WorldSoak::WhyNotOn(const std::string& node, const Pod& pod) const {
  const Extender::Moment now = extender_->Now();
  const NodeIndex index = now.snapshot->names().Find(node);
  if (index == kNoNode) return "the node is gone";
  const std::string lack = LackOf(now.snapshot->node(index), pod.pod);
  const auto* const kept = now.reservations.KeptFor(pod.pod, *now.snapshot, index);
  std::string text =
      MayOffer(now.snapshot->node(index), pod) ? "" : "kube-scheduler offers it not; ";
  if (!lack.empty()) text += "it has too little " + lack + "; ";
  if (kept != nullptr) text += "it is kept for " + kept->pod.name + "; ";
  if (!pod.nominated.empty()) text += "nominated to " + pod.nominated + "; ";
  for (const auto& held : now.snapshot->node(index).pods()) {
    if (!held->pod.shape.wants_gpu()) continue;
    text += held->pod.id.name + " of priority " + std::to_string(held->pod.priority) + " has " +
            std::to_string(held->pod.shape.gpu_count()) +
            (held->state == PodState::kPlanned ? " planned; " : "; ");
  }
  if (!pod.pod.gang.empty()) {
    const auto view = gangs_.View(pod.pod.gang.id, clock_.Now());
    if (view) text += view->why + "; ";
  }
  return text + Inquiry(*extender_, now).Explain(pod.pod).sentence;
}

void WorldSoak::CheckAsleep() {
  std::map<std::string, std::vector<const Pod*>> gangs;
  for (const auto& [uid, pod] : pending_) {
    if (!pod.pod.gang.empty()) gangs[pod.pod.gang.id.text()].push_back(&pod);
  }
  std::map<std::string, Instant> since;
  for (const auto& [name, members] : gangs) {
    const bool waits = std::ranges::all_of(members, [this](const Pod* pod) {
      return !pod->binding && !state_.FindPod(pod->pod.id.uid);
    });
    const std::size_t all = static_cast<std::size_t>(members[0]->pod.gang.total.value_or(0));
    const bool is_whole = members.size() == all;
    if (!waits || !is_whole || !HasRoom(members)) continue;
    const auto known = has_room_since_.find(name);
    since[name] = known == has_room_since_.end() ? clock_.Now() : known->second;
    if (clock_.Now() - since[name] < kGangStartsWithin) continue;
    const auto view = gangs_.View(members[0]->pod.gang.id, clock_.Now());
    Find(checks_.asleep, "asleep",
         name +
             " sleeps beside room for all of its pods: " + (view ? view->why : "it is not known"));
    since[name] = clock_.Now();
  }
  has_room_since_ = std::move(since);
}

void WorldSoak::CheckKept() {
  const Extender::Moment now = extender_->Now();
  const Earmarks& earmarks = now.reservations.earmarks();
  for (const Earmarks::OnNode& on : earmarks.nodes()) {
    for (const EarmarkOwner& owner : on.owners) {
      const auto pod = pending_.find(owner.pod.uid);
      if (pod == pending_.end()) continue;
      ++counts_["kept for somebody"];
      // Which of the nodes kube-scheduler chose it shows by its deeds. Until it does, and for as
      // long again, a victim that leaves for another reason looks like one that it evicts.
      const auto agreed = agreed_.find(owner.pod.uid);
      const bool is_young =
          agreed != agreed_.end() && clock_.Now() - agreed->second.first <= 2 * EarmarkLine::kOffer;
      const Node node = earmarks.snapshot()->node(on.node).Without([&](const PodRecord& held) {
        return held.leaving || (is_young && agreed->second.second.contains(held.pod.id.uid));
      });
      const std::string lack = LackOf(node, pod->second.pod);
      if (lack.empty() || !kept_in_vain_.insert(node.spec().name + " " + owner.pod.uid).second) {
        continue;
      }
      Find(checks_.kept_in_vain, "kept in vain",
           std::to_string(owner.gpus) + " GPUs of " + node.spec().name + " are kept for " +
               owner.pod.name + ", for which it has too little " + lack);
    }
  }
}

void WorldSoak::CheckTwice() {
  std::map<std::pair<std::string, int>, int> taken;
  for (const PodRecord& record : state_.Everything().pods) {
    for (const DeviceGrant& grant : record.placement.grants) {
      int& milli = taken[{record.placement.node, grant.gpu}];
      milli += grant.milli;
      if (milli > kMilliPerGpu) {
        Find(true, "twice", "GPU " + std::to_string(grant.gpu) + " of " + record.placement.node);
      }
    }
  }
}

void WorldSoak::Note(const std::string& what) {
  history_.push_back(std::to_string(steps_) + " " + what);
  if (history_.size() > 300) history_.pop_front();
}

void WorldSoak::Find(bool fails, const std::string& kind, const std::string& what) {
  ++counts_["FOUND " + kind];
  Note(kind + ": " + what);
  if (fails && failure_.empty()) failure_ = "step " + std::to_string(steps_) + ": " + what;
}

std::string WorldSoak::History() const {
  std::string text;
  for (const std::string& line : history_) text += line + '\n';
  return text;
}

}  // namespace berth::test
