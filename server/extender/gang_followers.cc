// SPDX-License-Identifier: Apache-2.0
//
// GangTable: a leader that runs before the other pods of its group are made. It goes only where
// there is room for all of them, and that room is kept for them.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/extender/gang_limits.h"
#include "server/extender/gang_table.h"

namespace berth {

void GangTable::AddFollowers(const Unit& unit, const Roster& roster, GangToPlan& ask) {
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

void GangTable::AdoptFollowers(Unit& unit, const GangToPlan& ask, const NodesByUid& nodes,
                               Instant now) {
  for (const auto& pod : std::span(ask.members).last(ask.followers)) {
    const auto node = nodes.find(pod->id.uid);
    if (node != nodes.end()) unit.followers.places.insert_or_assign(node->first, node->second);
  }
  if (ask.followers > 0) unit.followers.kept_until = now + gangs::kKeepsForFollowers;
}

bool GangTable::TakeKeptPlace(Engine& engine, Unit& unit,
                              const std::shared_ptr<const PodRequest>& pod,
                              const Offered& offered) {
  auto& places = unit.followers.places;
  const auto place = std::ranges::find_if(
      places, [&offered](const auto& kept) { return offered.Find(kept.second) != kNoNode; });
  if (place == places.end()) return false;
  const auto [uid, node] = *place;
  places.erase(place);
  parts_.state.Unplan(std::span(&uid, 1));
  if (!planning_.Keep(engine, *pod, node)) return false;
  unit.plan.Add(pod, node);
  return true;
}

void GangTable::TendFollowers(Unit& unit, Instant now) {
  if (unit.followers.places.empty() || unit.plan.phase != GangPlanned::Phase::kNone) return;
  if (!unit.roll.began || now >= unit.followers.kept_until) DropFollowers(unit);
}

void GangTable::DropFollowers(Unit& unit) {
  std::vector<std::string> uids;
  for (const auto& [uid, node] : unit.followers.places) uids.push_back(uid);
  parts_.state.Unplan(uids);
  unit.followers.places.clear();
}

}  // namespace berth
