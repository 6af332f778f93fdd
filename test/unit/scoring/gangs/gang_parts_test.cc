// SPDX-License-Identifier: Apache-2.0
//
// Gangs of several parts, each in one domain.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "scoring/gangs/gang_plan.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::gang_parts_test {
namespace {

const TopologyLevels kLevels = {{"block", {"block"}}, {"rack", {"rack"}}};
constexpr std::size_t kBlock = 0, kRack = 1;

ANode In(const std::string& name, const std::string& block, const std::string& rack, int gpus = 8) {
  return ANode(name).Gpus(gpus).Labelled({{"block", block}, {"rack", rack}});
}

class GangPartsTest : public testing::Test {
 protected:
  void On(const std::vector<ANode>& nodes) {
    snapshot_ = SnapshotOf(nodes);
    tree_.emplace(DomainsOf(*snapshot_, kLevels));
  }
  // So many of the role, and how many of them at least.
  void Add(const std::string& role, int count, int gpus, int minimum) {
    for (int i = 0; i < count; ++i) {
      GangMember member{APod(role + std::to_string(i)).Whole(gpus).Request(), i};
      member.pod.gang.id = GangId::Of("default/gang");
      member.pod.role = role;
      ask_.members.push_back(std::move(member));
    }
    ask_.minimum += minimum;
    if (minimum > 0) ask_.roles.push_back({role, minimum});
  }
  tl::expected<GangPlan, GangShortage> Plan() {
    return PlanGang({snapshot_, *tree_, *engine_, room_}, ask_);
  }
  // The nodes of the members, by member; "-" where it has no place.
  std::string Nodes() {
    const auto plan = Plan();
    if (!plan) return "no plan";
    std::string text;
    for (std::size_t i = 0; i < ask_.members.size(); ++i) {
      const auto place = std::ranges::find(plan->places, i, &GangPlan::Place::member);
      text += (i == 0 ? "" : " ") + (place == plan->places.end() ? "-" : place->placement.node);
    }
    return text;
  }
  // What is wrong with the plan; "" = nothing.
  std::string Fault(const GangPlan& plan) const {
    if (std::cmp_less(plan.places.size(), ask_.minimum)) return "below the minimum";
    Transaction transaction(snapshot_);
    std::map<std::string, int> of_roles;
    for (const GangPlan::Place& place : plan.places) {
      const PodRequest& pod = ask_.members[place.member].pod;
      ++of_roles[pod.role];
      if (!transaction.Put(pod, place.placement)) return "two have one GPU";
    }
    for (const GangRole& role : ask_.roles) {
      if (of_roles[role.name] < role.minimum) return "below the minimum of " + role.name;
    }
    std::vector<GangPart> parts = ask_.parts;
    if (ask_.domain.required) parts.push_back({{}, *ask_.domain.required});
    for (const GangPart& part : parts) {
      if (IsIn(part, plan) > 1) return "a part is in two domains";
    }
    return "";
  }
  // In so many domains.
  std::size_t IsIn(const GangPart& part, const GangPlan& plan) const {
    std::set<TopologyDomain> domains;
    for (const GangPlan::Place& place : plan.places) {
      if (!part.Has(ask_.members[place.member].pod.role)) continue;
      domains.insert(tree_->DomainOf(place.node, part.level));
    }
    return domains.size();
  }

  std::shared_ptr<const Snapshot> snapshot_;
  std::optional<DomainTree> tree_;
  std::shared_ptr<Engine> engine_ =
      std::make_shared<Engine>(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  GangRoom room_;
  GangAsk ask_;
};

TEST_F(GangPartsTest, EachPartIsInADomainOfItsOwn) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "x", "r2"), In("d", "x", "r2")});
  Add("prefill", 1, 8, 1);
  Add("decode", 2, 8, 2);
  Add("router", 1, 1, 1);
  ask_.parts = {{{"decode"}, kRack}, {{"prefill"}, kRack}};
  const auto plan = Plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(Fault(*plan), "");
  EXPECT_EQ(plan->places.size(), 4U);
}

// Flat, the gang would be spread over the racks of a block.
TEST_F(GangPartsTest, WhereAPartHasNoDomainNoneHasAPlace) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "x", "r3")});
  Add("decode", 2, 8, 2);
  Add("router", 1, 1, 1);
  EXPECT_NE(Nodes(), "no plan");
  ask_.parts = {{{"decode"}, kRack}};
  const auto plan = Plan();
  ASSERT_FALSE(plan);
  EXPECT_TRUE(plan.error().searched);
  EXPECT_EQ(plan.error().part, std::size_t{0});
}

