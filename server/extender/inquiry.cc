// SPDX-License-Identifier: Apache-2.0
#include "server/extender/inquiry.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <unordered_map>
#include <utility>

#include "scoring/explain/claim_words.h"
#include "scoring/explain/node_report.h"
#include "scoring/explain/other_limits.h"

namespace berth {

PodExplanation Inquiry::Explain(const PodRequest& pod, const PodSaid& said) const {
  const auto [budgets, limits] = extender_.LimitsNow();
  return ExplainPod(*now_.policy->engine, {.snapshot = now_.snapshot,
                                           .pod = pod,
                                           .group = extender_.GroupOf(now_.snapshot, pod),
                                           .limits = limits,
                                           .behind_scheduler = parts_.behind_scheduler,
                                           .guard = now_.policy->guard,
                                           .said = said,
                                           .reservations = &now_.reservations});
}

std::optional<PreemptionOutlook> Inquiry::GangPreemption(const PodRequest& pod) const {
  if (!extender_.StartsWithGang(*now_.policy, pod)) return std::nullopt;
  const auto [budgets, limits] = extender_.LimitsNow();
  const auto victims =
      parts_.gangs->WouldEvict(*now_.policy->engine, pod, limits, parts_.clock.Now());
  if (victims.empty()) return std::nullopt;
  PreemptionOutlook outlook{.helps = true};
  outlook.victims.assign(victims.begin(), victims.end());
  outlook.text = "its gang may preempt " + Listed(outlook.victims, 8);
  return outlook;
}

WhatIfAsk Inquiry::AskAbout(std::span<const PodRequest> pods, const NodeEdits& nodes,
                            const EvictionLimits& limits,
                            std::function<const char*()> stops) const {
  return {.snapshot = now_.snapshot,
          .pods = pods,
          .nodes = nodes,
          .levels = parts_.domains == nullptr ? TopologyLevels() : parts_.domains->levels(),
          .starts_whole = StartsWhole(),
          .limits = limits,
          .guard = now_.policy->guard,
          .reservations = &now_.reservations,
          .stops = std::move(stops)};
}

Result<WhatIfAnswer> Inquiry::WouldPlace(std::span<const PodRequest> pods, const NodeEdits& nodes,
                                         std::function<const char*()> stops,
                                         std::span<const std::string_view> held_back) const {
  const auto [budgets, limits] = extender_.LimitsNow();
  WhatIfAsk ask = AskAbout(pods, nodes, limits, std::move(stops));
  ask.held_back = held_back;
  return WhatIf(*now_.policy->engine, ask, parts_.mix);
}

Result<Growth> Inquiry::WouldTake(std::span<const PodRequest> pods, const NodeEdits& nodes,
                                  int most_nodes, std::span<const NodeSpec> at_zero,
                                  std::function<const char*()> stops) const {
  const auto [budgets, limits] = extender_.LimitsNow();
  return GrowPools(*now_.policy->engine, AskAbout(pods, nodes, limits, std::move(stops)),
                   most_nodes, at_zero);
}

RoomAsk Inquiry::AskForMoves(const EvictionLimits& limits) const {
  return {.snapshot = now_.snapshot,
          .goal = {},
          .rules = {.now = limits.now,
                    .budgets = limits.budgets,
                    .keep_model = now_.policy->moves_keep_model,
                    .schedulers = extender_.pending().Schedulers()},
          .guard = now_.policy->guard,
          .reservations = &now_.reservations};
}

RoomUnits Inquiry::WouldMakeRoom(std::span<const PodRequest> pods, const RoomGoals& goals,
                                 const std::function<const char*()>& stops,
                                 const RoomLimits& limits) const {
  const auto [budgets, eviction_limits] = extender_.LimitsNow();
  const Instant end = parts_.clock.Now() + limits.in_all;
  RoomWish wish{.ask = AskForMoves(eviction_limits),
                .pods = pods,
                .idle_nodes = goals.idle_nodes,
                .model = goals.model,
                .starts_whole = StartsWhole()};
  wish.ask.rules.allows = limits.may_move;
  if (std::set<std::string>& schedulers = wish.ask.rules.schedulers; schedulers.empty()) {
    for (const PodRequest& pod : pods) schedulers.insert(pod.scheduler);  // a file: nobody asks
  }
  if (parts_.domains != nullptr) wish.tree = parts_.domains->Of(now_.snapshot);
  wish.limits = [&]() -> std::optional<SearchLimits> {
    const Instant begin = parts_.clock.Now();
    if (begin >= end || (stops && stops() != nullptr)) return std::nullopt;
    const Instant until = std::min(end, begin + limits.for_one);
    return SearchLimits{.enough = [this, until, &stops] {
      return parts_.clock.Now() >= until || (stops && stops() != nullptr);
    }};
  };
  return RoomFor(wish);
}

void Inquiry::JudgeNodes(const PodRequest& asked, ClaimRoom* room, const OnJudged& judged) const {
  PodRequest pod = asked;
  std::array<std::vector<NodeIndex>, 2> all;  // whole / in parts
  for (NodeIndex node = 0; node < now_.snapshot->size(); ++node) {
    all[room != nullptr && room->InParts(now_.snapshot->node(node)) ? 1 : 0].push_back(node);
  }
  for (const bool in_parts : {false, true}) {
    const std::vector<NodeIndex>& nodes = all[in_parts ? 1 : 0];
    if (nodes.empty()) continue;
    if (room != nullptr) pod.shape = room->shape(in_parts);
    Question question = extender_.QuestionAbout(now_, pod, nodes);
    question.claims = room != nullptr;
    // Behind kube-scheduler a pod without GPUs would fit everywhere.
    if (in_parts) question.behind_scheduler = false;
    const auto reasons = ReasonsFor(*now_.policy->engine, now_.snapshot, question);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!judged(nodes[i], reasons[i])) return;
    }
  }
}

