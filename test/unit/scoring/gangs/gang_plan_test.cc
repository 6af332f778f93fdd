// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::gang_plan_test {
namespace {

const TopologyLevels kLevels = {{"block", {"block"}}, {"rack", {"rack"}}};

ANode In(const std::string& name, const std::string& block, const std::string& rack) {
  return ANode(name).Gpus(8).Labelled({{"block", block}, {"rack", rack}});
}

// A node whose first GPUs are taken.
ANode Busy(ANode node, int taken) {
  for (int gpu = 0; gpu < taken; ++gpu) {
    node.Holding(APod(node.Spec().name + "-" + std::to_string(gpu)).Whole(1), {gpu});
  }
  return node;
}

class GangPlanTest : public testing::Test {
 protected:
  void On(const std::vector<ANode>& nodes) {
    snapshot_ = SnapshotOf(nodes);
    tree_.emplace(DomainsOf(*snapshot_, kLevels));
  }

  // "m00", "m01", ... by rank.
  static std::vector<GangMember> Members(const APod& like, int count, const std::string& of = "m") {
    std::vector<GangMember> members;
    for (int i = 0; i < count; ++i) {
      GangMember member{like.Request(), i};
      member.pod.gang.id = GangId::Of("default/gang");
      member.pod.id.name = of + std::to_string(i / 10) + std::to_string(i % 10);
      member.pod.id.uid = "uid-" + member.pod.id.name;
      members.push_back(std::move(member));
    }
    return members;
  }

  [[nodiscard]] static GangAsk All(std::vector<GangMember> members) {
    GangAsk ask;
    ask.members = std::move(members);
    ask.minimum = static_cast<std::int64_t>(ask.members.size());
    return ask;
  }

  tl::expected<GangPlan, GangShortage> Plan(const GangAsk& ask) {
    return PlanGang({snapshot_, *tree_, *engine_, room_}, ask);
  }

  // The nodes of the members, by member; "-" where it has no place.
  std::string NodesOf(const GangAsk& ask, const tl::expected<GangPlan, GangShortage>& plan) {
    if (!plan) return "no plan";
    std::string text;
    for (std::size_t i = 0; i < ask.members.size(); ++i) {
      const auto place = std::ranges::find(plan->places, i, &GangPlan::Place::member);
      if (i > 0) text += " ";
      text += place == plan->places.end() ? "-" : place->placement.node;
    }
    return text;
  }

  static std::vector<GangMember> Members(const APod& like, int count, const std::string& of,
                                         const std::string& role) {
    std::vector<GangMember> members = Members(like, count, of);
    for (GangMember& member : members) member.pod.role = role;
    return members;
  }
  static int InRole(const GangAsk& ask, const GangPlan& plan, const std::string& role) {
    return static_cast<int>(std::ranges::count_if(plan.places, [&](const GangPlan::Place& place) {
      return ask.members[place.member].pod.role == role;
    }));
  }

  std::shared_ptr<const Snapshot> snapshot_;
  std::optional<DomainTree> tree_;
  std::shared_ptr<Engine> engine_ =
      std::make_shared<Engine>(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  GangRoom room_;
};

TEST_F(GangPlanTest, TheTightestRackThatHoldsTheGangIsTaken) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), Busy(In("c", "x", "r2"), 4), In("d", "x", "r2"),
      Busy(In("e", "y", "r1"), 6)});
  const GangAsk ask = All(Members(APod("p").Whole(4), 3));
  const auto plan = Plan(ask);
  EXPECT_EQ(NodesOf(ask, plan), "c d d");
}