// Each part fits any rack, and no two of them one: planned one after the other all would take the
// same.
TEST_F(GangPartsTest, EachOfManyPartsTakesADomainThatTheOthersLeave) {
  constexpr int kParts = 12, kNodes = 4;
  std::vector<ANode> nodes;
  for (int i = 0; i < kParts * kNodes; ++i) {
    nodes.push_back(In("n" + std::to_string(100 + i), "x", "r" + std::to_string(i / kNodes)));
  }
  On(nodes);
  for (int i = 0; i < kParts; ++i) {
    const std::string role = "c" + std::to_string(10 + i);
    Add(role, kNodes - 1, 8, kNodes - 1);
    ask_.parts.push_back({{role}, kRack});
  }
  const auto plan = Plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(Fault(*plan), "");
}

// The tightest block holds all, and none of its racks the part.
TEST_F(GangPartsTest, TheWholeGoesWhereItsPartsHaveDomains) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "y", "r3"), In("d", "y", "r3"),
      In("e", "y", "r4")});
  Add("decode", 2, 8, 2);
  ask_.domain.required = kBlock;
  EXPECT_EQ(Nodes(), "c d") << "the narrowest level comes first";
  Add("router", 0, 1, 0);
  ask_.parts = {{{"decode"}, kRack}};
  EXPECT_EQ(Nodes(), "c d");
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "y", "r3"), In("d", "y", "r3"),
      In("e", "y", "r4")});
  Add("prefill", 1, 1, 1);
  EXPECT_EQ(Nodes(), "c d e");
}

// The part that asks for most takes the rack that holds it; the tightest one would do for less.
TEST_F(GangPartsTest, APartGivesWayToAnother) {
  On({In("a", "x", "r1", 4), In("b", "x", "r2", 4), In("c", "x", "r2", 2)});
  Add("p", 1, 4, 1);
  Add("q", 2, 2, 2);
  ask_.parts = {{{"p"}, kRack}, {{"q"}, kRack}};
  const auto plan = Plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(Fault(*plan), "");
}

TEST_F(GangPartsTest, PartsAreInsideOfParts) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "y", "r3"), In("d", "y", "r4"),
      In("e", "y", "r4")});
  Add("leader", 1, 8, 1);
  Add("worker", 2, 8, 2);
  Add("other", 1, 8, 1);
  ask_.parts = {{{"leader", "worker"}, kBlock}, {{"worker"}, kRack}};
  const auto plan = Plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(Fault(*plan), "");
  EXPECT_EQ(Nodes().substr(0, 5), "c d e");
}

TEST_F(GangPartsTest, WhatIsBeyondTheMinimumDoesNotTakeTheRoomOfOthers) {
  On({In("a", "x", "r1"), In("b", "x", "r1")});
  Add("p", 4, 8, 1);
  Add("q", 1, 8, 1);
  ask_.parts = {{{"p"}, kRack}, {{"q"}, kRack}};
  const auto plan = Plan();
  ASSERT_TRUE(plan);
  EXPECT_EQ(Fault(*plan), "");
  EXPECT_EQ(plan->places.size(), 2U);
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "x", "r1")});
  EXPECT_EQ(Plan()->places.size(), 3U) << "one more has room";
}

TEST_F(GangPartsTest, ThoseThatComeLaterJoinTheirPart) {
  APod runs = APod("runs").Whole(1).Gang("default/gang").Role("p", {});
  APod other = APod("q0").Whole(8).Gang("default/gang").Role("q", {});
  On({In("a", "x", "r1"), In("b", "x", "r2", 2).Holding(runs, {0}),
      In("c", "x", "r3").Holding(other, {0, 1, 2, 3, 4, 5, 6, 7}), In("d", "x", "r3", 1)});
  Add("p", 1, 1, 1);
  ask_.present = {.nodes = {1, 2}, .placed = 2};
  ask_.parts = {{{"p"}, kRack}};
  EXPECT_EQ(Nodes(), "b");
  ask_.members.front().pod.shape = APod("p").Whole(2).Request().shape;
  EXPECT_EQ(Nodes(), "no plan") << "its rack is full";
}

TEST_F(GangPartsTest, AMemberThatIsHeldBindsItsPart) {
  On({In("a", "x", "r1", 2), In("b", "x", "r2", 2), In("c", "x", "r2", 2)});
  Add("p", 2, 2, 2);
  ask_.parts = {{{"p"}, kRack}};
  EXPECT_EQ(Nodes(), "b c");
  ask_.members[0].fixed = 2;
  EXPECT_EQ(Nodes(), "c b");
  ask_.members[0].fixed = 0;
  EXPECT_EQ(Nodes(), "no plan");
}

