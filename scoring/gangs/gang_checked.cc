// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_checked.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace berth {

void Exclude(GangMember& member, NodeIndex node) {
  const auto at = std::ranges::lower_bound(member.excluded, node);
  if (at == member.excluded.end() || *at != node) member.excluded.insert(at, node);
}

tl::expected<GangPlan, GangShortage> PlanChecked(const GangAsk& ask, const GangPlanner& plan,
                                                 PlacesCheck& check) {
  constexpr int kMostTries = 32, kMostThatStay = 8;
  tl::expected<GangPlan, GangShortage> found = plan(ask);
  GangAsk first_stay, without;  // a large gang is copied only where a place is refused
  bool do_stay = true;
  for (int tries = 0; found; ++tries) {
    check.Begin();
    std::vector<const GangPlan::Place*> taken, refused;
    for (const GangPlan::Place& place : found->places) {
      const bool is_taken = check.Take(place);
      if (ask.members[place.member].fixed != kNoNode) continue;  // it is there, or has to be
      (is_taken ? taken : refused).push_back(&place);
    }
    if (refused.empty()) return found;
    if (tries == kMostTries) return tl::unexpected(GangShortage{.searched = false});
    if (tries == 0) first_stay = without = ask;
    for (const auto* place : taken) first_stay.members[place->member].fixed = place->node;
    for (const auto* place : refused) {
      Exclude(first_stay.members[place->member], place->node);
      for (std::size_t i = 0; i < ask.members.size(); ++i) {
        if (ask.members[i].fixed != place->node) Exclude(without.members[i], place->node);
      }
    }
    do_stay = do_stay && tries < kMostThatStay;
    if (do_stay) found = plan(first_stay);
    if (!do_stay || !found) {
      do_stay = false;
      found = plan(without);
    }
  }
  return found;
}

}  // namespace berth
