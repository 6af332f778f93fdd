// SPDX-License-Identifier: Apache-2.0
//
// PlanAfterEvictions: where the members of a gang would go if pods of lower priority went.
//
// Nodes are emptied one after the other until there is a plan: first those whose dearest pod has
// the lowest priority, of equal ones those with the fewest pods; pods that are ending already cost
// nothing. So a gang that fits once everything of lower priority is gone has a plan, and a gang
// that does not fit even then has none: nobody has to be evicted to find that out.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/reservations/reservations.h"
#include "scoring/victims.h"

namespace berth {

// Requires: 1 <= minimum <= members. The placements are on nodes that are emptied: which pods have
// to go for a member on its node is for AddedVictims to say.
tl::expected<GangPlan, GangShortage> PlanAfterEvictions(const Planning& with, const GangAsk& ask,
                                                        const EvictionLimits& limits);

// Whom kube-scheduler evicts for members of a gang, and what Berth says to it.
struct Clearing {
  const Reservations& kept;
  const EvictionLimits& limits;
  // nullptr: it takes all pods of lower priority away, and asks about all members then. Else it
  // names victims for one after the other, and nobody where it has room for one by its own count:
  // it counts there those for which it has named some (by UID), and none that keep a place.
  const std::set<std::string, std::less<>>* nominated = nullptr;
};
struct ClearedPlan {
  GangPlan plan;
  std::set<std::size_t> fit_now;  // members of the ask for which nobody has to go
};
// PlanAfterEvictions where all that is needed comes true: kube-scheduler names victims on the nodes
// for each member that needs them, Berth agrees, and what is kept for others is left to them.
std::optional<ClearedPlan> PlanToClear(const Planning& with, GangAsk ask, const Clearing& clearing);

}  // namespace berth