// The rack of two nodes is tight, the rack of four has RDMA.
TEST_F(GangPlanTest, WishesOfAClassCountBesideTightness) {
  std::vector<ANode> nodes = {In("a", "x", "r1"), In("b", "x", "r1")};
  for (const char* name : {"c", "d", "e", "f"})
    nodes.push_back(In(name, "x", "r2").Traits({"rdma"}));
  On(nodes);
  const auto plan = [this](int weight) {
    APod pod = APod("p").Whole(8);
    if (weight != 0) pod.Wishes({"rdma", weight});
    const GangAsk ask = All(Members(pod, 2));
    return NodesOf(ask, Plan(ask));
  };
  EXPECT_EQ(plan(100), "a b") << "the profile has no scorer for wishes";
  engine_ = std::make_shared<Engine>(
      BuildProfile({"wishes", {{"best-fit", 1}, {"workload-class", 1}}}, {}).value());
  EXPECT_EQ(plan(0), "a b");
  EXPECT_EQ(plan(20), "a b") << "half of a rack of four against a whole one of two";
  EXPECT_EQ(plan(60), "c d");
  EXPECT_EQ(plan(-60), "a b");
  On({In("a", "x", "r1"), In("b", "x", "r2").Traits({"rdma"}),
      In("c", "x", "r3").Traits({"rdma"})});
  EXPECT_EQ(plan(60), "b c") << "within the block the racks that have it";
}

// A rack that has it is not left for a block that has more of it.
TEST_F(GangPlanTest, WishesDoNotSpreadAGang) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "x", "r2").Traits({"rdma"}),
      In("d", "y", "r3").Traits({"rdma"})});
  engine_ = std::make_shared<Engine>(
      BuildProfile({"wishes", {{"best-fit", 1}, {"workload-class", 1}}}, {}).value());
  const GangAsk ask = All(Members(APod("p").Whole(8).Wishes({"rdma", 1000}), 2));
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "a b");
}

TEST_F(GangPlanTest, WithoutARackThatHoldsItABlockDoesAndThenTheCluster) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "y", "r1")});
  GangAsk two = All(Members(APod("p").Whole(8), 2));
  EXPECT_EQ(NodesOf(two, Plan(two)), "a b");
  GangAsk three = All(Members(APod("p").Whole(8), 3));
  EXPECT_EQ(NodesOf(three, Plan(three)), "a b c");
}

TEST_F(GangPlanTest, ARequiredLevelIsNeverLeft) {
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "y", "r1")});
  GangAsk ask = All(Members(APod("p").Whole(8), 2));
  ask.domain.required = 1;
  const auto plan = Plan(ask);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().fits, 1);
  EXPECT_TRUE(plan.error().searched);
  ask.domain.required = 0;
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "a b");
}

TEST_F(GangPlanTest, AllOrNone) {
  On({In("a", "x", "r1"), Busy(In("b", "x", "r1"), 1)});
  EXPECT_FALSE(Plan(All(Members(APod("p").Whole(8), 2))));
}

// Workers that copy their part of the data to local disk: the GPUs of a node do for eight, its disk
// for fewer, and logs and caches of others have taken most of it on some nodes.
TEST_F(GangPlanTest, NoNodeGetsMoreMembersThanItsDiskHolds) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "n" + std::to_string(i);
    nodes.push_back(In(name, "x", "r1").DiskGib(1000));
    nodes.back().Holding(APod("logs" + std::to_string(i)).DiskGib(i % 2 == 0 ? 950 : 500));
  }
  On(nodes);
  const GangAsk ask = All(Members(APod("p").Whole(1).DiskGib(200), 8));
  const auto plan = Plan(ask);
  EXPECT_EQ(NodesOf(ask, plan), "n1 n1 n3 n3 n5 n5 n7 n7");
  for (const GangPlan::Place& place : plan->places) {
    EXPECT_EQ(place.placement.ephemeral_bytes, 200 * kGib);
  }
  const auto more = Plan(All(Members(APod("p").Whole(1).DiskGib(200), 9)));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().fits, 8);
}

// Two kinds of members: what the one leaves of the disk is the other's.
TEST_F(GangPlanTest, MembersThatDifferShareTheDiskOfANode) {
  On({In("a", "x", "r1").DiskGib(300), In("b", "x", "r1").DiskGib(500)});
  std::vector<GangMember> members = Members(APod("p").Whole(1).DiskGib(400), 1);
  const std::vector<GangMember> small = Members(APod("q").Whole(1).DiskGib(100), 4, "s");
  members.insert(members.end(), small.begin(), small.end());
  const GangAsk ask = All(members);
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "b a a a b");
  members.push_back(Members(APod("q").Whole(1).DiskGib(100), 5, "s").back());
  EXPECT_FALSE(Plan(All(members)));
}

