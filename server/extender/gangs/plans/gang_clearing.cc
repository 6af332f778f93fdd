// SPDX-License-Identifier: Apache-2.0
//
// GangPlans: the nodes where others are evicted for a gang, and what is kept there meanwhile.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "cluster/values/alike.h"
#include "scoring/explain/other_limits.h"
#include "scoring/reason.h"
#include "scoring/registry.h"
#include "scoring/victims.h"
#include "server/extender/gangs/plans/gang_plans.h"
#include "server/extender/gangs/roster/gang_limits.h"

namespace berth {
namespace {

// Whether the pod fits the node, or would without pods of lower priority.
bool MayStillCome(const Snapshot& snapshot, const PodRequest& pod, const std::string& name) {
  const NodeIndex index = snapshot.names().Find(name);
  if (index == kNoNode) return false;
  const Node& node = snapshot.node(index);
  const Reason reason = AfterEvictions(node, pod, FirstObjection(node, pod.shape));
  if (VerdictOf(reason) == Verdict::kUnresolvable) return false;
  const Node left = node.Without(
      [&pod](const PodRecord& held) { return held.leaving || held.pod.priority < pod.priority; });
  return LackOf(left, pod).empty();
}

bool HasLeaving(const Snapshot& snapshot, const std::string& name) {
  const NodeIndex index = snapshot.names().Find(name);
  return index != kNoNode && std::ranges::any_of(snapshot.node(index).pods(),
                                                 [](const auto& held) { return held->leaving; });
}

}  // namespace

// kube-scheduler asks about some nodes of a large cluster. Pods that ask for the same may change
// places, until others are evicted for one of them: kube-scheduler counts it as nominated to its
// node then, and would evict for the second one beside it.
void GangPlans::MoveToAsked(GangUnit& unit, const GangRoster& roster, const PodRequest& pod,
                            const OfferedNodes& offered) {
  NodesByUid& nodes = unit.clearing.nodes.to_clear;
  const auto may_move = [&unit](const std::string& uid) {
    return !unit.clearing.kept.contains(uid) && !unit.clearing.nominated.contains(uid) &&
           !unit.clearing.told.contains(uid);
  };
  const auto own = nodes.find(pod.id.uid);
  if (own == nodes.end() || !may_move(pod.id.uid)) return;
  if (offered.Find(own->second) != kNoNode) return;
  for (const auto& member : roster.waiting) {
    const auto other = nodes.find(member->id.uid);
    if (other == nodes.end() || !may_move(member->id.uid)) continue;
    if (offered.Find(other->second) == kNoNode || !SamePodKind(*member, pod)) continue;
    std::swap(own->second, other->second);
    return;
  }
}

bool GangPlans::MayPlan(const GangUnit& unit, Instant now) const {
  return unit.plan.phase == GangPlanned::Phase::kNone && leads_ && !unit.forgotten &&
         now >= unit.wait.not_before && MayHold(unit);
}

bool GangPlans::MayTell(const GangUnit& unit, const GangRoster& roster, const PodRequest& pod,
                        const Node& node) {
  // Without those that need room they are too few, so that nothing is bound.
  if (unit.clearing.nodes.beside.contains(pod.id.uid)) {
    return roster.placed.pods + std::ssize(unit.clearing.nodes.beside) < unit.roll.needs;
  }
  std::int64_t given = 0;
  for (const auto& member : roster.waiting) {
    const std::string& uid = member->id.uid;
    const std::string* const other = unit.clearing.nodes.NodeOf(uid);
    if (unit.clearing.told.contains(uid) && other != nullptr && *other == node.spec().name) {
      given += GpusCountedFor(node.spec(), member->shape);
    }
  }
  return PodsAreTakenAway(node, pod, given) && AnyEvictionsWillDo(node, pod);
}

void GangPlans::PlanToClear(Engine& engine, GangUnit& unit, const GangRoster& roster,
                            const EvictionLimits& limits, bool one_by_one, Instant now) {
  const bool is_same = unit.clearing.found_change == roster.change;
  const bool is_young = now - unit.clearing.found_at < gangs::kBetweenClearings;
  if (is_same && (is_young || unit.clearing.found_on == planning_.Ground(false))) return;
  std::optional<GangToPlan> ask = MembersToPlan(unit, roster, now);
  if (!ask) return;
  // Those for which others are evicted already, or are to be, or that keep a place, stay there.
  if (one_by_one) ask->nominated = unit.clearing.nominated;
  bool has_begun = !unit.clearing.nominated.empty();
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (!unit.clearing.told.contains(uid) && !unit.clearing.kept.contains(uid)) continue;
    const auto* const node = unit.clearing.nodes.NodeOf(uid);
    if (node != nullptr && ask->fixed.emplace(uid, *node).second) has_begun = true;
  }
  GangClearing clearing = planning_.PlanAfterEvictions(engine, *ask, limits);
  if (clearing.empty() && has_begun) {
    StopClearing(unit);
    return PlanToClear(engine, unit, roster, limits, one_by_one, now);
  }
  unit.clearing.nodes = std::move(clearing);
  unit.clearing.found_on = planning_.Ground(false);
  unit.clearing.found_at = now;
  unit.clearing.found_change = roster.change;
}

