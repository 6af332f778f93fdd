// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "scoring/admission.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/other_limits.h"
#include "scoring/gangs/gang_class.h"
#include "scoring/gangs/gang_fill.h"
#include "scoring/gangs/gang_ranks.h"

namespace berth {
namespace {

class Planner {
 public:
  Planner(const Planning& with, const GangAsk& ask)
      : with_(with),
        ask_(ask),
        tree_(with.tree),
        by_rank_(ByRank(ask.members)),
        transaction_(with.snapshot) {}

  tl::expected<GangPlan, GangShortage> Plan() {
    if (!PutFixed()) return tl::unexpected(GangShortage{});
    classes_ = ClassesOf(transaction_.now(), with_.room, ask_, by_rank_);
    needs_ = NeedsOf(ask_, classes_);
    minimum_ = std::max<std::int64_t>(ask_.minimum - fixed(), 0);
    fill_.emplace(with_.engine, with_.snapshot, tree_, classes_, ask_.devices, transaction_);
    MarkAround();
    const std::int64_t all = static_cast<std::int64_t>(ask_.members.size()) - fixed();
    for (const std::int64_t goal : {all, minimum_}) {
      for (const TopologyDomain domain : DomainsToTry(goal)) {
        if (Place(domain, goal)) return Finish(domain);
      }
      if (minimum_ == all) break;
    }
    return tl::unexpected(Shortage());
  }

 private:
  [[nodiscard]] std::int64_t fixed() const { return static_cast<std::int64_t>(fixed_.size()); }

  // Members that are held somewhere, where they are.
  bool PutFixed() {
    for (const std::size_t i : by_rank_) {
      const GangMember& member = ask_.members[i];
      if (member.fixed == kNoNode) continue;
      const Node& node = with_.snapshot->node(member.fixed);
      if (Admits(node.spec(), member.pod) != Reason::kFits) return false;
      PlanTable table = with_.engine.TableFor(with_.snapshot, member.pod.shape);
      table.Follow(transaction_.now());
      if (!table.Fits(member.fixed) ||
          !LackOf(transaction_.now()->node(member.fixed), member.pod).empty()) {
        return false;
      }
      Placement placement = table.PlaceOn(member.fixed);
      if (!transaction_.Put(member.pod, placement)) return false;
      fixed_.push_back({i, member.fixed, std::move(placement)});
    }
    return FixedAgree();
  }

  // On one domain of the required level.
  [[nodiscard]] bool FixedAgree() const {
    if (!ask_.domain.required || fixed_.empty()) return true;
    const auto domain_of = [this](const GangPlan::Place& place) {
      return tree_.DomainOf(place.node, *ask_.domain.required);
    };
    const TopologyDomain first = domain_of(fixed_.front());
    return tree_.named(first) && std::ranges::all_of(fixed_, [&](const GangPlan::Place& place) {
             return domain_of(place) == first;
           });
  }

  // The domains of members that have a node already.
  void MarkAround() {
    around_.assign(tree_.size(), 0);
    const auto mark = [this](NodeIndex node) {
      for (TopologyDomain at = tree_.NodeVertex(node); around_[at] == 0; at = tree_.parent(at)) {
        around_[at] = 1;
      }
    };
    for (const GangPlan::Place& place : fixed_) mark(place.node);
    if (fixed_.empty() || !ask_.domain.required) {
      for (const NodeIndex node : ask_.present.nodes) mark(node);
    }
    if (!ask_.domain.required) return;
    const auto [first, last] = tree_.Level(*ask_.domain.required);
    for (TopologyDomain domain = first; domain < last; ++domain) {
      is_bound_ = is_bound_ || (around_[domain] != 0 && tree_.named(domain));
    }
  }

  // Whether a domain at or below the required level is where the gang has to be.
  [[nodiscard]] bool IsAllowed(TopologyDomain domain) const {
    if (!ask_.domain.required) return true;
    const auto [first, last] = tree_.Level(*ask_.domain.required);
    while (domain >= last) domain = tree_.parent(domain);
    return tree_.named(domain) && (!is_bound_ || around_[domain] != 0);
  }

  // From the narrowest level to the widest that will do; of a level the tightest first.
  [[nodiscard]] std::vector<TopologyDomain> DomainsToTry(std::int64_t goal) const {
    std::vector<TopologyDomain> domains;
    const DomainAsk& ask = ask_.domain;
    if (tree_.levels() > 0 && (!ask.unconstrained || ask.required)) {
      const std::size_t widest = ask.required.value_or(0);
      std::size_t level = std::max(ask.preferred.value_or(tree_.levels() - 1), widest) + 1;
      while (level-- > widest) {
        const std::vector<TopologyDomain> of_level = DomainsOfLevel(level, goal);
        domains.insert(domains.end(), of_level.begin(), of_level.end());
      }
    }
    if (!ask.required && MayHold(DomainTree::kCluster, goal)) {
      domains.push_back(DomainTree::kCluster);
    }
    return domains;
  }