// What kube-scheduler counts beside: devices of other plugins, and places for pods.
TEST_F(GangPlanTest, NoNodeGetsMoreMembersThanItHasOtherDevicesAndPlacesFor) {
  On({In("a", "x", "r1").Counts(110, {{"rdma/hca", 1}}), In("b", "x", "r1").Counts(2, {}),
      In("c", "x", "r1").Counts(110, {{"rdma/hca", 2}})});
  const GangAsk ask = All(Members(APod("p").Whole(1).Others({{"rdma/hca", 1}}), 3));
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "a c c");
  EXPECT_FALSE(Plan(All(Members(APod("p").Whole(1).Others({{"rdma/hca", 1}}), 4))));
  std::vector<GangMember> members = Members(APod("p").Whole(1).Others({{"rdma/hca", 2}}), 1);
  const std::vector<GangMember> others =
      Members(APod("q").Whole(1).Others({{"rdma/hca", 1}}), 1, "s");
  members.insert(members.end(), others.begin(), others.end());
  EXPECT_EQ(NodesOf(All(members), Plan(All(members))), "c a");
  members[1].fixed = 2;
  EXPECT_FALSE(Plan(All(members))) << "the one that is held on c leaves too little for the other";
}

TEST_F(GangPlanTest, MembersBeyondTheMinimumArePlacedWhereTheyFit) {
  On({In("a", "x", "r1"), In("b", "x", "r1")});
  GangAsk ask = All(Members(APod("p").Whole(8), 4));
  ask.minimum = 2;
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "a b - -");
  ask.minimum = 3;
  EXPECT_FALSE(Plan(ask));
}

TEST_F(GangPlanTest, NeighboursInRankAreNeighboursInTheTree) {
  // By name the racks alternate.
  On({In("a", "x", "r1"), In("b", "x", "r2"), In("c", "x", "r1"), In("d", "x", "r2")});
  GangAsk ask = All(Members(APod("p").Whole(8), 4));
  std::ranges::reverse(ask.members);
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "d b c a");
}

TEST_F(GangPlanTest, GpusAreTheSameOnEveryNode) {
  // Free on a: 1 to 7, on b: all, on c: 0 to 3 and 6 to 7.
  On({Busy(In("a", "x", "r1"), 1), In("b", "x", "r1"),
      In("c", "x", "r1").Holding(APod("h").Whole(2), {4, 5})});
  GangAsk ask = All(Members(APod("p").Whole(4), 3));
  ask.domain.required = 1;
  for (GangMember& member : ask.members) member.pod.shape.cpu_milli = 40'000;  // one per node
  const auto plan = Plan(ask);
  ASSERT_TRUE(plan);
  std::vector<std::string> gpus;
  for (const GangPlan::Place& place : plan->places) {
    std::string set;
    for (const DeviceGrant& grant : place.placement.grants) set += std::to_string(grant.gpu);
    gpus.push_back(set);
  }
  EXPECT_EQ(gpus, (std::vector<std::string>{"1236", "1236", "1236"}));
}

TEST_F(GangPlanTest, CountsAreSearchedWhereTheBestNodeForEachLeavesOneOver) {
  // The tightest node for the three GPUs is b; then the last two GPUs find no place.
  On({ANode("a").Gpus(5), ANode("b").Gpus(4)});
  GangAsk ask = All(Members(APod("p").Whole(3), 1));
  for (GangMember& two : Members(APod("q").Whole(2), 3, "n")) ask.members.push_back(two);
  ask.minimum = 4;
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "a a b b");
}

