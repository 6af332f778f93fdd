// SPDX-License-Identifier: Apache-2.0
#include "scoring/victims.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "test/support/builders.h"

namespace berth::test::victims_test {
namespace {

using Uids = std::vector<std::string>;

// No budgets, no gangs beyond the node.
EvictionLimits NoLimits() {
  return {{}, [](const GangId&) { return std::size_t{0}; }};
}

std::optional<Uids> Added(const ANode& node, const APod& pod, const Uids& given = {},
                          const EvictionLimits& limits = NoLimits()) {
  return AddedVictims(node.Build(), pod.Request(), given, limits);
}

APod Preemptor() { return APod("p").Priority(100); }

TEST(AddedVictims, AreNoneWhereThePodFits) {
  const ANode node = ANode("n").Gpus(2).Holding(APod("a").Whole(1), {0});
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), Uids());
  EXPECT_EQ(Added(node, Preemptor().Whole(2), {"uid-a"}), Uids()) << "what is given suffices";
}

TEST(AddedVictims, OfAShareAreAllThatUseComputeInAnotherWay) {
  PodRequest wanted = Preemptor().ShareByMemory(4000).Request();
  wanted.shape.share_mode = ShareMode::kSmSharing;
  Node node = ANode("n").Gpus(2).Build();
  const auto put = [&node](const std::string& name, ShareMode mode, int gpu, int priority) {
    PodRequest pod = APod(name).ShareByMemory(4000).Priority(priority).Request();
    pod.shape.share_mode = mode;
    Placement placement = WithoutDevices("n", pod.shape);
    placement.grants = {{gpu, 250, 4000}};
    node.Put(std::make_shared<const PodRecord>(PodRecord{pod, placement, PodState::kBound, {}}));
  };
  put("a", ShareMode::kTimeSlicing, 0, 0);
  put("b", ShareMode::kTimeSlicing, 0, 100);
  put("c", ShareMode::kTimeSlicing, 1, 0);
  put("d", ShareMode::kTimeSlicing, 1, 0);
  const auto added = [&] { return AddedVictims(node, wanted, {}, NoLimits()); };
  EXPECT_EQ(added(), (Uids{"uid-c", "uid-d"})) << "b stays on GPU 0";
  put("e", ShareMode::kUnsaid, 1, 100);
  EXPECT_EQ(added(), std::nullopt);
}

TEST(AddedVictims, AreNeverOfTheSamePriorityOrHigher) {
  const ANode node = ANode("n")
                         .Gpus(2)
                         .Holding(APod("a").Whole(1).Priority(100), {0})
                         .Holding(APod("b").Whole(1).Priority(200), {1});
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), std::nullopt);
}

TEST(AddedVictims, AreNeverAReservation) {
  EXPECT_EQ(
      Added(ANode("n").Gpus(1).HoldingReserved(APod("a").Whole(1), {0}), Preemptor().Whole(1)),
      std::nullopt);
}

TEST(AddedVictims, FreeNoGpuThatAClaimHolds) {
  const ANode node = ANode("n").Gpus(2).Holding(APod("a").Whole(1), {0}).Claimed({1});
  EXPECT_EQ(Added(node, Preemptor().Whole(2)), std::nullopt);
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), Uids{"uid-a"});
  // Somebody uses the claim: his end releases nothing that can be promised.
  const ANode user = ANode("n").Gpus(1).Holding(APod("uses-the-claim"), {}).Claimed({0});
  EXPECT_EQ(Added(user, Preemptor().Whole(1)), std::nullopt);
  EXPECT_EQ(AfterEvictions(user.Build(), Preemptor().Whole(1).Request(), Reason::kGpusBusy),
            Reason::kGpusHeld);
}

TEST(AddedVictims, AreOnlyAddedForGpus) {
  const ANode node = ANode("n").Cpu(8).Gpus(1).Holding(APod("a").Whole(1).Cpu(8), {0});
  EXPECT_EQ(Added(node, Preemptor().Cpu(4)), std::nullopt);
  EXPECT_EQ(Added(node, Preemptor().Cpu(4).Whole(1)), Uids{"uid-a"});
}