void GangPlans::KeepWhatIsFree(Engine& engine, GangUnit& unit, const GangRoster& roster) {
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (unit.clearing.kept.contains(uid)) continue;
    const std::string* const node = unit.clearing.nodes.NodeOf(uid);
    if (node == nullptr || planning_.IsKeptFrom(*pod, *node)) continue;
    if (planning_.Keep(engine, *pod, *node)) unit.clearing.kept.insert(uid);
  }
  KeepCleared(unit, roster);
}

// Also where nobody is evicted yet: without that node those on others would be in vain.
void GangPlans::KeepCleared(const GangUnit& unit, const GangRoster& roster) {
  if (parts_.rooms == nullptr) return;
  KeptNodes nodes;
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    const auto node = unit.clearing.nodes.to_clear.find(uid);
    if (unit.clearing.kept.contains(uid)) continue;
    if (node == unit.clearing.nodes.to_clear.end()) continue;
    nodes.try_emplace(node->second, KeptNode{{pod->id, pod->gang.id, pod->priority}});
  }
  parts_.rooms->KeepFor(unit.roll.says.id, std::move(nodes));
}

bool GangPlans::MayFinishClearing(const GangUnit& unit, const GangRoster& roster,
                                  Instant now) const {
  if (unit.roll.Missing(roster.all) > 0) return false;
  const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
  bool ending = false, all_kept = true;
  for (const auto& pod : roster.waiting) {
    const std::string& uid = pod->id.uid;
    if (unit.clearing.kept.contains(uid)) continue;
    const std::string* const node = unit.clearing.nodes.NodeOf(uid);
    if (node == nullptr) continue;
    all_kept = false;
    if (!MayStillCome(*snapshot, *pod, *node)) return false;
    ending = ending || (unit.clearing.nominated.contains(uid) && HasLeaving(*snapshot, *node));
  }
  const Duration since = now - unit.clearing.nominated_at;
  return since < gangs::kBetweenNominations || ((ending || all_kept) && since < gangs::kKeepsFor);
}

void GangPlans::TendClearing(Engine& engine, GangUnit& unit, const GangRoster& roster, Instant now,
                             GangActions& actions) {
  if (unit.clearing.nominated.empty()) return;
  std::vector<std::string> gone;
  std::erase_if(unit.clearing.kept, [&](const std::string& uid) {
    if (roster.uids.contains(uid)) return false;
    gone.push_back(uid);
    return true;
  });
  parts_.state.Unplan(gone);
  KeepWhatIsFree(engine, unit, roster);  // first: the last of those evicted may have gone just now
  if (MayFinishClearing(unit, roster, now)) return;
  StopClearing(unit);  // kube-scheduler asks again about those that are woken
  for (const auto& [uid, id] : unit.wait.asleep) actions.wakes.push_back(id);
}

void GangPlans::StopClearing(GangUnit& unit) {
  const std::vector<std::string> uids(unit.clearing.kept.begin(), unit.clearing.kept.end());
  parts_.state.Unplan(uids);
  if (parts_.rooms != nullptr) parts_.rooms->KeepFor(unit.roll.says.id, {});
  unit.clearing.kept.clear();
  unit.clearing.nominated.clear();
  unit.clearing.told.clear();
  unit.clearing.nodes = {};
  unit.clearing.nominated_at = {};
  unit.clearing.found_change = 0;
}

// GangPlans: a leader that runs before the other pods of its group are made. It goes only where
// there is room for all of them, and that room is kept for them.