TEST_F(GangPlanTest, DomainsThatAreTooSmallAreNotSearched) {
  // Each of the 40 racks holds either kind; only the block holds both.
  std::vector<ANode> nodes;
  for (int i = 0; i < 80; ++i) {
    const std::string digits = std::to_string(100 + i);
    nodes.push_back(In("n" + digits, "x", "r" + std::to_string(i / 2)));
  }
  On(nodes);
  GangAsk ask = All(Members(APod("p").Whole(4), 4));
  for (GangMember& other : Members(APod("q").Whole(3), 2, "n")) ask.members.push_back(other);
  ask.minimum = 6;
  ask.domain.required = 1;
  const auto plan = Plan(ask);
  ASSERT_FALSE(plan);
  EXPECT_TRUE(plan.error().searched);
  EXPECT_EQ(plan.error().fits, 6) << "each kind alone";
}

TEST_F(GangPlanTest, AMemberThatIsHeldStaysAndTheOthersComeToIt) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "y", "r1"), In("d", "y", "r1")});
  GangAsk ask = All(Members(APod("p").Whole(8), 2));
  ask.domain.required = 1;
  ask.members[1].fixed = 3;
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "c d");
  ask.members[0].fixed = 0;
  EXPECT_FALSE(Plan(ask)) << "held in two racks";
}

TEST_F(GangPlanTest, NodesThatWereNotOfferedAreLeftOut) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "x", "r1")});
  GangAsk ask = All(Members(APod("p").Whole(8), 2));
  for (GangMember& member : ask.members) member.excluded = {0};
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "b c");
  ask.members[0].excluded = {0, 1};
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "c b");
}

TEST_F(GangPlanTest, MembersThatArePresentSayTheDomain) {
  On({In("a", "x", "r1"), In("b", "x", "r1"), In("c", "y", "r1"), In("d", "y", "r1")});
  GangAsk ask = All(Members(APod("p").Whole(8), 1));
  ask.present = {{2}, 1};
  ask.domain.preferred = 1;
  EXPECT_EQ(NodesOf(ask, Plan(ask)).substr(0, 1), "c");
  ask.domain.required = 1;
  ask.members = Members(APod("p").Whole(8), 2);
  ask.minimum = 2;
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "c d");
}

TEST_F(GangPlanTest, ACpuOnlyLauncherIsPlannedWithItsWorkers) {
  On({In("a", "x", "r1"), In("b", "x", "r1"),
      ANode("cpu").Labelled({{"block", "x"}, {"rack", "r1"}})});
  GangAsk ask = All(Members(APod("w").Whole(8).Cpu(60), 2));
  for (GangMember& one : Members(APod("l").Cpu(8), 1, "launcher")) ask.members.push_back(one);
  ask.minimum = 3;
  ask.domain.required = 1;
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "a b cpu");
}

TEST_F(GangPlanTest, AMemberThatNoNodeCanTakeIsNotPlanned) {
  On({In("a", "x", "r1"), In("b", "x", "r1")});
  GangAsk ask = All(Members(APod("p").Whole(1), 2));
  ask.members[1].pod.refusal = "annotation: wrong";
  ask.members[1].pod.shape.cpu_milli = 7;
  EXPECT_FALSE(Plan(ask));
}

TEST_F(GangPlanTest, AClusterWithoutNodesOrLevelsHasNoSurprises) {
  On({});
  EXPECT_FALSE(Plan(All(Members(APod("p").Whole(1), 2))));
  snapshot_ = SnapshotOf({ANode("a").Gpus(2)});
  tree_.emplace(DomainsOf(*snapshot_, {}));
  const GangAsk ask = All(Members(APod("p").Whole(1), 2));
  EXPECT_EQ(NodesOf(ask, Plan(ask)), "a a");
}

TEST_F(GangPlanTest, PlanningLeavesTheEnginesOwnTablesAsTheyWere) {
  On({In("a", "x", "r1"), In("b", "x", "r1")});
  const RequestShape shape = APod("p").Whole(8).Shape();
  const auto before = engine_->Best(snapshot_, shape);
  ASSERT_TRUE(Plan(All(Members(APod("p").Whole(8), 2))));
  EXPECT_EQ(engine_->Best(snapshot_, shape), before);
}