  // False only where it cannot.
  [[nodiscard]] bool MayHold(TopologyDomain domain, std::int64_t goal) const {
    if (fill_->Fits(domain) < goal || !fill_->MayMeet(domain, needs_)) return false;
    const bool is_all = goal == static_cast<std::int64_t>(ask_.members.size()) - fixed();
    return !is_all || fill_->MayHoldAll(domain);
  }

  [[nodiscard]] std::vector<TopologyDomain> DomainsOfLevel(std::size_t level,
                                                           std::int64_t goal) const {
    std::vector<TopologyDomain> domains;
    const auto [first, last] = tree_.Level(level);
    for (TopologyDomain domain = first; domain < last; ++domain) {
      if (tree_.named(domain) && IsAllowed(domain) && MayHold(domain, goal)) {
        domains.push_back(domain);
      }
    }
    std::ranges::stable_sort(domains, {}, [this](TopologyDomain domain) {
      const double load = fill_->Load(domain);
      const bool too_much = load > 1;
      return std::tuple(around_[domain] == 0, -fill_->Fits(domain), too_much,
                        too_much ? load : -load - fill_->Worth(domain));
    });
    return domains;
  }

  // Whether so many members are in the domain now. If not, none is.
  bool Place(TopologyDomain domain, std::int64_t goal) {
    const Transaction::Mark before = transaction_.Here();
    places_ = fill_->Fill(domain, ask_.domain.unconstrained);
    if (Meets(goal)) return true;
    transaction_.Return(before);
    if (!needs_.empty()) {
      places_ = fill_->Fill(domain, ask_.domain.unconstrained, needs_);
      if (Meets(goal)) return true;
      transaction_.Return(before);
    }
    const auto pods = SearchCounts(*transaction_.now(), classes_, ask_.devices,
                                   fill_->NodesIn(domain), {goal, needs_}, steps_);
    return pods && PutCounted(*pods, before);
  }

  [[nodiscard]] bool Meets(std::int64_t goal) const {
    std::vector<std::int64_t> counts(classes_.size(), 0);
    for (const ClassPlace& place : places_) ++counts[place.of_class];
    return static_cast<std::int64_t>(places_.size()) >= goal && MeetsRoles(needs_, counts);
  }

  bool PutCounted(const std::vector<CountedPod>& pods, const Transaction::Mark& before) {
    places_.clear();
    std::vector<std::size_t> next(classes_.size(), 0);
    for (const CountedPod& counted : pods) {
      const GangClass& alike = classes_[counted.of_class];
      const PodRequest& pod = ask_.members[alike.members[next[counted.of_class]++]].pod;
      Placement placement =
          PlacementFor(transaction_.now()->node(counted.node), pod.shape, counted.choice);
      if (!transaction_.Put(pod, placement)) {
        transaction_.Return(before);
        return false;
      }
      places_.push_back({counted.of_class, counted.node, std::move(placement)});
    }
    return true;
  }

  GangPlan Finish(TopologyDomain domain) {
    GangPlan plan;
    plan.domain = domain;
    plan.places = DealByRank(tree_, classes_, std::move(places_));
    plan.places.insert(plan.places.end(), fixed_.begin(), fixed_.end());
    AlignOnRails(*with_.snapshot, ask_, plan.places);
    std::ranges::sort(plan.places, {}, &GangPlan::Place::member);
    return plan;
  }

  [[nodiscard]] GangShortage Shortage() const {
    GangShortage shortage;
    shortage.searched = !steps_.ran_out;
    TopologyDomain first = DomainTree::kCluster, last = first + 1;
    if (ask_.domain.required) {
      first = tree_.Level(*ask_.domain.required).first;
      last = tree_.Level(*ask_.domain.required).last;
    }
    for (TopologyDomain domain = first; domain < last; ++domain) {
      const std::int64_t fits = fixed() + fill_->Fits(domain);
      if (!IsAllowed(domain) || fits <= shortage.fits) continue;
      shortage.domain = domain;
      shortage.fits = fits;
    }
    return shortage;
  }

  const Planning& with_;
  const GangAsk& ask_;
  const DomainTree& tree_;
  const std::vector<std::size_t> by_rank_;
  Transaction transaction_;
  std::vector<GangPlan::Place> fixed_;
  std::vector<GangClass> classes_;
  std::vector<RoleNeed> needs_;
  std::optional<GangFill> fill_;
  std::int64_t minimum_ = 0;  // of those that are not fixed
  std::vector<char> around_;  // [vertex] a member is in it
  bool is_bound_ = false;     // by such members, at the required level
  std::vector<ClassPlace> places_;
  SearchSteps steps_;
};

}  // namespace

tl::expected<GangPlan, GangShortage> PlanGang(const Planning& with, const GangAsk& ask) {
  BERTH_CHECK(ask.minimum >= 1 && ask.minimum <= static_cast<std::int64_t>(ask.members.size()));
  return ask.parts.empty() ? Planner(with, ask).Plan() : PlanInParts(with, ask);
}

}  // namespace berth