void GangPlans::AddFollowers(const GangUnit& unit, const GangRoster& roster, GangToPlan& ask) {
  // Of the gang as it is now: a pod may have been read before its object was there.
  const int followers = unit.roll.says.followers;
  if (unit.roll.began || followers == 0) return;
  const auto leads = [](const auto& pod) { return pod->leads; };
  const auto leader = std::ranges::find_if(roster.waiting, leads);
  if (leader == roster.waiting.end()) return;
  if (followers > gangs::kMostFollowers) return;
  const std::int64_t missing = followers + 1 - roster.all.pods;
  for (std::int64_t i = 1; i <= missing; ++i) {
    PodRequest follower = **leader;
    follower.claims.clear();                     // they are the leader's own
    follower.id.uid += "/" + std::to_string(i);  // no pod has such a UID
    follower.id.name += " (follower " + std::to_string(i) + ")";
    ask.members.push_back(std::make_shared<const PodRequest>(std::move(follower)));
    ++ask.followers;
    ++ask.minimum;
  }
}

void GangPlans::AdoptFollowers(GangUnit& unit, const GangToPlan& ask, const NodesByUid& nodes,
                               Instant now) {
  if (ask.followers == 0) return;
  const auto followers = std::span(ask.members).last(ask.followers);
  const std::int64_t each = followers.front()->shape.gpu_count();
  const auto all = static_cast<std::int64_t>(followers.size());
  std::int64_t left = each == 0 ? all : CountFollowerGpus(unit, all * each) / each;
  unit.followers.places.clear();
  std::vector<std::string> beyond;
  for (const auto& pod : followers) {
    const auto node = nodes.find(pod->id.uid);
    if (node == nodes.end()) continue;
    if (left-- > 0) {
      unit.followers.places.insert_or_assign(node->first, node->second);
    } else {
      beyond.push_back(node->first);
    }
  }
  parts_.state.Unplan(beyond);
  unit.followers.kept_until = now + gangs::kKeepsForFollowers;
}

std::int64_t GangPlans::CountFollowerGpus(GangUnit& unit, std::int64_t gpus) {
  std::int64_t most = gangs::kFollowersGpus;
  if (gpus > 0) {
    std::int64_t there = 0;
    const std::shared_ptr<const Snapshot> snapshot = parts_.state.Current();
    for (NodeIndex i = 0; i < snapshot->size(); ++i) there += std::ssize(snapshot->node(i).gpus());
    most = std::max(most, there / 4);
  }
  const std::string& name = unit.roll.says.id.namespace_name;
  const MutexLock lock(mutex_);
  std::int64_t& own = follower_gpus_[name];
  own -= unit.followers.gpus;
  std::int64_t in_all = 0;
  for (const auto& [other, kept] : follower_gpus_) in_all += kept;
  unit.followers.gpus = std::clamp<std::int64_t>(std::min(most - own, 2 * most - in_all), 0, gpus);
  own += unit.followers.gpus;
  if (own == 0) follower_gpus_.erase(name);
  return unit.followers.gpus;
}

bool GangPlans::TakeKeptPlace(Engine& engine, GangUnit& unit,
                              const std::shared_ptr<const PodRequest>& pod,
                              const OfferedNodes& offered) {
  auto& places = unit.followers.places;
  const auto place = std::ranges::find_if(
      places, [&offered](const auto& kept) { return offered.Find(kept.second) != kNoNode; });
  if (place == places.end()) return false;
  const auto [uid, node] = *place;
  places.erase(place);
  CountFollowerGpus(unit, std::ssize(places) * pod->shape.gpu_count());
  parts_.state.Unplan(std::span(&uid, 1));
  if (!planning_.Keep(engine, *pod, node)) return false;
  unit.plan.Add(pod, node);
  return true;
}

void GangPlans::TendFollowers(GangUnit& unit, Instant now) {
  if (unit.followers.places.empty() || unit.plan.phase != GangPlanned::Phase::kNone) return;
  if (!unit.roll.began || now >= unit.followers.kept_until) DropFollowers(unit);
}

void GangPlans::DropFollowers(GangUnit& unit) {
  if (unit.followers.places.empty()) return;
  std::vector<std::string> uids;
  for (const auto& [uid, node] : unit.followers.places) uids.push_back(uid);
  parts_.state.Unplan(uids);
  unit.followers.places.clear();
  CountFollowerGpus(unit, 0);
}

}  // namespace berth