// Workers are larger and come first: they would take all the room.
TEST_F(GangPlanTest, APlanHasTheMinimumOfEachRole) {
  On({In("a", "x", "r1"), In("b", "x", "r1")});
  GangAsk ask = All(Members(APod("w").Whole(2), 8, "w", "worker"));
  for (GangMember& master : Members(APod("p").Whole(1), 2, "p", "master")) {
    ask.members.push_back(std::move(master));
  }
  ask.minimum = 5;
  auto plan = Plan(ask);
  ASSERT_TRUE(plan);
  EXPECT_EQ(InRole(ask, *plan, "master"), 0);
  ask.roles = {{"master", 1}, {"worker", 4}};
  plan = Plan(ask);
  ASSERT_TRUE(plan);
  EXPECT_GE(InRole(ask, *plan, "master"), 1);
  EXPECT_EQ(InRole(ask, *plan, "worker"), 7) << "as many as there is room for";
  ask.roles = {{"worker", 8}, {"master", 1}};
  EXPECT_FALSE(Plan(ask)) << "there is no room for both";
  ask.roles = {{"master", 3}};
  EXPECT_FALSE(Plan(ask)) << "there are no three";
}

TEST_F(GangPlanTest, MembersThatAreHeldCountForTheirRole) {
  On({In("a", "x", "r1")});
  GangAsk ask = All(Members(APod("w").Whole(2), 4, "w", "worker"));
  ask.members.push_back(Members(APod("p").Whole(2), 1, "p", "master").front());
  ask.minimum = 3;
  ask.roles = {{"master", 1}, {"worker", 2}};
  ask.members.front().fixed = 0;
  const auto plan = Plan(ask);
  ASSERT_TRUE(plan);
  EXPECT_EQ(InRole(ask, *plan, "master"), 1);
  EXPECT_EQ(InRole(ask, *plan, "worker"), 3);
}

// More combinations than are searched.
TEST_F(GangPlanTest, TheMinimumsOfLargeRolesAreMetWithoutASearch) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 30; ++i) nodes.push_back(In("n" + std::to_string(i), "x", "r1"));
  On(nodes);
  GangAsk ask;
  for (const int gpus : {1, 2, 4}) {
    const std::string role = "of" + std::to_string(gpus);
    for (GangMember& member : Members(APod("p").Whole(gpus), 120, role, role)) {
      ask.members.push_back(std::move(member));
    }
    ask.roles.push_back({role, 10});
  }
  ask.minimum = 30;
  const auto plan = Plan(ask);
  ASSERT_TRUE(plan);
  for (const GangRole& role : ask.roles) EXPECT_GE(InRole(ask, *plan, role.name), 10);
}

// Four GPUs on each of two NUMA nodes; a container gets those of one.
ANode Halved(const std::string& name) {
  return ANode(name)
      .Gpus(8)
      .Linked(LinksOf(BridgedCards()))
      .Kubelet(TopologyPolicy::kSingleNumaNode);
}

TEST_F(GangPlanTest, MembersGetGpusThatTheKubeletGivesTogether) {
  On({Halved("n1"), Halved("n2")});
  const GangAsk ask = All(Members(APod("m").Whole(3), 4));
  const auto plan = Plan(ask);
  ASSERT_TRUE(plan);
  for (const GangPlan::Place& place : plan->places) {
    const GpuMask gpus = GpusAmong(place.placement.grants, 8);
    EXPECT_TRUE((gpus & 0x0f) == 0 || (gpus & 0xf0) == 0) << gpus;
  }
  EXPECT_FALSE(Plan(All(Members(APod("m").Whole(3), 5)))) << "one GPU is left of each NUMA node";
  EXPECT_FALSE(Plan(All(Members(APod("m").Whole(6), 2)))) << "the kubelets would refuse them";
  On({Halved("n1").Kubelet(TopologyPolicy::kNone), Halved("n2").Kubelet(TopologyPolicy::kNone)});
  EXPECT_TRUE(Plan(All(Members(APod("m").Whole(6), 2)))) << "the agent has handed back";
}

}  // namespace
}  // namespace berth::test::gang_plan_test