TEST(AddedVictims, LeaveEnoughDiskToo) {
  const ANode node = ANode("n")
                         .DiskGib(500)
                         .Gpus(2)
                         .Holding(APod("a").Whole(1).DiskGib(50), {0})
                         .Holding(APod("b").Whole(1).DiskGib(400), {1});
  EXPECT_EQ(Added(node, Preemptor().Whole(1).DiskGib(100)), Uids{"uid-a"});
  EXPECT_EQ(Added(node, Preemptor().Whole(1).DiskGib(300)), Uids{"uid-b"})
      << "the GPU of a alone would leave 100 GiB";
  EXPECT_EQ(Added(node, Preemptor().Whole(1).DiskGib(480)), (Uids{"uid-a", "uid-b"}));
  EXPECT_EQ(Added(node, Preemptor().Whole(1).DiskGib(501)), std::nullopt);
}

TEST(AddedVictims, DoNotHelpWhereTheDiskIsHeldByPodsThatStay) {
  const ANode node = ANode("n")
                         .DiskGib(500)
                         .Gpus(2)
                         .Holding(APod("a").Whole(1).DiskGib(50), {0})
                         .Holding(APod("b").Priority(100).DiskGib(400));
  EXPECT_EQ(Added(node, Preemptor().Whole(1).DiskGib(300)), std::nullopt);
  EXPECT_EQ(
      AfterEvictions(node.Build(), Preemptor().Whole(1).DiskGib(300).Request(), Reason::kDiskShort),
      Reason::kDiskHeld);
}

TEST(AddedVictims, AreThoseThatLoseTheLeastWork) {
  const WallTime now = SimClock().Wall();
  const auto ago = [now](int minutes) { return now - std::chrono::minutes(minutes); };
  EvictionLimits limits = NoLimits();
  limits.now = now;
  const auto added = [&](const APod& a, const APod& b) {
    return Added(ANode("n").Gpus(4).Holding(a, {0, 1}).Holding(b, {2, 3}), Preemptor().Whole(1), {},
                 limits);
  };
  const auto saved = [&](const char* name, int minutes) {
    return APod(name).Whole(2).Checkpointed(ago(minutes));
  };
  EXPECT_EQ(added(saved("a", 50), saved("b", 3)), Uids{"uid-b"});
  EXPECT_EQ(added(APod("a").Whole(2), saved("b", 900)), Uids{"uid-b"}) << "a never says it";
  EXPECT_EQ(added(APod("a").Whole(2), APod("b").Whole(2)), Uids{"uid-a"}) << "as it was";
  EXPECT_EQ(added(saved("a", 50).Priority(1), saved("b", 60)), Uids{"uid-b"})
      << "priority goes first";
  // A clock that is ahead loses nothing, and no more than nothing.
  EXPECT_EQ(added(saved("a", 0), saved("b", -30)), Uids{"uid-a"});
}

TEST(AddedVictims, OfPodsOnOneGpuAreTheFewest) {
  ANode node = ANode("n").Gpus(2);
  for (const char* name : {"a", "b", "c"}) node.Holding(APod(name).Share(300), {0});
  node.Holding(APod("d").Share(900), {1});
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), Uids{"uid-d"});
  EXPECT_EQ(Added(node, Preemptor().Share(400)), Uids{"uid-a"}) << "less is set free";
  EXPECT_EQ(Added(node, Preemptor().Share(800)), Uids{"uid-d"});
}

TEST(AddedVictims, FreeTheGpusThatThePodNames) {
  const ANode node = ANode("n")
                         .Gpus(2)
                         .Named()
                         .Holding(APod("a").Whole(1), {0})
                         .Holding(APod("b").Share(200), {1});
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), Uids{"uid-b"}) << "less is set free";
  EXPECT_EQ(Added(node, Preemptor().Whole(1).OnGpus({"GPU-0"})), Uids{"uid-a"});
  EXPECT_EQ(Added(node, Preemptor().Share(900).NotOnGpus({"GPU-1"})), Uids{"uid-a"});
  EXPECT_EQ(Added(node, Preemptor().Whole(1).OnGpus({"GPU-x"})), std::nullopt);
}

TEST(AddedVictims, FreePartsOfAsManyGpusAsThePodNeeds) {
  const ANode node = ANode("n")
                         .Gpus(3)
                         .Holding(APod("a").Share(800), {0})
                         .Holding(APod("b").Share(300), {1})
                         .Holding(APod("c").Share(900).Priority(50), {2});
  EXPECT_EQ(Added(node, Preemptor().Shares(2, 600)), Uids{"uid-a"});
  EXPECT_EQ(Added(node, Preemptor().Shares(2, 800)), (Uids{"uid-a", "uid-b"}));
  EXPECT_EQ(Added(node, Preemptor().Shares(3, 100)), Uids()) << "it fits";
}