// They were answered before their nodes had other labels, or their group a level. Nobody has to
// wait for them, and no search goes on for them.
TEST_F(GangPartsTest, MembersThatAreAnsweredInTwoDomainsStayThere) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "x", "r3")});
  Add("prefill", 3, 8, 0);
  Add("router", 1, 8, 1);
  ask_.parts = {{{"prefill"}, kRack}};
  ask_.members[0].fixed = 0;
  ask_.members[1].fixed = 1;
  EXPECT_EQ(Nodes(), "a b - c");
}

// Of two parts with a role in common both are kept, as if they were one.
TEST_F(GangPartsTest, TooManyDomainsAreNotTried) {
  for (const int racks : {5, 64}) {
    std::vector<ANode> nodes;
    for (int i = 0; i < 2 * racks; ++i) {
      nodes.push_back(In("n" + std::to_string(i), "x", "r" + std::to_string(i / 2)));
    }
    On(nodes);
    ask_ = {};
    for (const char* role : {"a", "b", "c"}) Add(role, 1, 8, 1);
    ask_.parts = {{{"a", "b"}, kRack}, {{"b", "c"}, kRack}};
    const auto plan = Plan();
    ASSERT_FALSE(plan) << "no rack has three nodes";
    EXPECT_EQ(plan.error().searched, racks == 5);
    nodes.push_back(In("more", "x", "r0"));
    On(nodes);
    EXPECT_TRUE(Plan());
  }
}

class PreferredParts : public GangPartsTest {
 protected:
  // Where the gang is, once its pods are on the nodes of the plan.
  std::vector<std::string> Told() {
    PodRequest member;
    member.gang.id = GangId::Of("default/gang");
    member.gang.parts = ask_.parts;
    member.domain = domain_;
    Transaction placed(snapshot_);
    const auto plan = Plan();
    if (!plan) return {"no plan"};
    for (const GangPlan::Place& place : plan->places) {
      (void)placed.Put(ask_.members[place.member].pod, place.placement);
    }
    return WishTexts(*placed.now(), *tree_, kLevels, member);
  }
  DomainAsk domain_;
};

// As near together as can be takes one block, in which no rack has room for the two.
TEST_F(PreferredParts, AreInOneDomainWhereOneHasRoom) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "x", "r3"), In("d", "y", "r4"),
      In("e", "y", "r4")});
  Add("decode", 2, 8, 2);
  Add("router", 1, 8, 1);
  EXPECT_EQ(Nodes(), "a b c");
  ask_.parts = {{{"decode"}, kRack, true}};
  EXPECT_EQ(Nodes(), "d e a");
  EXPECT_EQ(Told(), std::vector<std::string>{"group decode: in rack r4, as preferred"});
}

TEST_F(PreferredParts, StartAllTheSameWhereNoneHas) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "x", "r3")});
  Add("decode", 2, 8, 2);
  Add("router", 1, 8, 1);
  ask_.parts = {{{"decode"}, kRack, true}};
  EXPECT_EQ(Nodes(), "a b c");
  EXPECT_EQ(Told(), std::vector<std::string>{
                        "group decode: spread over rack r1, rack r2; one rack is preferred, and "
                        "rack r1, the one with the most, has room for 1 of its 2 pods"});
}

TEST_F(PreferredParts, AreToldWhyAlsoWhereTheWholeGangPrefersADomain) {
  On({In("a", "x", "r1"), In("b", "x", "r2")});
  Add("decode", 2, 8, 2);
  domain_.preferred = kRack;
  EXPECT_EQ(Told(), std::vector<std::string>{
                        "all pods: spread over rack r1, rack r2; one rack is preferred, and rack "
                        "r1, the one with the most, has room for 1 of its 2 pods"});
}

// A pod more that starts is worth more than a rack.
TEST_F(PreferredParts, LeaveNoPodWithoutAPlace) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "x", "r2")});
  Add("decode", 3, 8, 2);
  ask_.parts = {{{"decode"}, kRack, true}};
  EXPECT_EQ(Nodes(), "a b c");
}

TEST_F(PreferredParts, TakeNothingFromWhatIsRequired) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "x", "r2"), In("d", "x", "r3")});
  Add("p", 2, 8, 2);
  Add("q", 2, 8, 2);
  ask_.parts = {{{"q"}, kRack}, {{"p"}, kRack, true}};
  EXPECT_EQ(Nodes(), "c d a b");
  std::swap(ask_.parts[0].preferred, ask_.parts[1].preferred);
  std::swap(ask_.parts[0], ask_.parts[1]);
  EXPECT_EQ(Nodes(), "a b c d");
}

