// SPDX-License-Identifier: Apache-2.0
#include "server/extender/extender.h"

#include <algorithm>

namespace berth {

void Extender::Use(Policy policy) {
  if (parts_.gangs != nullptr) parts_.gangs->Use(policy.gangs);
  auto next = std::make_shared<const Policy>(std::move(policy));
  const MutexLock lock(policy_mutex_);
  std::swap(policy_, next);  // the old engine is freed after the lock
}

std::shared_ptr<const Extender::Policy> Extender::policy() const {
  const MutexLock lock(policy_mutex_);
  return policy_;
}

Extender::Moment Extender::Now() const {
  Moment now{Current(), policy()};
  now.reservations = earmarks_.Newest(TakeKept(now), parts_.clock.Now());
  return now;
}

std::shared_ptr<const KeptNodes> Extender::TakeKept(Moment& now) const {
  if (parts_.rooms == nullptr) return nullptr;
  now.openings = parts_.rooms->openings();  // before: what opens now is news then
  return parts_.rooms->Kept();
}

bool Extender::IsToGetDevices(const PodRequest& pod) const {
  if (parts_.claims == nullptr || pod.claims.empty()) return false;
  const ClaimState state = parts_.claims->StateOf(pod);
  return state == ClaimState::kOpen || state == ClaimState::kUnseen;
}

Question Extender::QuestionAbout(const Moment& now, const PodRequest& pod,
                                 std::span<const NodeIndex> candidates) const {
  return {.pod = pod,
          .candidates = candidates,
          .group = GroupOf(now.snapshot, pod),
          .behind_scheduler = parts_.behind_scheduler,
          .guard = now.policy->guard,
          .reservations = &now.reservations,
          .claims = IsToGetDevices(pod)};
}

void Extender::PassBy(const Moment& now, const PodRequest& pod) {
  if (pending_.Remember(pod)) Arrived(*now.policy->engine, now.snapshot, pod.shape);
  parts_.sink.Record({.verb = Verb::kFilter, .pod = &pod.id});
}

FilterAnswer Extender::Filter(const Moment& asked, const PodRequest& pod,
                              std::span<const NodeIndex> candidates, bool some_unknown,
                              bool looks_again) {
  const Moment now = WithEarmarks(asked, EarmarkLine::Scope::kChanges);
  const auto& snapshot = now.snapshot;
  const auto& policy = now.policy;
  bool is_new = false;
  if (!pod.refusal.empty()) {
    pending_.Forget(pod.id.uid);  // what it asked for before no longer holds
  } else {
    is_new = pending_.Remember(pod);
    if (is_new) Arrived(*policy->engine, snapshot, pod.shape);
  }
  if (parts_.moves != nullptr && parts_.moves->Adopt(pod)) {
    // The place is in the books since the snapshot was taken.
    if (auto answer = FilterInDoubt(Current(), pod, candidates)) return *std::move(answer);
  }
  if (auto answer = FilterInDoubt(snapshot, pod, candidates)) return *std::move(answer);
  if (StartsWithGang(*policy, pod)) {
    if (auto answer = FilterMember(now, pod, candidates)) return *std::move(answer);
  }
  const Question question = QuestionAbout(now, pod, candidates);
  Judgement judged = Judge(*policy->engine, snapshot, question);
  if (pod.gang.empty()) LeaveOut(*snapshot, pod, judged);
  parts_.sink.Record({.verb = Verb::kFilter,
                      .pod = &pod.id,
                      .candidates = candidates.size(),
                      .fitting = judged.fitting.size(),
                      .first_reason = judged.first_reason,
                      .shortage = judged.shortage});
  FilterAnswer answer{.unknown = ReasonOfUnknown(pod)};
  answer.fits = !judged.fitting.empty() || (some_unknown && answer.unknown == Reason::kFits);
  if (!judged.fitting.empty()) {
    const auto is_judged = [&pod, &nodes = *now.snapshot](NodeIndex node) {
      return !GetsClaimOn(nodes.node(node), pod);
    };
    if (std::ranges::all_of(judged.fitting, is_judged)) {
      recent_.Remember(snapshot, pod.shape, judged.fitting, judged.pull);
    }
    const bool is_worth_it = is_new && pod.shape.wants_gpu();
    Shortlist(*policy->engine, snapshot, pod, is_worth_it ? policy->nodes_to_score : 0, judged);
    if (judged.fitting.size() == 1) Told(*snapshot, pod, judged.fitting[0]);
  } else if (!answer.fits) {
    answer.may_change =
        std::ranges::any_of(judged.reasons, MayChangeSoon) || (some_unknown && pod.refusal.empty());
    answer.kept_out = KeptOut(now, question, judged.reasons);
    answer.for_evicted = !looks_again && evictions_.Awaited(pod.id.uid, *snapshot, candidates);
    StandInLine(now, pod);
  }
  answer.reasons = std::move(judged.reasons);
  if (!answer.fits) LetPassWithoutOthers(*snapshot, pod, candidates, answer);
  return answer;
}

void Extender::LeaveOut(const Snapshot& snapshot, const PodRequest& pod, Judgement& judged) {
  const std::set<std::string> out = pending_.ComesBack(pod.id.uid, parts_.clock.Now());
  std::vector<bool> goes_on;
  for (const NodeIndex node : judged.fitting) {
    goes_on.push_back(!out.contains(std::string(snapshot.names().name(node))));
  }
  if (std::find(goes_on.begin(), goes_on.end(), true) != goes_on.end()) PassOver(goes_on, judged);
}

void Extender::Told(const Snapshot& snapshot, const PodRequest& pod, NodeIndex node) {
  if (pod.gang.empty()) pending_.Told(pod.id.uid, snapshot.names().name(node), parts_.clock.Now());
}

bool Extender::HasOwnPlace(const std::string& uid) const {
  if (parts_.moves != nullptr && parts_.moves->HasAdopted(uid)) return true;
  const auto room = parts_.rooms == nullptr ? std::nullopt : parts_.rooms->Of(uid);
  return room && room->gang.empty();  // what a gang's plan has, the gang gives
}

std::optional<FilterAnswer> Extender::FilterInDoubt(const std::shared_ptr<const Snapshot>& snapshot,
                                                    const PodRequest& pod,
                                                    std::span<const NodeIndex> candidates) const {
  const std::optional<PodRecord> held = parts_.state.FindPod(pod.id.uid);
  if (!held || held->state == PodState::kBound) return std::nullopt;
  if (held->state == PodState::kPlanned && !HasOwnPlace(pod.id.uid)) return std::nullopt;
  const NodeIndex node = snapshot->names().Find(held->placement.node);
  if (node == kNoNode || std::ranges::find(candidates, node) == candidates.end()) {
    return std::nullopt;
  }
  return OnlyOn(node, pod, candidates);
}

std::optional<std::uint64_t> Extender::KeptOut(const Moment& now, const Question& question,
                                               std::span<const Reason> reasons) {
  const KeptNodes* const nodes = now.reservations.nodes();
  for (std::size_t i = 0; nodes != nullptr && i < reasons.size(); ++i) {
    if (reasons[i] != Reason::kKeptForWaiting) continue;
    const std::string_view name = now.snapshot->names().name(question.candidates[i]);
    if (KeptNodeFrom(nodes, name, question.pod, question.claims)) return now.openings;
  }
  return std::nullopt;
}

FilterAnswer Extender::OnlyOn(NodeIndex node, const PodRequest& pod,
                              std::span<const NodeIndex> candidates) const {
  FilterAnswer answer{.unknown = ReasonOfUnknown(pod), .fits = true};
  answer.reasons.assign(candidates.size(), Reason::kBetterElsewhere);
  const auto there = std::ranges::find(candidates, node);
  answer.reasons[static_cast<std::size_t>(there - candidates.begin())] = Reason::kFits;
  parts_.sink.Record({.verb = Verb::kFilter,
                      .pod = &pod.id,
                      .candidates = candidates.size(),
                      .fitting = 1,
                      .first_reason = Reason::kBetterElsewhere});
  return answer;
}

GroupPlaces Extender::GroupOf(const std::shared_ptr<const Snapshot>& snapshot,
                              const PodRequest& pod) const {
  GroupPlaces group;
  if (parts_.waiting != nullptr && pod.gang.empty()) {
    for (const std::string& name : parts_.waiting->FormerNodes(pod.id.uid, parts_.clock.Wall())) {
      const NodeIndex node = snapshot->names().Find(name);
      if (node != kNoNode) group.former.push_back(node);
    }
    std::ranges::sort(group.former);
  }
  if (parts_.domains == nullptr || !NeedsGroup(pod) || !pod.refusal.empty()) return group;
  group.tree = parts_.domains->Of(snapshot);
  if (!pod.gang.empty()) {
    group.members =
        MembersOn(*snapshot, pod, parts_.state.GangNodes(pod.gang.id), PartOf(pod.gang, pod.role));
    if (parts_.gangs != nullptr && pod.domain.required) {  // nobody else asks how many are left
      group.members.left = parts_.gangs->LeftOf(pod.gang.id, parts_.clock.Now());
    }
  }
  return group;
}

Extender::Limits Extender::LimitsNow() const {
  static const DisruptionBudgets kNoBudgets;
  auto budgets = (parts_.budgets == nullptr ? kNoBudgets : *parts_.budgets).Current();
  const EvictionLimits limits{*budgets,
                              [this](const GangId& gang) { return parts_.state.GangSize(gang); },
                              parts_.clock.Wall(), policy()->gangs.may_break};
  return {std::move(budgets), limits};
}

void Extender::Arrived(std::span<const std::shared_ptr<const PodRequest>> pods) {
  if (parts_.mix == nullptr) return;
  const Moment now = Now();
  for (const auto& pod : pods) {
    if (pod->refusal.empty()) parts_.mix->Observe(WithCompute(pod->shape, *now.snapshot));
  }
  now.policy->engine->Follow(now.snapshot);
}

void Extender::Arrived(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                       const RequestShape& shape) {
  if (parts_.mix == nullptr || parts_.watches_arrivals) return;
  parts_.mix->Observe(WithCompute(shape, *snapshot));
  engine.Follow(snapshot);
}

std::vector<std::uint8_t> Extender::Prioritize(const Moment& now, const PodRequest& pod,
                                               std::span<const NodeIndex> candidates) {
  parts_.sink.Record({.verb = Verb::kPrioritize, .pod = &pod.id, .candidates = candidates.size()});
  const auto& snapshot = now.snapshot;
  const auto& policy = now.policy;
  if (policy->guard != NodeGuard::kOff && LeavesToScheduler(*policy, pod)) {
    auto guarded = GuardedPriorities(*snapshot, candidates);
    if (!guarded.empty()) return guarded;
  }
  const std::vector<int> pull = PullOn(*snapshot, pod, GroupOf(snapshot, pod), candidates);
  auto priorities = Priorities(*policy->engine, snapshot, pod, candidates, pull);
  const auto best = std::ranges::max_element(priorities);
  if (best != priorities.end() && std::ranges::count(priorities, *best) == 1) {
    Told(*snapshot, pod, candidates[static_cast<std::size_t>(best - priorities.begin())]);
  }
  return priorities;
}

namespace {

// kube-scheduler may ask again while the victims that were agreed on are ending, and has seen some
// of them go. It is to stay at these, those that are there. nullopt: there are none.
std::optional<NodeVictims> RestOf(const NodeVictims& agreed, const NodeVictims& asked,
                                  const Node& node) {
  if (asked.uids.empty()) return std::nullopt;
  NodeVictims rest = asked;
  rest.uids = agreed.uids;
  std::erase_if(rest.uids,
                [&node](const std::string& uid) { return node.FindPod(uid) == nullptr; });
  if (rest.uids.empty()) return std::nullopt;
  return rest;
}

}  // namespace

std::vector<NodeVictims> Extender::Preempt(const Moment& asked_at, const PodRequest& pod,
                                           std::span<const NodeVictims> nodes) {
  // Others may have been nominated since the last look, in whose room it would evict.
  const Moment now = WithEarmarks(asked_at, EarmarkLine::Scope::kChanges);
  const std::shared_ptr<const Snapshot>& snapshot = now.snapshot;
  if (LeavesToScheduler(*now.policy, pod)) {
    parts_.sink.Record({.verb = Verb::kPreempt,
                        .pod = &pod.id,
                        .candidates = nodes.size(),
                        .fitting = nodes.size()});
    return {nodes.begin(), nodes.end()};
  }
  auto [budgets, limits] = LimitsNow();
  GangVerdict verdict;
  GroupPlaces group = pod.domain.required ? GroupOf(snapshot, pod) : GroupPlaces();
  std::vector<NodeVictims> kept, going, breaking;
  std::vector<bool> seen(snapshot->size());
  bool in_vain = !pod.refusal.empty() || !pod.may_preempt ||
                 evictions_.AwaitedElsewhere(pod.id.uid, *snapshot, nodes);
  NodeIndex only = kNoNode;  // kNoNode: any of them
  if (!in_vain && StartsWithGang(*now.policy, pod)) {
    verdict = PreemptMember(now, pod, nodes, limits);
    limits.ending = &verdict.ending;
    in_vain = verdict.kind == GangVerdict::Kind::kNotNow;
    only = verdict.node;
    if (only != kNoNode) group = {};  // the plan has the whole gang in one domain
  }
  for (const NodeVictims& asked : nodes) {
    if (in_vain) break;
    const NodeIndex index = snapshot->names().Find(asked.node);
    if (index == kNoNode || seen[index] || (only != kNoNode && index != only)) continue;
    seen[index] = true;  // a node that is named again is not searched again
    NodeVictims agreed = evictions_.AgreedOn(pod.id.uid, asked.node);
    if (auto rest = RestOf(agreed, asked, snapshot->node(index))) {
      const auto more =
          VictimsOn(*snapshot, pod, group, index, agreed.uids, limits, &now.reservations);
      if (more && more->empty()) {
        kept.push_back(*std::move(rest));
        going.push_back(std::move(agreed));
        continue;
      }
    }
    const bool breaks = kept.empty() && limits.gangs_may_break;
    if (auto victims = VictimsFor(now, pod, group, index, asked, limits, false)) {
      kept.push_back(*victims);
      going.push_back(*std::move(victims));
    } else if (breaks && (victims = VictimsFor(now, pod, group, index, asked, limits, true))) {
      breaking.push_back(*std::move(victims));
    }
  }
  if (kept.empty()) kept = going = std::move(breaking);
  if (only != kNoNode) parts_.gangs->Answered(pod, !kept.empty(), parts_.clock.Now());
  // Its own filters may have left kube-scheduler no node to ask about.
  if (!kept.empty() && only == kNoNode) StandInLine(now, pod);
  AgreeOn(*snapshot, pod, std::move(going));
  parts_.sink.Record(
      {.verb = Verb::kPreempt, .pod = &pod.id, .candidates = nodes.size(), .fitting = kept.size()});
  return kept;
}

std::optional<NodeVictims> Extender::VictimsFor(const Moment& now, const PodRequest& pod,
                                                const GroupPlaces& group, NodeIndex index,
                                                const NodeVictims& asked,
                                                const EvictionLimits& limits, bool breaks_gangs) {
  auto agreed = AgreedVictims(*now.snapshot, pod, group, index, {asked.uids, asked.pdb_violations},
                              limits, &now.reservations, breaks_gangs);
  if (!agreed) return std::nullopt;
  for (const auto& held : now.snapshot->node(index).pods()) {  // also those it did not name
    const bool goes = limits.Ends(held->pod.gang.id) && !held->leaving;
    if (goes && std::ranges::find(agreed->uids, held->pod.id.uid) == agreed->uids.end()) {
      agreed->uids.push_back(held->pod.id.uid);
    }
  }
  NodeVictims all = asked;
  all.uids = std::move(agreed->uids);
  all.pdb_violations = agreed->pdb_violations;
  const Node& node = now.snapshot->node(index);
  const auto priority = [&node](const std::string& uid) {
    const PodRecord* const held = node.FindPod(uid);
    return held == nullptr ? Node::kNoPriority : held->pod.priority;
  };
  std::ranges::stable_sort(all.uids, std::greater<>(), priority);
  return all;
}

void Extender::AgreeOn(const Snapshot& snapshot, const PodRequest& pod,
                       std::vector<NodeVictims> nodes) {
  // A request may name anything: only what the books have is remembered, once.
  std::erase_if(nodes, [&](NodeVictims& victims) {
    const Node& node = snapshot.node(snapshot.names().Find(victims.node));
    std::ranges::sort(victims.uids);
    victims.uids.erase(std::unique(victims.uids.begin(), victims.uids.end()), victims.uids.end());
    std::erase_if(victims.uids,
                  [&node](const std::string& uid) { return node.FindPod(uid) == nullptr; });
    return victims.uids.empty();
  });
  if (nodes.empty()) return;
  std::vector<EarmarkLine::Agreed> agreed;
  for (const NodeVictims& victims : nodes) agreed.push_back({victims.node, victims.uids});
  earmarks_.Agree(pod.id.uid, std::move(agreed));
  evictions_.Agree(pod.id.uid, std::move(nodes));
}

// What the verbs do for pods that wait: room that becomes free is kept for those who came first
// (earmark_table.h).

Extender::Moment Extender::WithEarmarks(Moment now, EarmarkLine::Scope scope) {
  const std::shared_ptr<const KeptNodes> kept = TakeKept(now);
  now.reservations = earmarks_.On(
      now.snapshot, kept, now.policy->earmarks, {parts_.clock.Now(), parts_.clock.Wall()},
      [this](const PodRequest& pod) { return StillWaits(pod); },
      [this](const std::vector<PodId>& pods) { wakes_.Wake(pods); }, scope);
  if (parts_.gangs != nullptr) parts_.gangs->Respect(now.reservations);
  return now;
}

void Extender::LookAtEarmarks() {
  const Moment now{Current(), policy()};
  StandUnasked(now);
  (void)WithEarmarks(now, EarmarkLine::Scope::kAll);
}

bool Extender::StillWaits(const PodRequest& pod) const {
  if (parts_.state.FindPod(pod.id.uid)) return false;
  return parts_.waiting == nullptr || !parts_.watches_arrivals ||
         parts_.waiting->Find(pod.id.uid).has_value();
}

std::string Extender::NominatedTo(const PodRequest& pod) const {
  if (parts_.waiting == nullptr) return "";
  const auto waiting = parts_.waiting->Find(pod.id.uid);
  return waiting ? waiting->nominated : "";
}

void Extender::StandInLine(const Moment& now, const PodRequest& pod) {
  if (!now.policy->earmarks || !pod.refusal.empty() || !pod.shape.wants_gpu()) return;
  auto waits = pending_.Find(pod.id.uid);
  if (waits == nullptr) waits = std::make_shared<const PodRequest>(pod);
  if (!pod.gang.empty()) {  // it may go alone, and waits with the others of its gang no more
    PodRequest alone = *waits;
    earmarks_.Leave(std::exchange(alone.gang, {}).id.text());
    waits = std::make_shared<const PodRequest>(std::move(alone));
  }
  const WallTime since = CreatedOf(pod.id).value_or(parts_.clock.Wall());
  earmarks_.Stand({{std::move(waits)}, since}, now.snapshot);
}

// kube-scheduler counts GPUs too where the kubelet has them, and asks nobody about a pod that all
// nodes have too few for. What has room at this moment it would have taken: what keeps the pod from
// there Berth does not know.
void Extender::StandUnasked(const Moment& now) {
  if (!now.policy->earmarks || parts_.waiting == nullptr || !parts_.watches_arrivals) return;
  if (!earmarks_.IsTimeForUnasked(parts_.clock.Now())) return;
  const std::set<std::string> askers = pending_.Schedulers();
  for (auto& [pod, created] :
       parts_.waiting->LackingRoom(EarmarkTable::kMostUnasked, EarmarkTable::kMostOfNamespace)) {
    if (!askers.contains(pod->scheduler) || parts_.state.FindPod(pod->id.uid)) continue;
    earmarks_.Stand({{std::move(pod)}, created}, now.snapshot);
  }
}

void Extender::TakeUpGangs(GangActions& actions) {
  if (!policy()->earmarks) return;
  for (auto& [members, since] : actions.without_room) {
    earmarks_.Stand({std::move(members), since.value_or(parts_.clock.Wall())}, Current());
  }
  for (std::string& gang : actions.with_room) earmarks_.Leave(std::move(gang));
}

}  // namespace berth