TEST(AddedVictims, OfLowerPriorityGoFirstEvenIfTheyAreMore) {
  ANode node = ANode("n").Gpus(2);
  for (const char* name : {"a", "b"}) node.Holding(APod(name).Share(500).Priority(1), {0});
  node.Holding(APod("c").Whole(1).Priority(50), {1});
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), (Uids{"uid-a", "uid-b"}));
}

TEST(AddedVictims, SetFreeAsLittleAsCanBe) {
  ANode node = ANode("n").Gpus(4);
  node.Holding(APod("a").Whole(3), {0, 1, 2}).Holding(APod("b").Whole(1), {3});
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), Uids{"uid-b"});
  EXPECT_EQ(Added(node, Preemptor().Whole(2)), Uids{"uid-a"});
  EXPECT_EQ(Added(node, Preemptor().Whole(4)), (Uids{"uid-a", "uid-b"}));
}

TEST(AddedVictims, UseTheGpusThatAreIdleAlready) {
  const ANode node =
      ANode("n").Gpus(3).Holding(APod("a").Whole(1), {0}).Holding(APod("b").Whole(1), {2});
  EXPECT_EQ(Added(node, Preemptor().Whole(2)), Uids{"uid-a"});
}

TEST(AddedVictims, ComeBesideThoseThatAreGiven) {
  const ANode node = ANode("n")
                         .Cpu(8)
                         .Gpus(2)
                         .Holding(APod("cpu").Cpu(8))
                         .Holding(APod("a").Share(500), {0})
                         .Holding(APod("b").Share(500), {1});
  EXPECT_EQ(Added(node, Preemptor().Cpu(4).Whole(1), {"uid-cpu"}), Uids{"uid-a"});
  EXPECT_EQ(Added(node, Preemptor().Cpu(4).Whole(1)), std::nullopt)
      << "the CPU is not ours to free";
}

TEST(AddedVictims, AreFoundWhereCpuIsShortAsWell) {
  const ANode node = ANode("n")
                         .Cpu(8)
                         .Gpus(2)
                         .Holding(APod("a").Whole(1).Cpu(1), {0})
                         .Holding(APod("b").Whole(1).Cpu(7), {1});
  EXPECT_EQ(Added(node, Preemptor().Cpu(4).Whole(1)), Uids{"uid-b"});
}

TEST(AddedVictims, OfPodsBoundPastBerthAreFoundByTheirAssumedGpus) {
  const ANode node =
      ANode("n").Gpus(2).Holding(APod("a").Whole(1)).Holding(APod("b").Whole(1).Priority(500));
  EXPECT_EQ(Added(node, Preemptor().Whole(1)), Uids{"uid-a"});
  EXPECT_EQ(Added(node, Preemptor().Whole(2)), std::nullopt);
}

TEST(AddedVictims, OfAGangAreAllOfItAndOnlyIfNothingElseSuffices) {
  ANode node = ANode("n").Gpus(3);
  node.Holding(APod("a").Whole(1).Gang("default/g"), {0});
  node.Holding(APod("b").Whole(1).Gang("default/g"), {1});
  node.Holding(APod("c").Whole(1).Priority(90), {2});
  const EvictionLimits here{{}, [](const GangId&) { return std::size_t{2}; }};
  const EvictionLimits elsewhere{{}, [](const GangId&) { return std::size_t{3}; }};
  EXPECT_EQ(Added(node, Preemptor().Whole(1), {}, here), Uids{"uid-c"});
  EXPECT_EQ(Added(node, Preemptor().Whole(2), {}, here), (Uids{"uid-a", "uid-b"}));
  EXPECT_EQ(Added(node, Preemptor().Whole(2), {}, elsewhere), std::nullopt);
  EXPECT_EQ(Added(node, Preemptor().Gang("default/g").Whole(2), {}, here), std::nullopt)
      << "a gang does not evict itself";
}

TEST(AddedVictims, OfAGangAreNoneIfOneOfItMustStay) {
  ANode node = ANode("n").Gpus(2);
  node.Holding(APod("a").Whole(1).Gang("default/g"), {0});
  node.Holding(APod("b").Whole(1).Gang("default/g").Priority(300), {1});
  const EvictionLimits limits{{}, [](const GangId&) { return std::size_t{2}; }};
  EXPECT_EQ(Added(node, Preemptor().Whole(1), {}, limits), std::nullopt);
}

