// SPDX-License-Identifier: Apache-2.0
#include "server/extender/gangs/plans/gang_plans.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cluster/values/alike.h"
#include "scoring/gangs/gang_class.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "server/extender/gangs/roster/gang_roster.h"

namespace berth {
namespace {

// What each member asks for, in words; "" where they differ or ask for other things than GPUs.
std::string AskOf(std::span<const std::shared_ptr<const PodRequest>> members) {
  const int gpus = members.front()->shape.gpu_count();
  const auto is_other = [gpus](const auto& member) {
    return !std::holds_alternative<WholeGpus>(member->shape.gpus) ||
           member->shape.gpu_count() != gpus;
  };
  if (std::ranges::any_of(members, is_other)) return "";
  return CountText(gpus, "GPU");
}

}  // namespace

bool GangPlans::IsSmall(const GangUnit& unit) const {
  if (unit.roll.has_claims) return false;  // a tenant's selectors keep nobody else waiting
  const std::size_t plans = 1 + unit.roll.says.parts.size();  // each may be kept to its domain
  return unit.roll.kinds * plans * parts_.state.Current()->size() <= gangs::kWorkOfAFilter;
}

bool GangPlans::IsHopeless(const GangUnit& unit, Instant now) const {
  const GangWait& wait = unit.wait;
  if (wait.hopeless == 0 || wait.refused_on.snapshot == nullptr) return false;
  const Duration pause = gangs::kBetweenPlans * (1 << std::min(wait.hopeless, 10));
  return now - wait.refused_at < std::min(pause, gangs::kBetweenHopes) &&
         parts_.waiting.ChangesOf(unit.roll.says.id) == wait.refused_change &&
         parts_.state.Current()->SameNodes(*wait.refused_on.snapshot);
}

bool GangPlans::IsWorthATry(const GangUnit& unit, const GangRoster& roster, Instant now) const {
  const GangWait& wait = unit.wait;
  const bool was_refused = wait.refused_on.snapshot != nullptr;
  const auto is_back = [&wait, now](const GangWait::Out& out) {
    return out.until <= now && out.until > wait.refused_at;
  };
  if (std::ranges::any_of(wait.out, is_back)) return true;
  if (!was_refused || wait.refused_members != roster.waiting.size()) return true;
  const bool is_same = wait.refused_on == GroundOf(unit) && wait.refused_change == roster.change;
  return now - wait.refused_at >= gangs::kBetweenPlans && !is_same && !IsHopeless(unit, now);
}

bool GangPlans::MayHold(const GangUnit& unit) const {
  if (!unit.wait.objection.empty()) return false;
  const std::size_t most_held = rosters_.settings()->most_held;
  if (most_held == 0 || unit.roll.began) return true;
  const std::int64_t needed = unit.roll.needs - unit.roll.bound;
  return std::cmp_less_equal(promised_ - unit.plan.promised + needed, most_held);
}

void GangPlans::Promise(GangUnit& unit) {
  std::int64_t binds = 0;
  for (const auto& [uid, member] : unit.plan.members)
    binds += member.pod->shape.wants_gpu() ? 1 : 0;
  promised_ += binds - unit.plan.promised;
  unit.plan.promised = binds;
}

bool GangPlans::PlanFor(Engine& engine, GangUnit& unit, const GangRoster& roster,
                        const std::shared_ptr<const PodRequest>& pod, Instant now,
                        GangActions& actions) {
  if (!leads_ || unit.forgotten || unit.plan.phase == GangPlanned::Phase::kCommitting) return false;
  if (now < unit.wait.not_before || !IsWorthATry(unit, roster, now)) return false;
  if (unit.plan.members.empty()) {
    if (!IsSmall(unit) || !Plan(engine, unit, roster, now, actions)) return false;
    if (unit.plan.members.contains(pod->id.uid)) return true;
  }
  // The devices of the others are in no books.
  if (rosters_.ClaimsOf(unit, *pod) != ClaimState::kNone) return false;
  // Beyond the plan: the others stay where they are.
  GangToPlan alone{
      .members = {pod}, .with_claims = unit.roll.has_claims, .excluded = unit.plan.excluded};
  AddOut(unit, now, alone);
  const auto nodes = planning_.Plan(engine, alone);
  if (nodes) {
    if (nodes->empty()) return false;  // its bind has begun
    unit.plan.Add(pod, nodes->begin()->second);
    Promise(unit);
    return true;
  }
  unit.wait.refused_on = nodes.error().ground;
  unit.wait.refused_members = roster.waiting.size();
  unit.wait.refused_change = roster.change;
  unit.wait.refused_at = now;
  return false;
}

void GangPlans::AddOut(const GangUnit& unit, Instant now, GangToPlan& ask) {
  const auto stays = [&ask](const std::string& uid, const std::string& node) {
    const auto is_there = [&](const auto& nodes) {
      const auto there = nodes.find(uid);
      return there != nodes.end() && there->second == node;
    };
    return is_there(ask.fixed) || is_there(ask.wished);
  };
  for (const GangWait::Out& out : unit.wait.out) {
    if (out.until <= now) continue;
    for (const auto& pod : ask.members) {
      const std::string& uid = pod->id.uid;
      if (out.uids.contains(uid)) {
        ask.excluded[uid].insert(out.node);
      } else if (SamePodKind(*out.pod, *pod) && !stays(uid, out.node)) {
        ask.avoided[uid].insert(out.node);
      }
    }
  }
}

std::optional<GangToPlan> GangPlans::MembersToPlan(const GangUnit& unit, const GangRoster& roster,
                                                   Instant now) const {
  const bool all = NeedsAll(unit.roll.says, roster.all.roles);  // whatever their roles are
  GangToPlan ask{
      .members = {},
      .minimum = std::max<std::int64_t>(unit.roll.Missing(roster.placed), 1),
      .roles = all ? std::vector<GangRole>() : MissingRoles(unit.roll.says, roster.placed.roles),
      .change = roster.change,
      .with_claims = unit.roll.has_claims,
      .excluded = unit.plan.excluded};
  for (const auto& pod : roster.waiting) {
    const ClaimState claims = rosters_.ClaimsOf(unit, *pod);
    if (claims == ClaimState::kUnseen) continue;  // what it asks for is not known yet
    ask.members.push_back(pod);
    if (claims != ClaimState::kAllocated) continue;
    if (std::string node = parts_.claims->NodeOf(*pod); !node.empty()) {
      ask.fixed.emplace(pod->id.uid, std::move(node));
    }
  }
  AddFollowers(unit, roster, ask);
  if (ask.members.empty() || std::ssize(ask.members) < ask.minimum) return std::nullopt;
  for (const auto& [uid, member] : unit.plan.members) {
    const auto excluded = ask.excluded.find(uid);
    const bool is_kept_off =
        unit.wait.IsOut(uid, member.node, now) ||
        (excluded != ask.excluded.end() && excluded->second.contains(member.node));
    if (member.bind != nullptr) {
      ask.fixed.emplace(uid, member.node);
    } else if (member.asks > 0 && now - member.answered < gangs::kBindsWithin && !is_kept_off) {
      ask.wished.emplace(uid, member.node);
    }
  }
  // kube-scheduler counts those for which others were evicted on the nodes that it was told, and
  // lets no other member have their places. Until that is given up they go nowhere else.
  for (const std::string& uid : unit.clearing.nominated) {
    if (const auto* const node = unit.clearing.nodes.NodeOf(uid)) ask.fixed.emplace(uid, *node);
  }
  AddOut(unit, now, ask);
  return ask;
}

bool GangPlans::Plan(Engine& engine, GangUnit& unit, const GangRoster& roster, Instant now,
                     GangActions& actions, const std::string& asker, const OfferedNodes* offered) {
  std::optional<GangToPlan> ask = MembersToPlan(unit, roster, now);
  if (!ask || !MayHold(unit)) return false;
  if (offered != nullptr) {
    ask->asker = asker;
    for (const NodeIndex node : offered->candidates) {
      ask->offered.insert(offered->snapshot.names().name(node));
    }
  }
  return Adopt(unit, *ask, planning_.Plan(engine, *ask), now, actions);
}

// kube-scheduler may hear before us that those have ended that were evicted, and takes what filter
// said of the cluster without them for what it says now.
void GangPlans::PlanAtLast(Engine& engine, GangUnit& unit,
                           const std::shared_ptr<const PodRequest>& pod, Instant now,
                           GangActions& actions) {
  if (!MayPlan(unit, now) || !unit.clearing.nominated.contains(pod->id.uid)) return;
  const GangRoster roster = rosters_.Read(unit, pod);
  const GangWait& wait = unit.wait;
  if (wait.refused_change == roster.change && wait.refused_on == GroundOf(unit)) return;
  Plan(engine, unit, roster, now, actions);
}

void GangPlans::PlanOutside(Engine& engine, GangUnit& unit, const GangToPlan& ask, Instant now,
                            GangActions& actions) {
  const auto nodes = planning_.Plan(engine, ask);
  const MutexLock lock(unit.mutex);
  unit.plan.in_the_making = false;
  unit.wait.nothing_to_do = !Adopt(unit, ask, nodes, now, actions);
}

bool GangPlans::Adopt(GangUnit& unit, const GangToPlan& ask,
                      const tl::expected<NodesByUid, NoGangPlan>& nodes, Instant now,
                      GangActions& actions) {
  if (!nodes) {
    Refuse(unit, nodes.error(), ask, now, actions);
    return false;
  }
  if (unit.forgotten || !leads_) {
    std::vector<std::string> uids;
    for (const auto& [uid, node] : *nodes) uids.push_back(uid);
    parts_.state.Unplan(uids);
    return false;
  }
  GangPlanned::Members plan;
  AdoptFollowers(unit, ask, *nodes, now);
  for (const auto& pod : std::span(ask.members).first(ask.members.size() - ask.followers)) {
    const std::string& uid = pod->id.uid;
    const auto node = nodes->find(uid);
    if (node == nodes->end()) continue;
    GangPlanned::Member member{.pod = pod, .node = node->second};
    if (const auto before = unit.plan.members.find(uid); before != unit.plan.members.end()) {
      member = std::exchange(before->second, {});
      if (std::exchange(member.node, node->second) != node->second) member.asks = 0;
    }
    plan.emplace(uid, std::move(member));
    const bool may_come = rosters_.WantsDevices(unit, *pod) || unit.roll.began;
    if (const auto asleep = unit.wait.asleep.find(uid);
        may_come && asleep != unit.wait.asleep.end()) {
      unit.wait.asked.insert(uid);
      actions.wakes.push_back(asleep->second);
    }
  }
  for (auto& [uid, left_out] : unit.plan.members) {  // it is gone, or was beyond the minimum
    if (left_out.bind == nullptr) continue;
    actions.answers.emplace_back(std::move(left_out.bind),
                                 tl::unexpected(gangs::Conflict(gangs::kNoPlan)));
  }
  const bool is_new = unit.plan.Make(std::move(plan));
  Promise(unit);
  std::erase_if(unit.clearing.kept,
                [&nodes](const std::string& uid) { return nodes->contains(uid); });
  StopClearing(unit);
  actions.with_room.push_back(unit.roll.says.id.text());
  unit.plan.touched = now;
  unit.wait.refused_on = {};
  unit.wait.lack = {};
  unit.wait.lack_of = nullptr;
  unit.wait.hopeless = 0;
  unit.wait.shortage.reset();
  unit.wait.told = false;
  if (is_new) {
    actions.news.push_back(
        {.what = GangNews::What::kPlanned,
         .gang = unit.roll.says.id,
         .pod = ask.members.front()->id,
         .text = CountText(std::ssize(unit.plan.members), "member") + " planned"});
  }
  return true;
}

void GangPlans::Refuse(GangUnit& unit, const NoGangPlan& none, const GangToPlan& ask, Instant now,
                       GangActions& actions) {
  GangWait& wait = unit.wait;
  const bool is_same = wait.refused_on.snapshot != nullptr &&
                       wait.refused_members == ask.members.size() &&
                       wait.refused_change == ask.change &&
                       none.ground.snapshot->SameNodes(*wait.refused_on.snapshot);
  if (!is_same) wait.lack = {.text = none.part};
  wait.shortage_part = none.part;
  if ((!is_same || now - wait.lack_at >= gangs::kBetweenHopes) && none.claims_left.empty()) {
    wait.lack_of =
        std::make_shared<const GangToPlan>(GangToPlan{ask.members, ask.minimum, ask.roles});
    wait.lack_at = now;
  }
  if (wait.lack_of == nullptr) wait.hopeless = wait.lack.for_good ? wait.hopeless + 1 : 0;
  wait.refused_on = none.ground;
  wait.refused_members = ask.members.size();
  wait.refused_change = ask.change;
  wait.refused_at = now;
  wait.shortage = none.shortage;
  wait.shortage_domain = none.domain;
  wait.shortage_ask = AskOf(ask.members);
  if (!none.claims_left.empty()) unit.roll.claims_left = true;  // Look lets the pods go
  // kube-scheduler takes devices back from a pod that it asks about and that fits nowhere: those
  // of a gang that another process began to allocate.
  for (const auto& pod : ask.members) {
    if (rosters_.ClaimsOf(unit, *pod) == ClaimState::kAllocated) actions.wakes.push_back(pod->id);
  }
  auto lacks = ask.members;
  lacks.resize(std::min(lacks.size(), static_cast<std::size_t>(ask.minimum)));
  actions.without_room.push_back({std::move(lacks), unit.roll.created});
}

void GangPlans::FindLack(GangUnit& unit, Instant now, GangActions& actions) {
  std::shared_ptr<const GangToPlan> of;
  std::shared_ptr<const Snapshot> on;
  {
    const MutexLock lock(unit.mutex);
    of = unit.wait.lack_of;
    on = unit.wait.refused_on.snapshot;
  }
  GangLack lack;
  if (of != nullptr && on != nullptr) {  // else it is to be planned anew
    lack = WhyNoPlan(*on, *parts_.domains.Of(on), parts_.domains.levels(), of->members, of->minimum,
                     of->roles);
  }
  const MutexLock lock(unit.mutex);
  GangWait& wait = unit.wait;
  if (wait.lack_of != of) return;  // it was refused anew, or has a plan
  if (std::exchange(wait.lack_of, nullptr) != nullptr) {
    if (lack.text.empty()) lack.text = wait.shortage_part;
    wait.hopeless = lack.for_good ? wait.hopeless + 1 : 0;
    wait.lack = std::move(lack);
  }
  if (!wait.shortage || std::exchange(wait.told, true)) return;
  actions.news.push_back({.what = GangNews::What::kNoRoom,
                          .gang = unit.roll.says.id,
                          .pod = wait.asleep.empty() ? PodId() : wait.asleep.begin()->second,
                          .text = ViewOf(unit, now).why});
}

NodeIndex OfferedNodes::Find(const std::string& name) const {
  const NodeIndex node = snapshot.names().Find(name);
  const bool is_there = node != kNoNode && std::ranges::find(candidates, node) != candidates.end();
  return is_there ? node : kNoNode;
}

}  // namespace berth