// The first takes the rack that the second needs, which only the two together show.
TEST_F(PreferredParts, AreMetTogetherWhereTheyCanBe) {
  On({In("a", "x", "r1", 4), In("b", "x", "r2", 4), In("c", "x", "r2", 2)});
  Add("p", 1, 4, 1);
  Add("q", 2, 2, 2);
  ask_.parts = {{{"p"}, kRack, true}, {{"q"}, kRack, true}, {{"p", "q"}, kRack, true}};
  const std::vector<std::string> told = Told();
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0], "group p: in rack r1, as preferred");
  EXPECT_EQ(told[1], "group q: in rack r2, as preferred");
  EXPECT_EQ(told[2], "groups p, q: spread over rack r1, rack r2; one rack is preferred");
}

TEST_F(PreferredParts, OfAllPodsComeFirst) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "y", "r3"), In("d", "y", "r3"),
      In("e", "z", "r5"), In("f", "z", "r6"), In("g", "z", "r7")});
  Add("decode", 2, 8, 2);
  Add("router", 1, 8, 1);
  ask_.domain.preferred = kBlock;
  ask_.parts = {{{}, kBlock, true}, {{"decode"}, kRack, true}};
  EXPECT_EQ(Nodes(), "e f g");
  EXPECT_EQ(Told()[0], "all pods: in block z, as preferred");
}

// Whole nodes alone, so that any choice of racks can be tried out.
class DrawnParts : public GangPartsTest {
 protected:
  struct Rack {
    int block, nodes;
  };
  // Whether the parts, of so many nodes each, and the rest find nodes.
  static bool Exists(std::vector<Rack> racks, const std::vector<int>& parts, std::size_t next,
                     int rest, const std::function<bool(int)>& may_use) {
    if (next == parts.size()) {
      int free = 0;
      for (const Rack& rack : racks) free += may_use(rack.block) ? rack.nodes : 0;
      return free >= rest;
    }
    for (std::size_t i = 0; i < racks.size(); ++i) {
      if (!may_use(racks[i].block) || racks[i].nodes < parts[next]) continue;
      racks[i].nodes -= parts[next];
      if (Exists(racks, parts, next + 1, rest, may_use)) return true;
      racks[i].nodes += parts[next];
    }
    return false;
  }
};

TEST_F(DrawnParts, AreFoundWhereThereAreAny) {
  std::mt19937 random(7);
  const auto draw = [&random](unsigned most) { return static_cast<int>(random() % (most + 1)); };
  int planned = 0, none = 0;
  for (int i = 0; i < 600; ++i) {
    std::vector<Rack> racks;
    std::vector<ANode> nodes;
    for (int rack = 0; rack < 5; ++rack) {
      racks.push_back({rack / 3, draw(3)});
      for (int node = 0; node < racks.back().nodes; ++node) {
        nodes.push_back(
            In("n" + std::to_string(nodes.size()), std::to_string(rack / 3), std::to_string(rack)));
      }
    }
    if (nodes.empty()) continue;
    On(nodes);
    ask_ = {};
    std::vector<int> parts;
    for (int part = 0; part < 3; ++part) {
      parts.push_back(1 + draw(2));
      const std::string role = "p" + std::to_string(part);
      Add(role, parts.back(), 8, parts.back());
      ask_.parts.push_back({{role}, kRack});
    }
    const int rest = draw(1);
    if (rest > 0) Add("rest", rest, 8, rest);
    if (draw(1) == 1) ask_.domain.required = kBlock;
    bool exists = false;
    if (ask_.domain.required) {
      for (const int in : {0, 1}) {
        exists = exists || Exists(racks, parts, 0, rest, [in](int block) { return block == in; });
      }
    } else {
      exists = Exists(racks, parts, 0, rest, [](int) { return true; });
    }
    const auto plan = Plan();
    ASSERT_EQ(plan.has_value(), exists) << i;
    ASSERT_EQ(plan ? Fault(*plan) : "", "") << i;
    ++(plan ? planned : none);
    // Preferred, all of them are met where they could be required, and nothing else changes.
    for (GangPart& part : ask_.parts) part.preferred = true;
    const auto wished = Plan();
    const auto is_met = [&](const GangPart& part) { return IsIn(part, *wished) == 1; };
    ASSERT_TRUE(wished || !exists) << i;
    ASSERT_TRUE(!exists || std::ranges::all_of(ask_.parts, is_met)) << i;
    ask_.parts.clear();
    const auto flat = Plan();
    ASSERT_EQ(wished.has_value(), flat.has_value()) << i;
    ASSERT_TRUE(!flat || wished->places.size() == flat->places.size()) << i;
  }
  EXPECT_GT(planned, 50);
  EXPECT_GT(none, 50);
}

}  // namespace
}  // namespace berth::test::gang_parts_test