TEST(AddedVictims, KeepDisruptionBudgetsWhole) {
  const Labels web = {{"app", "web"}};
  ANode node = ANode("n").Gpus(3);
  node.Holding(APod("a").Whole(1).Labelled(web), {0});
  node.Holding(APod("b").Whole(1).Labelled(web), {1});
  node.Holding(APod("c").Whole(1), {2});
  std::vector<PodDisruptionBudget> budgets = {
      {"default", "b", LabelSelector{{"app", LabelOperator::kIn, {"web"}}}, 0}};
  EvictionLimits limits = NoLimits();
  limits.budgets = budgets;
  EXPECT_EQ(Added(node, Preemptor().Whole(1), {}, limits), Uids{"uid-c"});
  EXPECT_EQ(Added(node, Preemptor().Whole(2), {}, limits), std::nullopt);
  budgets[0].disruptions_allowed = 1;
  EXPECT_EQ(Added(node, Preemptor().Whole(2), {}, limits), (Uids{"uid-a", "uid-c"}));
  EXPECT_EQ(Added(node, Preemptor().Whole(3), {}, limits), std::nullopt);
  EXPECT_EQ(Added(node, Preemptor().Whole(3), {"uid-a"}, limits), std::nullopt)
      << "a given victim has used the budget up";
  EXPECT_EQ(Added(node, Preemptor().Whole(2), {"uid-a"}, limits), Uids{"uid-c"});
}

TEST(AddedVictims, AreFoundOnNodesBeyondTheExactSearch) {
  ANode node = ANode("n").Gpus(64);
  for (int gpu = 0; gpu < 64; ++gpu) {
    for (int i = 0; i < 2; ++i) {
      const std::string name = std::to_string(gpu) + "-" + std::to_string(i);
      node.Holding(APod(name).Share(500).Priority(gpu < 32 ? 1 : 2), {gpu});
    }
  }
  const auto added = Added(node, Preemptor().Whole(16));
  ASSERT_TRUE(added);
  EXPECT_EQ(added->size(), 32u);
  EXPECT_EQ(std::ranges::count_if(
                *added, [](const std::string& uid) { return std::stoi(uid.substr(4)) >= 32; }),
            0);
}

TEST(AddedVictims, AreNoneOnANodeThatCannotTakeThePodAtAll) {
  const ANode node = ANode("n").Gpus(2).Holding(APod("a").Whole(2), {0, 1});
  EXPECT_EQ(Added(node, Preemptor().Whole(3)), std::nullopt);
  EXPECT_EQ(Added(ANode(node).NotReady(), Preemptor().Whole(1)), std::nullopt);
}

TEST(AfterEvictions, IsUnresolvableWhereNoPodOfLowerPriorityIsInTheWay) {
  const Node full = ANode("n")
                        .Gpus(2)
                        .Holding(APod("a").Whole(1).Priority(5), {0})
                        .Holding(APod("b").Whole(1).Priority(50), {1})
                        .Build();
  const auto reason = [&full](const APod& pod) {
    return AfterEvictions(full, pod.Request(), Reason::kGpusBusy);
  };
  EXPECT_EQ(reason(APod("p").Whole(1).Priority(5)), Reason::kGpusHeld);
  EXPECT_EQ(reason(APod("p").Whole(1).Priority(6)), Reason::kGpusBusy);
  EXPECT_EQ(reason(APod("p").Whole(2).Priority(6)), Reason::kGpusHeld) << "one is not enough";
  EXPECT_EQ(reason(APod("p").Whole(2).Priority(51)), Reason::kGpusBusy);
  PodRequest humble = APod("p").Whole(1).Priority(6).Request();
  humble.may_preempt = false;
  EXPECT_EQ(AfterEvictions(full, humble, Reason::kGpusBusy), Reason::kGpusHeld);
  EXPECT_EQ(AfterEvictions(full, humble, Reason::kNoGpu), Reason::kNoGpu);
  EXPECT_EQ(AfterEvictions(full, humble, Reason::kNodeUnknown), Reason::kNodeUnknown);
}

TEST(AfterEvictions, CountsOnReservationsToStay) {
  const Node node =
      ANode("n").Gpus(1).Holding(APod("c").Cpu(1)).HoldingReserved(APod("a").Whole(1), {0}).Build();
  EXPECT_EQ(AfterEvictions(node, APod("p").Whole(1).Priority(6).Request(), Reason::kGpusBusy),
            Reason::kGpusHeld);
}

}  // namespace
}  // namespace berth::test::victims_test
