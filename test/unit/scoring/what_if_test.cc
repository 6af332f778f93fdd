// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/what_if.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/earmarks/earmarks.h"
#include "scoring/registry.h"
#include "scoring/reservations/reservations.h"
#include "test/support/builders.h"

namespace berth::test::what_if_test {
namespace {

class WhatIfTest : public testing::Test {
 protected:
  void On(const std::vector<ANode>& nodes) { snapshot_ = SnapshotOf(nodes); }

  Result<WhatIfAnswer> Ask(const std::vector<APod>& pods, NodeEdits nodes = {}) {
    std::vector<PodRequest> requests;
    for (const APod& pod : pods) requests.push_back(pod.Request());
    return WhatIf(
        engine_,
        {.snapshot = snapshot_,
         .pods = requests,
         .nodes = std::move(nodes),
         .levels = {{"rack", {"rack"}}},
         .starts_whole = [](const PodRequest& pod) { return pod.gang.id.convention == "whole"; },
         .limits = {{}, [](const GangId&) { return std::size_t{4}; }},
         .reservations = kept_.empty() ? nullptr : &kept_});
  }
  // So many GPUs of the first node are kept for a pod that waits.
  void Keep(int gpus) {
    const PodRequest owner = APod("owner").Whole(gpus).Priority(5).Request();
    Earmarks::OnNode on{.node = 0, .owners = {{.pod = owner.id, .priority = 5, .gpus = gpus}}};
    on.as_if = WithPod(snapshot_->node(0), owner);
    kept_ = Reservations(std::make_shared<const Earmarks>(snapshot_, std::vector{on}));
  }
  WhatIfAnswer Tell(const std::vector<APod>& pods, NodeEdits nodes = {}) {
    auto told = Ask(pods, std::move(nodes));
    EXPECT_TRUE(told) << told.error().message;
    return told ? *std::move(told) : WhatIfAnswer();
  }
  std::string ErrorOf(NodeEdits nodes) {
    const auto told = Ask({}, std::move(nodes));
    EXPECT_FALSE(told);
    return told ? "" : told.error().message;
  }
  // The node of each pod; "-" where it has none.
  static std::string NodesOf(const WhatIfAnswer& told) {
    std::string text;
    for (const WhatIfPod& pod : told.pods) {
      text += (text.empty() ? "" : " ") + (pod.placement ? pod.placement->node : "-");
    }
    return text;
  }
  static std::string WhyOf(const WhatIfAnswer& told, std::size_t pod) {
    return told.whys[told.pods[pod].why].text;
  }
  static std::vector<APod> Gang(int pods, int gpus, int minimum) {
    std::vector<APod> gang;
    for (int i = 0; i < pods; ++i) {
      gang.push_back(APod("g" + std::to_string(i)).Whole(gpus).Gang("whole:default/g"));
      if (minimum > 0) gang.back().GangMinimum(minimum);
    }
    return gang;
  }

