// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/plans/gang_planning.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cluster/state/snapshot.h"
#include "scoring/admission.h"
#include "scoring/earmarks/earmarks.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_checked.h"
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

void GangPlanning::Respect(Reservations kept) {
  const MutexLock lock(mutex_);
  std::swap(kept_, kept);  // what was kept before is freed after the lock
}

GangGround GangPlanning::Ground(bool with_claims) const {
  GangGround ground{.snapshot = state_.Current()};
  if (with_claims && claims_ != nullptr) ground.devices = claims_->offers();
  const MutexLock lock(mutex_);
  ground.kept = kept_;
  return ground;
}

std::vector<NodeIndex> GangPlanning::KeptFrom(const Snapshot& snapshot, const PodRequest& pod,
                                              const Reservations& kept) const {
  std::vector<NodeIndex> nodes;
  const ClaimState claims = claims_ == nullptr ? ClaimState::kNone : claims_->StateOf(pod);
  const bool gets_devices = claims == ClaimState::kOpen || claims == ClaimState::kUnseen;
  const auto keep_out_of = [&](std::string_view name) {
    const NodeIndex node = snapshot.names().Find(name);
    if (node == kNoNode) return;
    if (kept.KeptFor(pod, snapshot, node, gets_devices) != nullptr) nodes.push_back(node);
  };
  const Earmarks& earmarks = kept.earmarks();
  for (const Earmarks::OnNode& on : earmarks.nodes()) {
    keep_out_of(earmarks.snapshot()->names().name(on.node));
  }
  if (kept.nodes() != nullptr) {
    for (const auto& [name, node] : *kept.nodes()) keep_out_of(name);
  }
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

bool GangPlanning::IsKeptFrom(const PodRequest& pod, const std::string& node) const {
  const GangGround now = Ground(false);
  const NodeIndex index = now.snapshot->names().Find(node);
  return std::ranges::binary_search(KeptFrom(*now.snapshot, pod, now.kept), index);
}

GangAsk GangPlanning::AskOf(const Snapshot& snapshot, const GangToPlan& ask,
                            const Reservations& keeps_off) const {
  GangAsk asked;
  const PodRequest& first = *ask.members.front();
  const PodRequest* alike = nullptr;  // the last one that is kept from these nodes
  std::vector<NodeIndex> kept;
  for (const auto& pod : ask.members) {
    GangMember member{.pod = *pod, .rank = MemberRank(*pod)};
    if (alike == nullptr || alike->shape != pod->shape || alike->claims != pod->claims) {
      kept = KeptFrom(snapshot, *pod, keeps_off);
    }
    alike = pod.get();
    member.excluded = kept;
    if (const auto fixed = ask.fixed.find(pod->id.uid); fixed != ask.fixed.end()) {
      member.fixed = snapshot.names().Find(fixed->second);
    }
    if (const auto excluded = ask.excluded.find(pod->id.uid); excluded != ask.excluded.end()) {
      for (const std::string& name : excluded->second) {
        const NodeIndex index = snapshot.names().Find(name);
        if (index != kNoNode) member.excluded.push_back(index);
      }
    }
    if (ask.asker == pod->id.uid) {
      for (NodeIndex i = 0; i < snapshot.size(); ++i) {
        if (!ask.offered.contains(snapshot.names().name(i))) member.excluded.push_back(i);
      }
    }
    std::ranges::sort(member.excluded);
    asked.members.push_back(std::move(member));
  }
  asked.minimum = ask.minimum;
  asked.roles = ask.roles;
  asked.present = MembersOn(snapshot, first, state_.GangNodes(first.gang.id));
  AskForDomains(first, asked);
  return asked;
}

Result<GangClaims::Needs> GangPlanning::AddDevices(const Snapshot& snapshot, const GangToPlan& of,
                                                   GangAsk& ask) const {
  if (claims_ == nullptr || !of.with_claims) return GangClaims::Needs();
  auto needs = claims_->NeedsOf(of.members, snapshot);
  if (!needs || needs->devices == nullptr) return needs;
  ask.devices = needs->devices.get();
  for (std::size_t i = 0; i < ask.members.size(); ++i) ask.members[i].claims = needs->kinds[i];
  return needs;
}

GangPlanning::Left GangPlanning::LeftOf(const GangToPlan& ask) const {
  const ClusterState::GangContents there = state_.GangPods(ask.members.front()->gang.id);
  std::unordered_map<std::string_view, const PodRecord*> records;
  for (const auto& record : there.pods) records.emplace(record->pod.id.uid, record.get());
  Left left{.now = there.snapshot, .lifted = nullptr, .ask = ask};
  left.ask.members.clear();
  Transaction lifted(there.snapshot);
  for (const auto& pod : ask.members) {
    const auto held = records.find(pod->id.uid);
    const bool has_begun = held != records.end() && held->second->state != PodState::kPlanned;
    if (has_begun) {
      --left.ask.minimum;
      const auto role = std::ranges::find(left.ask.roles, pod->role, &GangRole::name);
      if (role != left.ask.roles.end() && --role->minimum == 0) left.ask.roles.erase(role);
      continue;
    }
    left.ask.members.push_back(pod);
    if (held == records.end()) continue;
    const NodeIndex index = there.snapshot->names().Find(held->second->placement.node);
    if (index != kNoNode) lifted.Take(pod->id.uid, index);
  }
  left.ask.minimum = std::max<std::int64_t>(left.ask.minimum, 1);
  left.lifted = lifted.now();
  return left;
}

GangClearing GangPlanning::PlanAfterEvictions(Engine& engine, const GangToPlan& ask,
                                              const EvictionLimits& limits) {
  GangClearing clearing;
  const Left left = LeftOf(ask);
  if (left.ask.members.empty()) return clearing;
  const std::shared_ptr<const DomainTree> tree = domains_.Of(left.lifted);
  const Reservations kept = Ground(false).kept;
  const auto cleared =
      PlanToClear({left.lifted, *tree, engine, room_}, AskOf(*left.lifted, left.ask, kept),
                  {kept, limits, ask.nominated ? &*ask.nominated : nullptr});
  if (!cleared) return clearing;
  clearing.ending = cleared->ending;
  clearing.victims = cleared->victims;
  for (const GangPlan::Place& place : cleared->plan.places) {
    const bool fits = cleared->fit_now.contains(place.member);
    (fits ? clearing.beside : clearing.to_clear)
        .emplace(left.ask.members[place.member]->id.uid, place.placement.node);
  }
  return clearing;
}

bool GangPlanning::Keep(Engine& engine, const PodRequest& pod, const std::string& node) {
  const std::shared_ptr<const Snapshot> snapshot = state_.Current();
  const NodeIndex index = snapshot->names().Find(node);
  if (index == kNoNode || !LackOf(snapshot->node(index), pod).empty()) return false;
  auto placement = engine.PlaceOn(snapshot, pod.shape, index);
  if (!placement) return false;
  const PodPlacement planned{pod, *std::move(placement)};
  return state_.Plan(std::span(&planned, 1)).has_value();
}

tl::expected<NodesByUid, NoGangPlan> GangPlanning::Plan(Engine& engine, const GangToPlan& ask) {
  GangToPlan less = ask;  // than is wished
  if (!ask.wished.empty()) {
    less.fixed.merge(std::exchange(less.wished, {}));
    if (auto nodes = Plan(engine, less)) return nodes;
    less.fixed = ask.fixed;
  } else if (!ask.avoided.empty()) {
    for (const auto& [uid, nodes] : std::exchange(less.avoided, {})) {
      less.excluded[uid].insert(nodes.begin(), nodes.end());
    }
    if (auto nodes = PlanAsFixed(engine, less)) return nodes;
    less.excluded = ask.excluded;
  } else {
    auto nodes = PlanAsFixed(engine, ask);
    if (nodes || ask.asker.empty()) return nodes;
    less.asker.clear();
  }
  return Plan(engine, less);
}

tl::expected<NodesByUid, NoGangPlan> GangPlanning::PlanAsFixed(Engine& engine,
                                                               const GangToPlan& ask) {
  NoGangPlan none;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    none.ground = Ground(ask.with_claims);
    const Left left = LeftOf(ask);
    if (left.ask.members.empty()) return NodesByUid();
    none.ground.snapshot = left.now;
    const auto is_gone = [&names = left.now->names()](const auto& fixed) {
      return names.Find(fixed.second) == kNoNode;
    };
    if (std::ranges::any_of(ask.fixed, is_gone)) break;
    const std::shared_ptr<const DomainTree> tree = domains_.Of(left.now);
    GangAsk asked = AskOf(*left.lifted, left.ask, none.ground.kept);
    const auto needs = AddDevices(*left.lifted, left.ask, asked);
    if (!needs) {
      none.claims_left = needs.error().message;
      break;
    }
    const Planning with{left.lifted, *tree, engine, room_};
    BesideKept check(asked, none.ground.kept.earmarks(), *left.lifted);
    auto plan = PlanChecked(
        asked, [&with](const GangAsk& members) { return PlanGang(with, members); }, check);
    if (!plan) {
      if (needs->devices != nullptr && needs->devices->ran_out()) {
        none.claims_left = "it takes too long to find out which devices suit it";
      }
      none.shortage = plan.error();
      if (none.shortage.part) none.part = PartText(with, domains_.levels(), asked, none.shortage);
      none.domain = DomainName(*left.now, domains_.levels(), *tree, none.shortage.domain);
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
