// SPDX-License-Identifier: Apache-2.0
//
// PlanInParts: a gang is planned as if it had no parts. Where that tears one apart, it is kept to
// one domain that has room beside the parts that are kept already, that of most of its members
// first, and the gang is planned anew:
//
//   part of two, racks of two nodes    a b | a .    then    a a | b .
//
// So a plan is missed only where too many domains are tried in vain. Then parts are treated alike
// that prefer a domain: those that find none are left as they are, and no member goes without a
// place for it.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cluster/values/alike.h"
#include "scoring/admission.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/groups/group_domains.h"

namespace berth {
namespace {

// So many domains are tried in vain, in all.
constexpr int kMostDomainTries = 32;

class PartsPlanner {
 public:
  using Parts = std::set<const GangPart*>;
  // insists: where parts that prefer a domain have none there is no plan, unless they are left out.
  PartsPlanner(const Planning& with, const GangAsk& ask, bool insists, Parts left_out = {})
      : with_(with), all_(ask), insists_(insists), given_up_(std::move(left_out)) {}

  // Requires: the ask has no parts. It is afterwards as it was before.
  tl::expected<GangPlan, GangShortage> Plan(GangAsk& ask) {
    auto plan = PlanGang(with_, ask);
    if (!plan) return plan;
    for (const GangPart& part : all_.parts) {
      const Members members = MembersIn(part, ask, *plan);
      if (given_up_.contains(&part) || later_.contains(&part)) continue;
      if (IsWhole(part, ask, members)) continue;
      auto within = PlanWithin(part, ask, members, *plan);
      // What was met is not given up for what comes after it.
      const auto comes_after = [&part](const GangPart* kept) { return kept > &part; };
      const bool insists = insists_ || std::ranges::any_of(kept_, comes_after);
      if (within || !part.preferred || insists) return within;
      given_up_.insert(&part);
    }
    return plan;
  }
  // Parts that prefer a domain and have none, and those of them that had none by themselves.
  [[nodiscard]] const Parts& given_up() const { return given_up_; }
  [[nodiscard]] const Parts& hopeless() const { return hopeless_; }

 private:
  using Members = std::map<TopologyDomain, int>;  // so many of a part are in the domain
  using Nodes = std::shared_ptr<const std::vector<NodeIndex>>;
  using Before = std::vector<std::pair<std::size_t, Nodes>>;  // GangMember::outside, by member

  // With the part, which the plan tears, in one domain.
  tl::expected<GangPlan, GangShortage> PlanWithin(const GangPart& part, GangAsk& ask,
                                                  const Members& torn, const GangPlan& flat) {
    GangAsk alone = PartOf(ask, part);
    const bool is_needed = part.preferred || !alone.roles.empty();
    if (part.preferred) alone.minimum = 0;
    for (const auto& [domain, members] : torn) alone.minimum += part.preferred ? members : 0;
    const auto most = std::ranges::max_element(torn, {}, [](const auto& in) { return in.second; });
    const auto is_fixed = [](const GangMember& member) { return member.fixed != kNoNode; };
    // Others of it say where it is.
    bool tries_most = alone.present.nodes.empty() &&
                      std::ranges::none_of(alone.members, is_fixed) &&
                      with_.tree.named(most->first);
    const Planning beside{WithKept(ask, flat, part), with_.tree, with_.engine, with_.room};
    GangShortage shortage;
    while (true) {
      std::optional<TopologyDomain> in;
      const auto is_inside = [&](NodeIndex node) { return DomainOf(node, part) == *in; };
      if (std::exchange(tries_most, false)) {
        in = most->first;
        const Before before = Keep(alone, part, is_inside);
        const bool has_room = PlanGang(beside, alone).has_value();
        Restore(before, alone);
        if (!has_room) in.reset();
      }
      for (const Planning* on : {&beside, &with_}) {  // then wherever others that are kept may move
        if (in) break;
        const auto plan = PlanGang(*on, alone);
        if (plan) in = DomainOf(plan->places.front().node, part);
        if (!plan && plan.error().fits > shortage.fits) shortage = plan.error();
      }
      if (!in && part.preferred && kept_.empty() && tries_ == 0) hopeless_.insert(&part);
      if (!in && part.preferred) break;
      if (!in) {
        const GangAsk only = PartOf(all_, part);
        if (const auto plan = PlanGang(with_, only); !plan) {  // wherever the others are
          shortage = plan.error();
          shortage.part = static_cast<std::size_t>(&part - all_.parts.data());
          shortage.part_needs = only.minimum;
        }
        break;
      }
      const Before before = Keep(ask, part, is_inside);
      kept_.push_back(&part);
      auto plan = Plan(ask);
      kept_.pop_back();
      Restore(before, ask);
      const bool is_less = plan && part.preferred && plan->places.size() < flat.places.size();
      if (plan && !is_less) return plan;
      if (!plan) shortage = plan.error();
      if (++tries_ > kMostDomainTries) {
        shortage.searched = false;
        return tl::unexpected(shortage);
      }
      Keep(alone, part, [&](NodeIndex node) { return !is_inside(node); });
    }
    if (is_needed) return tl::unexpected(shortage);
    // Those of the part come later. Members that are answered keep their nodes, wherever these are.
    const Before before = Keep(ask, part, [](NodeIndex) { return false; });
    later_.insert(&part);
    auto plan = Plan(ask);
    later_.erase(&part);
    Restore(before, ask);
    return plan;
  }