  Engine engine_{BuildProfile(*FindBuiltinProfile("best-fit"), {}).value()};
  std::shared_ptr<const Snapshot> snapshot_;
  Reservations kept_;
};

TEST_F(WhatIfTest, APodThatFitsHasANodeAndDevices) {
  On({ANode("n1").Gpus(2).Holding(APod("a").Whole(1), {0}), ANode("n2")});
  const WhatIfAnswer told = Tell({APod("p").Whole(1)});
  ASSERT_EQ(NodesOf(told), "n1");
  ASSERT_EQ(told.pods[0].placement->grants.size(), 1u);
  EXPECT_EQ(told.pods[0].placement->grants[0].gpu, 1);
  EXPECT_EQ(told.fitting, 1);
  EXPECT_EQ(told.before[0].idle, 1);
  EXPECT_EQ(told.after[0].idle, 0);
}

TEST_F(WhatIfTest, PodsArePlacedInTheirOrderEachBesideThoseBeforeIt) {
  On({ANode("n1").Gpus(4)});
  EXPECT_EQ(NodesOf(Tell({APod("a").Whole(3), APod("b").Whole(2), APod("c").Whole(1)})), "n1 - n1");
  EXPECT_EQ(NodesOf(Tell({APod("b").Whole(2), APod("c").Whole(1), APod("a").Whole(3)})), "n1 n1 -");
}

TEST_F(WhatIfTest, PodsOfAPlanShareTheDiskOfANode) {
  On({ANode("n1").Gpus(4).DiskGib(500)});
  const std::vector<APod> pods = {APod("a").Whole(1).DiskGib(300), APod("b").Whole(1).DiskGib(300),
                                  APod("c").Whole(1).DiskGib(200)};
  const WhatIfAnswer told = Tell(pods);
  EXPECT_EQ(NodesOf(told), "n1 - n1");
  EXPECT_NE(WhyOf(told, 1).find("fits with 200 GiB of ephemeral storage instead of 300 GiB"),
            std::string::npos)
      << WhyOf(told, 1);
  EXPECT_EQ(NodesOf(Tell(pods, {{{"n1", 1}}, {}})), "n1 n1-new-1 n1");
}

TEST_F(WhatIfTest, TheSnapshotStaysAsItWas) {
  const std::vector<ANode> nodes = {ANode("n1").Gpus(4).Holding(APod("a").Whole(1), {2}),
                                    ANode("n2").Gpus(2)};
  On(nodes);
  const auto before = snapshot_;
  (void)Tell({APod("p").Whole(2), APod("q").Whole(8)}, {{{"n1", 2}}, {"n2"}});
  EXPECT_EQ(*before, *SnapshotOf(nodes));
  EXPECT_TRUE(before->IsSame(*snapshot_));
}

TEST_F(WhatIfTest, ExplainsEachKindOfPodThatDoesNotFitOnce) {
  On({ANode("n1").Gpus(4).Holding(APod("a").Whole(1), {0})});
  const WhatIfAnswer told =
      Tell({APod("p").Whole(4), APod("q").Whole(4), APod("r").Whole(3), APod("s").Whole(4)});
  EXPECT_EQ(NodesOf(told), "- - n1 -");
  ASSERT_EQ(told.whys.size(), 1u);
  EXPECT_EQ(told.whys[0].pods, 3);
  EXPECT_EQ(told.whys[0].text,
            "does not fit the only node; nearest is n1: 3 of 4 GPUs idle, needs 4; fits when "
            "default/a ends, or with 3 GPUs instead of 4");
}

TEST_F(WhatIfTest, PodsThatNeedADomainAreOneKindToo) {
  On({ANode("n1").Gpus(1)});
  std::vector<APod> pods;
  for (int i = 0; i < static_cast<int>(kMostWhys) + 5; ++i) {
    pods.push_back(APod("p" + std::to_string(i)).Whole(4).Requires(0));
  }
  const WhatIfAnswer told = Tell(pods);
  ASSERT_EQ(told.whys.size(), 1u);
  EXPECT_EQ(told.whys[0].pods, std::ssize(pods));
}

TEST_F(WhatIfTest, PodsOfThePlanAreNotNamedAsPodsThatEnd) {
  On({ANode("n1").Gpus(2)});
  const WhatIfAnswer told = Tell({APod("p").Whole(2), APod("q").Whole(1)});
  EXPECT_EQ(NodesOf(told), "n1 -");
  EXPECT_EQ(WhyOf(told, 1).find("ends"), std::string::npos) << WhyOf(told, 1);
}

TEST_F(WhatIfTest, APodThatNoNodeCanTakeSaysWhy) {
  On({ANode("n1").Gpus(2)});
  std::vector<PodRequest> pods = {APod("p").Whole(1).Request(), APod("q").Whole(2).Request()};
  for (PodRequest& pod : pods) pod.refusal = "berth.dev/link: want required, got \"yes\"";
  const auto told = WhatIf(engine_, {.snapshot = snapshot_, .pods = pods});
  ASSERT_TRUE(told);
  EXPECT_EQ(WhyOf(*told, 0), "the pod must be changed: " + pods[0].refusal);
  EXPECT_EQ(told->whys.size(), 1u) << "said once of all";
}

TEST_F(WhatIfTest, AnAnswerThatNobodyNeedsAnyMoreIsGivenUp) {
  On({ANode("n1").Gpus(2)});
  const std::vector<PodRequest> pods(3, APod("p").Whole(1).Request());
  int asked = 0;
  const auto told = WhatIf(engine_, {.snapshot = snapshot_, .pods = pods, .stops = [&asked] {
                                       return ++asked == 2 ? "the server is stopping" : nullptr;
                                     }});
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, Errc::kUnavailable);
  EXPECT_EQ(told.error().message, "the server is stopping");
  EXPECT_EQ(asked, 2);
}

TEST_F(WhatIfTest, BeyondSomeKindsOfPodsTheyAreCountedAlone) {
  On({ANode("n1").Gpus(1)});
  std::vector<APod> pods;
  for (int i = 0; i < static_cast<int>(kMostWhys) + 5; ++i) {
    pods.push_back(APod("p" + std::to_string(i)).Whole(2).CpuMilli(i));
  }
  const WhatIfAnswer told = Tell(pods);
  ASSERT_EQ(told.whys.size(), kMostWhys + 1);
  EXPECT_FALSE(told.whys.back().told);
  EXPECT_EQ(told.whys.back().pods, 5);
}

TEST_F(WhatIfTest, TheHighestPriorityComesFirst) {
  On({ANode("n1").Gpus(1)});
  EXPECT_EQ(NodesOf(Tell({APod("low").Whole(1), APod("high").Whole(1).Priority(7)})), "- n1");
}

// --- what kube-scheduler counts beside

// A node for so many pods, with so many devices of another plugin.
ANode NodeFor(const std::string& name, int pods, std::int64_t devices) {
  ANode node = ANode(name).Gpus(4);
  node.Counts(pods, devices == 0 ? OtherResources() : OtherResources{{"rdma/hca", devices}});
  return node;
}

TEST_F(WhatIfTest, ANodeTakesAsManyPodsAsItSays) {
  On({NodeFor("n1", 2, 0).Holding(APod("a").Cpu(1)), NodeFor("n2", 1, 0)});
  const WhatIfAnswer told =
      Tell({APod("p").Whole(1), APod("q").Whole(1), APod("r").Whole(1), APod("s").Whole(1)});
  EXPECT_EQ(told.fitting, 2);
  EXPECT_EQ(WhyOf(told, 3),
            "has the GPUs, CPU and memory that it needs on 2 nodes, but 2 take no more pods: end "
            "one there, or raise maxPods");
}

TEST_F(WhatIfTest, DevicesOfOtherPluginsAreCounted) {
  On({NodeFor("n1", 10, 2).Holding(APod("a").Cpu(1).Others({{"rdma/hca", 1}})),
      NodeFor("n2", 10, 0), ANode("n3").Gpus(1)});
  const APod pod = APod("p").Whole(1).Others({{"rdma/hca", 1}});
  APod two = pod, three = pod;
  const WhatIfAnswer told = Tell({pod, two.Named("q"), three.Named("r")});
  EXPECT_EQ(NodesOf(told), "n3 n1 -") << "n3 does not say what it has";
  EXPECT_EQ(WhyOf(told, 2),
            "has the GPUs, CPU and memory that it needs on 2 nodes, but 2 lack rdma/hca");
}

TEST_F(WhatIfTest, AGangIsPlacedWhereItsDevicesAre) {
  On({NodeFor("n1", 10, 1), NodeFor("n2", 10, 2), NodeFor("n3", 10, 1)});
  std::vector<APod> gang = Gang(3, 1, 3);
  for (APod& pod : gang) pod.Others({{"rdma/hca", 1}});
  const WhatIfAnswer told = Tell(gang);
  EXPECT_EQ(told.fitting, 3) << NodesOf(told);
  std::map<std::string, int> on;
  for (const WhatIfPod& pod : told.pods) ++on[pod.placement->node];
  EXPECT_LE(on["n1"], 1);
  EXPECT_LE(on["n2"], 2);
  gang = Gang(4, 1, 4);
  for (APod& pod : gang) pod.Others({{"rdma/hca", 2}});
  EXPECT_EQ(Tell(gang).fitting, 0);
}

TEST_F(WhatIfTest, APodThatIsHeldBackHoldsNothing) {
  On({ANode("n1").Gpus(1)});
  const std::vector<PodRequest> pods = {APod("p").Whole(1).Request(), APod("q").Whole(1).Request()};
  const std::vector<std::string_view> held_back = {"scheduling gates hold it back", ""};
  const auto told = WhatIf(engine_, {.snapshot = snapshot_, .pods = pods, .held_back = held_back});
  ASSERT_TRUE(told);
  EXPECT_EQ(NodesOf(*told), "- n1");
  EXPECT_EQ(WhyOf(*told, 0), "scheduling gates hold it back");
}

TEST_F(WhatIfTest, TheGuardKeepsPodsWithoutGpusOffGpuNodes) {
  On({ANode("n1").Gpus(1)});
  const std::vector<PodRequest> pods = {APod("p").Cpu(1).Request()};
  WhatIfAsk ask{.snapshot = snapshot_, .pods = pods};
  EXPECT_EQ(WhatIf(engine_, ask)->fitting, 1);
  ask.guard = NodeGuard::kRefuse;
  EXPECT_EQ(WhatIf(engine_, ask)->fitting, 0);
}

// --- gangs

TEST_F(WhatIfTest, AGangHasAPlaceForAllOrForNone) {
  On({ANode("n1").Gpus(4), ANode("n2").Gpus(2)});
  EXPECT_EQ(NodesOf(Tell(Gang(3, 2, 3))), "n1 n1 n2");
  std::vector<APod> pods = Gang(4, 2, 4);
  pods.push_back(APod("p").Whole(4));
  On({ANode("n1").Gpus(4), ANode("n2").Gpus(4).Holding(APod("x").Whole(2), {0, 1})});
  const WhatIfAnswer told = Tell(pods);
  EXPECT_EQ(NodesOf(told), "- - - - n1") << "a gang without a place holds nothing";
  EXPECT_TRUE(
      WhyOf(told, 0).starts_with("its gang default/g needs 4 of these 4 pods at once; 3 fit one by "
                                 "one; the next one fits none of 2 nodes"))
      << WhyOf(told, 0);
  On({ANode("n1").Gpus(4), ANode("n2").Gpus(2)});
  EXPECT_EQ(
      WhyOf(Tell(Gang(4, 2, 4)), 0),
      "its gang default/g needs 4 of these 4 pods at once; never on these nodes: its pods ask "
      "for 8 GPUs, and the nodes that they accept have 6");
}

TEST_F(WhatIfTest, AGangOfUnknownSizeHasAsManyPodsAsAreAskedAbout) {
  On({ANode("n1").Gpus(4)});
  EXPECT_EQ(NodesOf(Tell(Gang(2, 2, 0))), "n1 n1");
  EXPECT_EQ(NodesOf(Tell(Gang(3, 2, 0))), "- - -");
}

TEST_F(WhatIfTest, MembersBeyondTheMinimumArePlacedWhereThereIsRoom) {
  On({ANode("n1").Gpus(4)});
  const WhatIfAnswer told = Tell(Gang(3, 2, 2));
  EXPECT_EQ(told.fitting, 2);
  EXPECT_EQ(told.whys.size(), 1u);
}

TEST_F(WhatIfTest, AGangThatIsNotAllThereHasNoPlace) {
  On({ANode("n1").Gpus(8)});
  const WhatIfAnswer told = Tell(Gang(2, 1, 4));
  EXPECT_EQ(NodesOf(told), "- -");
  EXPECT_EQ(WhyOf(told, 0), "its gang default/g needs 4 pods: the plan has 2, and 0 have a node");
}

TEST_F(WhatIfTest, MembersThatAreOnNodesCount) {
  On({ANode("n1")
          .Gpus(8)
          .Holding(APod("a").Whole(1).Gang("whole:default/g"), {0})
          .Holding(APod("b").Whole(1).Gang("whole:default/g"), {1})});
  EXPECT_EQ(NodesOf(Tell(Gang(2, 1, 4))), "n1 n1");
}

TEST_F(WhatIfTest, MinimumsOfRolesAreMetAndTheOthersComeLater) {
  On({ANode("n1").Gpus(2)});
  std::vector<APod> gang = Gang(3, 1, 2);
  for (APod& pod : gang) pod.Role("worker", {{"ps", 1}, {"worker", 1}});
  EXPECT_EQ(WhyOf(Tell(gang), 0), "its gang default/g needs 1 more pod of role ps");
  gang[2].Role("ps", {{"ps", 1}, {"worker", 1}});
  EXPECT_EQ(NodesOf(Tell(gang)), "n1 - n1");
}

// Nobody asks that they are near each other.
TEST_F(WhatIfTest, TheRoleThatFindsNoPlaceIsNamed) {
  On({ANode("n1").Gpus(8)});
  std::vector<APod> gang = Gang(3, 1, 2);
  for (APod& pod : gang) pod.Role("worker", {{"ps", 1}, {"worker", 1}});
  gang[2].Role("ps", {{"ps", 1}, {"worker", 1}}).Whole(16);
  const std::string why = WhyOf(Tell(gang), 0);
  EXPECT_EQ(why.find("its gang default/g needs 2 of these 3 pods at once; 1 of role ps: none fits "
                     "alone; the first one "),
            0U)
      << why;
}

// As filter has it.
TEST_F(WhatIfTest, PodsThatDoNotGoTogetherAreNamed) {
  On({ANode("n1").Gpus(8)});
  std::vector<APod> pods = Gang(2, 1, 2);
  pods.push_back(APod("odd").Whole(1).Gang("whole:default/g").GangMinimum(3));
  pods.push_back(APod("other").Whole(1).Gang("whole:default/g").GangMinimum(2).Scheduler("mine"));
  const WhatIfAnswer told = Tell(pods);
  EXPECT_EQ(NodesOf(told), "n1 n1 - -");
  EXPECT_EQ(WhyOf(told, 2), "odd says that 3 pods must start together, others say 2");
  EXPECT_EQ(WhyOf(told, 3),
            "other has schedulerName mine, not default-scheduler: pods of two schedulers do not "
            "start together");
}

TEST_F(WhatIfTest, APartOfAGangKeepsToItsDomain) {
  const auto in = [](const std::string& name, const std::string& rack, int gpus) {
    return ANode(name).Gpus(gpus).Labelled({{"rack", rack}});
  };
  On({in("a1", "a", 2), in("b1", "b", 2), in("b2", "b", 1)});
  std::vector<APod> gang = Gang(4, 1, 4);
  for (std::size_t i = 0; i < gang.size(); ++i) {
    const std::string role = i < 3 ? "decode" : "router";
    gang[i].Role(role, {{"decode", 3}, {"router", 1}}).Parts(role, {{{"decode"}, 0}});
  }
  EXPECT_EQ(NodesOf(Tell(gang)), "b1 b1 b2 a1");
  const std::string needs = "its gang default/g needs 4 of these 4 pods at once; ";
  On({in("a1", "a", 2), in("b1", "b", 3).Holding(APod("x").Whole(2), {0, 1}), in("c1", "c", 2)});
  EXPECT_EQ(WhyOf(Tell(gang), 0),
            needs + "group decode: room for 2 of its 3 pods in rack a, the rack with the most");
  On({in("a1", "a", 2), in("b1", "b", 2), in("c1", "c", 2)});
  EXPECT_EQ(WhyOf(Tell(gang), 0),
            needs +
                "never on these nodes: the pods of group decode ask for 3 GPUs in one rack, and "
                "the largest has 2");
  On({ANode("n").Gpus(8)});
  EXPECT_EQ(WhyOf(Tell(gang), 0),
            needs +
                "never on these nodes: the pods of group decode have to be in one rack, and no "
                "node has a label of that level");
  std::vector<APod> whole = Gang(3, 1, 3);
  for (APod& pod : whole) pod.Parts("", {{{}, 0}});
  On({in("a1", "a", 2), in("b1", "b", 2)});
  EXPECT_EQ(
      WhyOf(Tell(whole), 0),
      "its gang default/g needs 3 of these 3 pods at once; never on these nodes: its pods ask "
      "for 3 GPUs in one rack, and the largest has 2");
  // One that comes later joins its part, not the gang.
  On({in("a1", "a", 2).Holding(gang[3], {0}), in("b1", "b", 1).Holding(gang[0], {0}),
      in("b2", "b", 1)});
  APod late = APod("late").Whole(1).Gang("whole:default/g").GangMinimum(2);
  late.Role("decode", {{"decode", 1}, {"router", 1}}).Parts("decode", {{{"decode"}, 0}});
  EXPECT_EQ(NodesOf(Tell({late})), "b2");
}

TEST_F(WhatIfTest, AGangThatStartsPodByPodKeepsToItsDomain) {
  On({ANode("n1").Gpus(2).Labelled({{"rack", "a"}}), ANode("n2").Gpus(4).Labelled({{"rack", "b"}}),
      ANode("n3").Gpus(4).Labelled({{"rack", "b"}})});
  std::vector<APod> pods;
  for (const char* name : {"p", "q", "r"}) {
    pods.push_back(APod(name).Whole(2).Gang("single:default/g").GangSize(3).Requires(0));
  }
  const std::string nodes = NodesOf(Tell(pods));
  EXPECT_EQ(nodes.find("n1"), std::string::npos) << nodes;
  EXPECT_EQ(nodes.find('-'), std::string::npos) << nodes;
}

// --- nodes that come and go

TEST_F(WhatIfTest, NodesThatComeAreLikeTheOtherOneAndEmpty) {
  On({ANode("n1")
          .Gpus(4)
          .NotReady()
          .Unhealthy(1)
          .Tainted("node.kubernetes.io/unschedulable")
          .Tainted("dedicated")
          .Labelled({{"kubernetes.io/hostname", "n1"}, {"rack", "a"}})
          .Holding(APod("a").Whole(2), {2, 3}),
      ANode("n1-new-1")});
  const WhatIfAnswer told = Tell({}, {{{"n1", 2}}, {}});
  EXPECT_EQ(told.nodes.added, (std::vector<std::string>{"n1-new-2", "n1-new-3"}));
  const Snapshot& snapshot = *told.nodes.snapshot;
  ASSERT_EQ(snapshot.size(), 4u);
  const Node& added = snapshot.node(snapshot.names().Find("n1-new-2"));
  EXPECT_TRUE(added.spec().ready);
  EXPECT_TRUE(added.pods().empty());
  EXPECT_EQ(added.healthy_gpus(), 4);
  ASSERT_EQ(added.spec().taints.size(), 1u);
  EXPECT_EQ(added.spec().taints[0].key, "dedicated");
  EXPECT_EQ(added.spec().labels, (Labels{{"kubernetes.io/hostname", "n1-new-2"}, {"rack", "a"}}));
}

TEST_F(WhatIfTest, ANodeThatComesRefusesNoPodsThoughTheOtherOneDoes) {
  NodeSpec spec = ANode("n1").Gpus(4).Spec();
  spec.refuses_gpu_pods = true;
  spec.refused_asks = std::make_shared<const std::vector<RefusedAsk>>(1);
  const std::vector<std::shared_ptr<const Node>> nodes = {
      std::make_shared<const Node>(std::make_shared<const NodeSpec>(spec))};
  const auto edited =
      Edit(std::make_shared<const Snapshot>(nodes), {.add = {{"n1", 1}}, .remove = {}});
  ASSERT_TRUE(edited) << edited.error().message;
  const Snapshot& now = *edited->snapshot;
  EXPECT_TRUE(now.node(now.names().Find("n1")).spec().refuses_gpu_pods);
  EXPECT_FALSE(now.node(now.names().Find("n1-new-1")).spec().refuses_gpu_pods);
  EXPECT_NE(now.node(now.names().Find("n1")).spec().refused_asks, nullptr);
  EXPECT_EQ(now.node(now.names().Find("n1-new-1")).spec().refused_asks, nullptr);
}

TEST_F(WhatIfTest, NodesThatComeMayBeLikeNoneThatIsThere) {
  On({ANode("n1").Gpus(1)});
  NodeSpec shape = ANode("big").Gpus(8).Spec();
  shape.ready = false;
  const WhatIfAnswer told = Tell({APod("p").Whole(8), APod("q").Whole(8), APod("r").Whole(8)},
                                 {{{"big", 1, shape}, {"n1", 1}, {"big", 1, shape}}, {}});
  EXPECT_EQ(told.nodes.added, (std::vector<std::string>{"big-new-1", "n1-new-1", "big-new-2"}));
  EXPECT_EQ(NodesOf(told), "big-new-1 big-new-2 -");
}

TEST_F(WhatIfTest, PodsGoToNodesThatComeAndNotToThoseThatGo) {
  On({ANode("n1").Gpus(2), ANode("n2").Gpus(2).Holding(APod("a").Whole(1), {0})});
  EXPECT_EQ(NodesOf(Tell({APod("p").Whole(2), APod("q").Whole(2)}, {{{"n2", 1}}, {"n1"}})),
            "n2-new-1 -");
}

TEST_F(WhatIfTest, PodsOfNodesThatGoAreCountedAndNotPlaced) {
  On({ANode("n1").Gpus(2).Holding(APod("a").Whole(1), {0}).Holding(APod("b").Cpu(1)),
      ANode("n2").Gpus(2)});
  const WhatIfAnswer told = Tell({}, {{}, {"n1", "n1"}});
  EXPECT_EQ(told.nodes.removed, (std::vector<std::string>{"n1"}));
  EXPECT_EQ(told.nodes.pods_lost, 2);
  EXPECT_EQ(told.nodes.gpu_pods_lost, (std::vector<std::string>{"default/a"}));
  EXPECT_EQ(told.after[0].idle, 2);
}

TEST_F(WhatIfTest, ANodeThatIsNotThereCanNeitherGoNorBeCopied) {
  On({ANode("n1")});
  EXPECT_EQ(ErrorOf({{}, {"n1", "n9"}}), "remove[1]: want the name of a node, got \"n9\"");
  EXPECT_EQ(ErrorOf({{{"n9", 1}}, {}}), "add[0].like: want the name of a node, got \"n9\"");
  EXPECT_EQ(ErrorOf({{{"n1", 999}, {"n1", 2}}, {}}),
            "add[1].count: want 1..1000 nodes in all, got 2");
}

// Each of them would fit beside what is kept.
TEST_F(WhatIfTest, PodsAreCountedTogetherBesideWhatIsKept) {
  On({ANode("n1").Gpus(4), ANode("n2").Gpus(1)});
  Keep(2);
  EXPECT_EQ(NodesOf(Tell(Gang(3, 1, 3))), "n1 n1 n2");
  const WhatIfAnswer told = Tell(Gang(4, 1, 4));
  EXPECT_EQ(NodesOf(told), "- - - -");
  EXPECT_EQ(WhyOf(told, 0).find("n1 fits"), std::string::npos) << WhyOf(told, 0);
  EXPECT_EQ(NodesOf(Tell({APod("a").Whole(2), APod("b").Whole(2)})), "n1 -");
  EXPECT_EQ(NodesOf(Tell({APod("a").Whole(2), APod("b").Whole(2).Priority(9)})), "- n1")
      << "the more important one comes first, and need not leave it";
  kept_ = {};
  EXPECT_EQ(Tell(Gang(4, 1, 4)).fitting, 4);
}

}  // namespace
}  // namespace berth::test::what_if_test
