// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gang_planning.h"

#include <algorithm>
#include <utility>

#include "cluster/transaction.h"
#include "scoring/admission.h"
#include "scoring/gangs/gang_evictions.h"
#include "scoring/gangs/gang_ranks.h"
#include "scoring/groups/group_domains.h"

namespace berth {

bool PlanHolds(const Snapshot& snapshot, const PodRequest& pod, const std::string& node) {
  const NodeIndex index = snapshot.names().Find(node);
  if (index == kNoNode) return false;
  const Node& now = snapshot.node(index);
  const PodRecord* const record = now.FindPod(pod.id.uid);
  if (record == nullptr || record->state != PodState::kPlanned) return false;
  if (Admits(now.spec(), pod) != Reason::kFits) return false;
  Node without = now;
  without.Remove(pod.id.uid);
  return without.CanTake(record->placement).has_value();
}

GangAsk GangPlanning::AskOf(const Snapshot& snapshot, const GangToPlan& ask) const {
  GangAsk asked;
  const PodRequest& first = *ask.members.front();
  for (const auto& pod : ask.members) {
    GangMember member{.pod = *pod, .rank = MemberRank(*pod)};
    if (const auto fixed = ask.fixed.find(pod->id.uid); fixed != ask.fixed.end()) {
      member.fixed = snapshot.names().Find(fixed->second);
    }
    if (const auto excluded = ask.excluded.find(pod->id.uid); excluded != ask.excluded.end()) {
      for (const std::string& name : excluded->second) {
        const NodeIndex index = snapshot.names().Find(name);
        if (index != kNoNode) member.excluded.push_back(index);
      }
      std::ranges::sort(member.excluded);
    }
    asked.members.push_back(std::move(member));
  }
  asked.minimum = ask.minimum;
  asked.present = MembersOn(snapshot, first, state_.GangNodes(first.gang.id));
  asked.domain = first.domain;
  return asked;
}

// The cluster without what the members hold by an earlier plan.
std::shared_ptr<const Snapshot> GangPlanning::Lifted(const std::shared_ptr<const Snapshot>& from,
                                                     const GangToPlan& ask) const {
  Transaction lifted(from);
  for (const auto& pod : ask.members) {
    const std::optional<PodRecord> held = state_.FindPod(pod->id.uid);
    if (!held || held->state != PodState::kPlanned) continue;
    const NodeIndex index = from->names().Find(held->placement.node);
    if (index != kNoNode) lifted.Take(pod->id.uid, index);
  }
  return lifted.now();
}

GangClearing GangPlanning::PlanAfterEvictions(Engine& engine, const GangToPlan& ask,
                                              const EvictionLimits& limits) {
  const std::shared_ptr<const Snapshot> lifted = Lifted(state_.Current(), ask);
  const std::shared_ptr<const DomainTree> tree = domains_.Of(lifted);
  const auto plan =
      berth::PlanAfterEvictions({lifted, *tree, engine, room_}, AskOf(*lifted, ask), limits);
  GangClearing clearing;
  if (!plan) return clearing;
  Transaction as_it_is(lifted);
  for (const GangPlan::Place& place : plan->places) {
    const PodRequest& pod = *ask.members[place.member];
    const bool fits = as_it_is.Put(pod, place.placement).has_value();
    (fits ? clearing.beside : clearing.to_clear).emplace(pod.id.uid, place.placement.node);
  }
  return clearing;
}

bool GangPlanning::Keep(Engine& engine, const PodRequest& pod, const std::string& node) {
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  const NodeIndex index = snapshot->names().Find(node);
  if (index == kNoNode) return false;
  auto placement = engine.PlaceOn(snapshot, pod.shape, index);
  if (!placement) return false;
  const PodPlacement planned{pod, *std::move(placement)};
  return state_.Plan(std::span(&planned, 1)).has_value();
}

tl::expected<NodesByUid, NoGangPlan> GangPlanning::Plan(Engine& engine, const GangToPlan& ask) {
  NoGangPlan none;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    none.snapshot = state_.Current();
    const auto is_gone = [&names = none.snapshot->names()](const auto& fixed) {
      return names.Find(fixed.second) == kNoNode;
    };
    if (std::ranges::any_of(ask.fixed, is_gone)) break;
    const std::shared_ptr<const DomainTree> tree = domains_.Of(none.snapshot);
    const std::shared_ptr<const Snapshot> lifted = Lifted(none.snapshot, ask);
    const GangAsk asked = AskOf(*lifted, ask);
    auto plan = PlanGang({lifted, *tree, engine, room_}, asked);
    if (!plan) {
      none.shortage = plan.error();
      none.domain = DomainName(*none.snapshot, domains_.levels(), *tree, none.shortage.domain);
      break;
    }
    NodesByUid nodes;
    std::vector<PodPlacement> placements;
    for (GangPlan::Place& place : plan->places) {
      const PodRequest& pod = asked.members[place.member].pod;
      nodes.emplace(pod.id.uid, place.placement.node);
      placements.push_back({pod, std::move(place.placement)});
    }
    if (!state_.Plan(placements)) continue;
    std::vector<std::string> left_out;
    for (const auto& pod : ask.members) {
      if (!nodes.contains(pod->id.uid)) left_out.push_back(pod->id.uid);
    }
    state_.Unplan(left_out);
    return nodes;
  }
  return tl::unexpected(std::move(none));
}

}  // namespace berth
