// SPDX-License-Identifier: Apache-2.0
//
// PlanAfterEvictions: where the members of a gang would go if pods of lower priority went.
//
// Nodes are emptied one after the other until there is a plan: first those whose dearest pod has
// the lowest priority, of equal ones those with the fewest pods; pods that are ending already cost
// nothing. So a gang that fits once everything of lower priority is gone has a plan, and a gang
// that does not fit even then has none: nobody has to be evicted to find that out.
#pragma once

#include "base/result.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/victims.h"

namespace berth {

// Requires: 1 <= minimum <= members. The placements are on nodes that are emptied: which pods have
// to go for a member on its node is for AddedVictims to say.
tl::expected<GangPlan, GangShortage> PlanAfterEvictions(const Planning& with, const GangAsk& ask,
                                                        const EvictionLimits& limits);

}  // namespace berth
