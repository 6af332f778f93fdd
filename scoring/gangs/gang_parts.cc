// SPDX-License-Identifier: Apache-2.0
//
// PlanInParts: a gang is planned as if it had no parts. Where that tears one apart, it is kept to
// one domain, that of most of its members first, and the gang is planned anew:
//
//   part of two, racks of two nodes    a b | a .    then    a a | b .
//
// So a plan is missed only where too many domains are tried in vain.
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "scoring/gangs/gang_plan.h"

namespace berth {
namespace {

// So many domains are tried in vain, in all.
constexpr int kMostDomainTries = 32;

class PartsPlanner {
 public:
  PartsPlanner(const Planning& with, const GangAsk& ask, const std::vector<GangPart>& parts)
      : with_(with), all_(ask), parts_(parts) {}

  // Requires: the ask has no parts.
  tl::expected<GangPlan, GangShortage> Plan(const GangAsk& ask) {
    auto plan = PlanGang(with_, ask);
    if (!plan) return plan;
    for (const GangPart& part : parts_) {
      const Members members = MembersIn(part, ask, *plan);
      if (!IsWhole(part, ask, members)) return PlanWithin(part, ask, members);
    }
    return plan;
  }

 private:
  using Members = std::map<TopologyDomain, int>;  // so many of a part are in the domain

  // With the part, which is torn, in one domain.
  tl::expected<GangPlan, GangShortage> PlanWithin(const GangPart& part, const GangAsk& ask,
                                                  const Members& torn) {
    GangAsk alone = PartOf(ask, part);
    const bool is_needed = !alone.roles.empty();
    const auto most = std::ranges::max_element(torn, {}, [](const auto& in) { return in.second; });
    const auto is_fixed = [](const GangMember& member) { return member.fixed != kNoNode; };
    // Others of it say where it is.
    const bool is_bound =
        !alone.present.nodes.empty() || std::ranges::any_of(alone.members, is_fixed);
    std::optional<TopologyDomain> in;
    if (!is_bound && with_.tree.named(most->first)) in = most->first;
    GangShortage shortage;
    while (true) {
      if (!in) {
        const auto plan = PlanGang(with_, alone);
        if (!plan) {
          if (plan.error().fits > shortage.fits) shortage = plan.error();
          if (!PlanGang(with_, PartOf(all_, part))) {  // wherever the others are
            shortage.part = static_cast<std::size_t>(&part - parts_.data());
          }
          break;
        }
        in = DomainOf(plan->places.front().node, part);
      }
      const auto is_inside = [&](NodeIndex node) { return DomainOf(node, part) == *in; };
      GangAsk inside = ask;
      Keep(inside, part, is_inside);
      auto plan = Plan(inside);
      if (plan) return plan;
      shortage = plan.error();
      if (++tries_ > kMostDomainTries) {
        shortage.searched = false;
        return tl::unexpected(shortage);
      }
      Keep(alone, part, [&](NodeIndex node) { return !is_inside(node); });
      in.reset();
    }
    if (is_needed) return tl::unexpected(shortage);
    GangAsk others = ask;  // those of the part come later
    Keep(others, part, [](NodeIndex) { return false; });
    return Plan(others);
  }

  [[nodiscard]] TopologyDomain DomainOf(NodeIndex node, const GangPart& part) const {
    return with_.tree.DomainOf(node, part.level);
  }

  // Where members of the part are that are not planned.
  [[nodiscard]] GroupMembers PresentIn(const GangPart& part, const GangAsk& ask) const {
    std::vector<std::string> names;
    for (const NodeIndex node : ask.present.nodes) {
      names.emplace_back(with_.snapshot->names().name(node));
    }
    return MembersOn(*with_.snapshot, ask.members.front().pod, names, &part);
  }

  [[nodiscard]] Members MembersIn(const GangPart& part, const GangAsk& ask,
                                  const GangPlan& plan) const {
    Members members;
    for (const GangPlan::Place& place : plan.places) {
      if (part.Has(ask.members[place.member].pod.role)) ++members[DomainOf(place.node, part)];
    }
    return members;
  }

  // Whether they are in one domain, and others of it in the same if there are any.
  [[nodiscard]] bool IsWhole(const GangPart& part, const GangAsk& ask,
                             const Members& members) const {
    if (members.empty()) return true;
    const TopologyDomain first = members.begin()->first;
    if (members.size() > 1 || !with_.tree.named(first)) return false;
    const GroupMembers present = PresentIn(part, ask);
    const auto is_there = [&](NodeIndex node) { return DomainOf(node, part) == first; };
    return present.nodes.empty() || std::ranges::any_of(present.nodes, is_there);
  }

  // What the part alone asks for. Without roles none of its members has to start.
  [[nodiscard]] GangAsk PartOf(const GangAsk& ask, const GangPart& part) const {
    GangAsk of = ask;
    std::erase_if(of.members, [&](const GangMember& m) { return !part.Has(m.pod.role); });
    std::erase_if(of.roles, [&](const GangRole& role) { return !part.Has(role.name); });
    of.domain.required = part.level;
    of.present = PresentIn(part, ask);
    of.minimum = 0;
    for (const GangRole& role : of.roles) of.minimum += role.minimum;
    of.minimum = std::clamp<std::int64_t>(of.minimum, 1, std::ssize(of.members));
    return of;
  }

  // Its members go to these nodes alone.
  template <class MayUse>
  void Keep(GangAsk& ask, const GangPart& part, MayUse may_use) const {
    std::vector<NodeIndex> outside;
    for (NodeIndex node = 0; node < with_.snapshot->size(); ++node) {
      if (!may_use(node)) outside.push_back(node);
    }
    for (GangMember& member : ask.members) {
      if (!part.Has(member.pod.role)) continue;
      std::vector<NodeIndex> both;
      std::ranges::set_union(member.excluded, outside, std::back_inserter(both));
      member.excluded = std::move(both);
    }
  }

  const Planning& with_;
  const GangAsk& all_;
  const std::vector<GangPart>& parts_;
  int tries_ = 0;
};

}  // namespace

void AskForDomains(const PodRequest& pod, GangAsk& ask) {
  ask.domain = pod.domain;
  ask.parts = pod.gang.parts;
  if (ask.parts.empty()) return;
  ask.domain.required.reset();
  std::erase_if(ask.parts, [&ask](const GangPart& part) {
    if (part.roles.empty()) ask.domain.required = part.level;
    return part.roles.empty();
  });
}

tl::expected<GangPlan, GangShortage> PlanInParts(const Planning& with, const GangAsk& ask) {
  GangAsk whole = ask;
  whole.parts.clear();
  return PartsPlanner(with, whole, ask.parts).Plan(whole);
}

}  // namespace berth