  [[nodiscard]] TopologyDomain DomainOf(NodeIndex node, const GangPart& part) const {
    return with_.tree.DomainOf(node, part.level);
  }

  // With the places of others that are kept to a domain already: parts that are planned one after
  // the other would all take the first.
  [[nodiscard]] std::shared_ptr<const Snapshot> WithKept(const GangAsk& ask, const GangPlan& plan,
                                                         const GangPart& apart_from) const {
    Transaction transaction(with_.snapshot);
    for (const GangPlan::Place& place : plan.places) {
      const PodRequest& pod = ask.members[place.member].pod;
      const auto has = [&pod](const GangPart* part) { return part->Has(pod.role); };
      if (apart_from.Has(pod.role) || std::ranges::none_of(kept_, has)) continue;
      (void)transaction.Put(pod, place.placement);  // the plan has room for all
    }
    return transaction.now();
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
    GangAsk of{.members = {},
               .present = PresentIn(part, ask),
               .domain = ask.domain,
               .devices = ask.devices};
    std::ranges::copy_if(ask.members, std::back_inserter(of.members),
                         [&](const GangMember& member) { return part.Has(member.pod.role); });
    std::ranges::copy_if(ask.roles, std::back_inserter(of.roles),
                         [&](const GangRole& role) { return part.Has(role.name); });
    of.domain.required = part.level;
    of.minimum = 0;
    for (const GangRole& role : of.roles) of.minimum += role.minimum;
    of.minimum = std::clamp<std::int64_t>(of.minimum, 1, std::ssize(of.members));
    return of;
  }

  // Its members go to these nodes alone, from now on. Gangs are large: none is copied for it.
  template <class MayUse>
  Before Keep(GangAsk& ask, const GangPart& part, MayUse may_use) const {
    std::vector<NodeIndex> outside;
    for (NodeIndex node = 0; node < with_.snapshot->size(); ++node) {
      if (!may_use(node)) outside.push_back(node);
    }
    Before before;
    std::map<Nodes, Nodes> made;  // of what was outside before
    for (std::size_t i = 0; i < ask.members.size(); ++i) {
      GangMember& member = ask.members[i];
      if (!part.Has(member.pod.role)) continue;
      Nodes& all = made[member.outside];
      if (all == nullptr) {
        std::vector<NodeIndex> both;
        const std::vector<NodeIndex> none;
        std::ranges::set_union(member.outside == nullptr ? none : *member.outside, outside,
                               std::back_inserter(both));
        all = std::make_shared<const std::vector<NodeIndex>>(std::move(both));
      }
      before.emplace_back(i, std::exchange(member.outside, all));
    }
    return before;
  }
  static void Restore(const Before& before, GangAsk& ask) {
    for (const auto& [member, outside] : before) ask.members[member].outside = outside;
  }

