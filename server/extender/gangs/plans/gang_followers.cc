// SPDX-License-Identifier: Apache-2.0
//
// GangPlans: a leader that runs before the other pods of its group are made. It goes only where
// there is room for all of them, and that room is kept for them.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/extender/gangs/plans/gang_plans.h"
#include "server/extender/gangs/roster/gang_limits.h"

namespace berth {

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