bool Inquiry::WouldFit(const PodRequest& pod, ClaimRoom* room) const {
  if (!pod.refusal.empty()) return false;
  bool fits = false;
  JudgeNodes(pod, room, [&](NodeIndex node, Reason reason) {
    fits = reason == Reason::kFits &&
           (room == nullptr || room->Has(now_.snapshot->node(node)) || room->ran_out());
    return !fits;
  });
  return fits;
}

PodExplanation Inquiry::ExplainClaims(const PodRequest& pod, ClaimRoom& room) const {
  ClaimsJudged judged{.asks = AskText(room.claims()), .nodes = now_.snapshot->size()};
  JudgeNodes(pod, &room, [&](NodeIndex index, Reason reason) {
    const Node& node = now_.snapshot->node(index);
    const bool fits = reason == Reason::kFits, has = room.Has(node);
    judged.too_long = room.ran_out();
    const std::string lacking = has && fits ? LackOf(node, pod) : "";
    if (has && fits && lacking.empty()) ++judged.fitting;
    if (has && fits && !lacking.empty()) ++judged.against["had too little of " + lacking];
    if (has && !fits) ++judged.against[std::string(PredicateOf(reason))];
    if (has || !fits || judged.too_long) return !judged.too_long;
    auto lack = room.LackOn(node);
    if (lack && (!judged.lack || lack->left > judged.lack->left)) {
      judged.lack = std::move(lack);
      judged.nearest = node.spec().name;
    }
    return true;
  });
  PodExplanation told;
  told.pod = pod.id;
  told.priority = pod.priority;
  told.nodes = judged.nodes;
  told.fitting = judged.fitting;
  told.line = LineOf(judged);
  told.sentence = LineOf(told.line, RoomBehind(pod.id.full_name()));
  return told;
}

Result<ClaimRoom> Inquiry::RoomOfClaims(const PodRequest& pod,
                                        std::vector<DeviceClaim> made) const {
  if (parts_.claims == nullptr) return Invalid("Berth does not choose devices of claims");
  return made.empty() ? parts_.claims->RoomOf(pod) : parts_.claims->RoomFor(pod, std::move(made));
}

DeviceVictims Inquiry::VictimsForDevices(const PodRequest& pod,
                                         const std::function<bool(const std::string& node)>& skips,
                                         ClaimRoom* room, const ClaimEnds& ends) const {
  const auto [budgets, limits] = extender_.LimitsNow();
  return berth::VictimsForDevices(*now_.snapshot, pod, limits, skips, room, ends);
}

namespace {

bool IsPlainWord(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '/' ||
           c == '_';
  });
}

}  // namespace

std::vector<PodRequest> RoomUnitOf(const Extender& extender, const WaitingPods& waiting,
                                   const PodGroups* groups, const Extender::Moment& now,
                                   const WaitingPod& pod) {
  std::vector<WaitingPod> listed = {pod};
  if (extender.StartsWithGang(*now.policy, *pod.pod)) {
    listed = waiting.WaitingMembers(pod.pod->gang.id);
  }
  return LineOf(std::move(listed), *now.snapshot, groups, kMostUnitPods + 1).pods;
}

const RoomUnit* FindUnit(const RoomUnits& units, const PodRequest& pod) {
  // Of a gang that has begun, each pod is a unit of its own.
  const std::string own = pod.id.full_name();
  for (const RoomUnit& unit : units.units) {
    if (!unit.is_gang && unit.name != own) continue;
    return unit.plan.found && !unit.plan.moves.empty() ? &unit : nullptr;
  }
  return nullptr;
}

std::string RoomSentence(const std::string& name, bool is_gang, std::int64_t moves) {
  std::string text = CountText(moves, "move") + " would let " + (is_gang ? "its gang" : "it") +
                     " in: berth plan --make-room";
  return IsPlainWord(name) ? text + " --for " + name : text;
}

WaitingLine LineOf(std::vector<WaitingPod> all, const Snapshot& snapshot, const PodGroups* groups,
                   std::size_t most) {
  WaitingLine line;
  line.gated =
      static_cast<std::size_t>(std::erase_if(all, [](const auto& p) { return p.gated(); }));
  std::unordered_map<std::string_view, PodState> placed;
  snapshot.ForEachPod(
      [&placed](const auto& held, NodeIndex) { placed.emplace(held->pod.id.uid, held->state); });
  std::ranges::stable_sort(all, ComesBefore, &WaitingPod::place);  // they are sorted by name
  std::erase_if(all, [&](const WaitingPod& one) {
    const auto found = placed.find(one.pod->id.uid);
    const bool is_placed = found != placed.end();
    if (is_placed && found->second == PodState::kPlanned) line.planned.push_back(*one.pod);
    return is_placed;
  });
  line.beyond = all.size() - std::min(all.size(), most);
  all.resize(all.size() - line.beyond);
  for (const WaitingPod& one : all) {
    PodRequest& pod = line.pods.emplace_back(*one.pod);
    if (groups != nullptr && !pod.gang.empty()) (void)groups->Read(pod);
  }
  return line;
}

}  // namespace berth