  const Planning& with_;
  const GangAsk& all_;
  const bool insists_;
  Parts given_up_, hopeless_, later_;
  std::vector<const GangPart*> kept_;  // to a domain, of the ask that is planned now
  int tries_ = 0;
};

// Why those pods, all of one kind, are not in one domain of that level: "rack r1, the one with the
// most, has room for 1 of its 2 pods"; "" = several kinds, or there is room by now.
std::string WhySpread(const Snapshot& snapshot, const DomainTree& tree,
                      const TopologyLevels& levels, std::size_t level,
                      const std::vector<std::shared_ptr<const PodRecord>>& pods) {
  const PodRequest& first = pods.front()->pod;
  const auto is_other = [&first](const auto& pod) { return !SamePodKind(pod->pod, first); };
  if (std::ranges::any_of(pods, is_other)) return "";
  std::set<std::string_view> own;
  for (const auto& pod : pods) own.insert(pod->pod.id.uid);
  const auto is_own = [&own](const PodRecord& held) { return own.contains(held.pod.id.uid); };
  std::map<TopologyDomain, std::int64_t> room;
  for (NodeIndex node = 0; node < snapshot.size(); ++node) {
    const TopologyDomain domain = tree.DomainOf(node, level);
    if (!tree.named(domain) || Admits(snapshot.node(node).spec(), first) != Reason::kFits) continue;
    room[domain] += PodsThatFit(snapshot.node(node).Without(is_own), first);
  }
  if (room.empty()) return ", and no node that takes them has a label of that level";
  const auto most = std::ranges::max_element(room, {}, [](const auto& of) { return of.second; });
  if (most->second >= std::ssize(pods)) return "";
  return ", and " + DomainName(snapshot, levels, tree, most->first) +
         ", the one with the most, has room for " + std::to_string(most->second) + " of its " +
         CountText(std::ssize(pods), "pod");
}

}  // namespace

std::string GroupsText(const GangPart& part) {
  if (part.roles.empty()) return "all pods";
  return (part.roles.size() == 1 ? "group " : "groups ") + Listed(part.roles);
}

void AskForDomains(const PodRequest& pod, GangAsk& ask) {
  ask.domain = pod.domain;
  ask.parts = pod.gang.parts;
  if (RequiresParts(pod.gang)) ask.domain.required.reset();
  std::erase_if(ask.parts, [&ask](const GangPart& part) {
    const bool is_all = part.roles.empty() && !part.preferred;
    if (is_all) ask.domain.required = part.level;
    return is_all;
  });
}

std::vector<std::string> WishTexts(const Snapshot& snapshot, const DomainTree& tree,
                                   const TopologyLevels& levels, const PodRequest& member) {
  std::vector<std::string> texts;
  std::vector<GangPart> parts = member.gang.parts;
  if (parts.empty() && member.domain.preferred) parts = {{{}, *member.domain.preferred, true}};
  for (const GangPart& part : parts) {
    if (!part.preferred) continue;
    std::set<TopologyDomain> domains;
    std::vector<std::shared_ptr<const PodRecord>> pods;
    snapshot.ForEachPod([&](const auto& pod, NodeIndex node) {
      if (pod->pod.gang.id != member.gang.id || !part.Has(pod->pod.role)) return;
      domains.insert(tree.DomainOf(node, part.level));
      pods.push_back(pod);
    });
    if (domains.empty()) continue;
    const std::string& level = levels[part.level].name;
    std::vector<std::string> names;
    for (const TopologyDomain domain : domains) {
      names.push_back(tree.named(domain) ? DomainName(snapshot, levels, tree, domain)
                                         : "nodes without " + level);
    }
    const bool is_met = domains.size() == 1 && tree.named(*domains.begin());
    texts.push_back(GroupsText(part) + (is_met ? ": in " : ": spread over ") + Listed(names) +
                    (is_met ? ", as preferred"
                            : "; one " + level + " is preferred" +
                                  WhySpread(snapshot, tree, levels, part.level, pods)));
  }
  return texts;
}

std::string PartText(const Planning& with, const TopologyLevels& levels, const GangAsk& ask,
                     const GangShortage& shortage) {
  const GangPart& part = ask.parts[*shortage.part];
  const std::string& level = levels[part.level].name;
  const std::string in = DomainName(*with.snapshot, levels, with.tree, shortage.domain);
  const std::string pods = CountText(shortage.part_needs, "pod");
  const bool is_known = !in.empty() && shortage.fits < shortage.part_needs;
  return GroupsText(part) + ": " +
         (is_known ? "room for " + std::to_string(shortage.fits) + " of its " + pods + " in " + in +
                         ", the " + level + " with the most"
                   : "no " + level + " has room for its " + pods);
}

tl::expected<GangPlan, GangShortage> PlanInParts(const Planning& with, const GangAsk& ask) {
  GangAsk whole = ask;
  whole.parts.clear();
  PartsPlanner first(with, ask, false);
  auto plan = first.Plan(whole);
  if (!plan || first.given_up() == first.hopeless()) return plan;
  // One may have taken the domain that another needs.
  auto all = PartsPlanner(with, ask, true, first.hopeless()).Plan(whole);
  return all && all->places.size() >= plan->places.size() ? all : plan;
}

}  // namespace berth
