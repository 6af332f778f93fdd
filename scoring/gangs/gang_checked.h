// SPDX-License-Identifier: Apache-2.0
//
// PlanChecked: plans of a gang whose places are looked at once more, together, by what PlanGang
// does not count: what is kept for others that wait, whom kube-scheduler would evict.
#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "scoring/earmarks/earmarks.h"
#include "scoring/gangs/gang_plan.h"

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

}  // namespace berth
