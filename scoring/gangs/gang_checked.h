// SPDX-License-Identifier: Apache-2.0
//
// PlanChecked: plans of a gang whose places are looked at once more, together, by what PlanGang
// does not count: what is kept for others that wait, whom kube-scheduler would evict.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "scoring/earmarks/earmarks.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/reservations/reservations.h"
#include "scoring/victims.h"

namespace berth {

// Looks at the places of one plan after the other.
class PlacesCheck {
 public:
  virtual ~PlacesCheck() = default;
  // Those of another plan follow.
  virtual void Begin() = 0;
  // Whether the place stands beside those of its plan that were taken before; if so, it is taken.
  virtual bool Take(const GangPlan::Place& place) = 0;
};

using GangPlanner = std::function<tl::expected<GangPlan, GangShortage>(const GangAsk& ask)>;

// A plan by `plan` all of whose places the check takes, or that are fixed. Where it takes not all,
// those that it took stay, the others are kept off their nodes, and the plan is made anew; where
// that is none, all members are kept off these nodes. So many times: then the search ends.
tl::expected<GangPlan, GangShortage> PlanChecked(const GangAsk& ask, const GangPlanner& plan,
                                                 PlacesCheck& check);

// Leaves what is kept for others. What it is given outlives it.
class BesideKept : public PlacesCheck {
 public:
  BesideKept(const GangAsk& ask, const Earmarks& kept, const Snapshot& snapshot)
      : ask_(ask), kept_(kept), snapshot_(snapshot) {}
  void Begin() override { beside_.emplace(kept_, snapshot_); }
  bool Take(const GangPlan::Place& place) override {
    return beside_->Put(PodOf(place), place.node);
  }

 protected:
  [[nodiscard]] const PodRequest& PodOf(const GangPlan::Place& place) const {
    return ask_.members[place.member].pod;
  }
  [[nodiscard]] const Snapshot& snapshot() const { return snapshot_; }

 private:
  const GangAsk& ask_;
  const Earmarks& kept_;
  const Snapshot& snapshot_;
  std::optional<BesideEarmarks> beside_;
};

// The member may not go there.
void Exclude(GangMember& member, NodeIndex node);

// PlanAfterEvictions: where the members of a gang would go if pods of lower priority went.
//
// Nodes are emptied one after the other until there is a plan: first those whose dearest pod has
// the lowest priority, of equal ones those with the fewest pods; pods that are ending already cost
// nothing. So a gang that fits once everything of lower priority is gone has a plan, and a gang
// that does not fit even then has none: nobody has to be evicted to find that out.

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
  std::set<std::size_t> fit_now;       // members of the ask for which nobody has to go
  std::set<GangId> ending = {};        // gangs on several nodes: EvictionLimits::ending
  std::set<std::string> victims = {};  // "namespace/name"
};
// PlanAfterEvictions where all that is needed comes true: kube-scheduler names victims on the nodes
// for each member that needs them, Berth agrees, and what is kept for others is left to them. A
// gang on several nodes goes only where nothing else will do, if all of its nodes with GPUs are
// cleared: nobody else asks for the eviction of what is left of it. gangs_may_break: where even
// that will not do, single members of it go.
std::optional<ClearedPlan> PlanToClear(const Planning& with, GangAsk ask, const Clearing& clearing);

}  // namespace berth
