// SPDX-License-Identifier: Apache-2.0
//
// A node with fewer allocatable GPUs than it has, and nobody says which are unhealthy;
// and one whose GPUs have several users.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/node/node.h"
#include "cluster/state/cluster_state.h"
#include "scoring/devices/device_picker.h"
#include "scoring/registry.h"
#include "scoring/victims.h"
#include "test/support/builders.h"

namespace berth::test::missing_gpus_test {
namespace {

NodeSpec EightGpus(int missing) { return ANode("n").Gpus(8).Missing(missing).Spec(); }

Reason ReasonFor(const Node& node, const APod& pod) { return FirstObjection(node, pod.Shape()); }

TEST(MissingGpus, AnIdleOneIsClosedAndTheOthersAreGiven) {
  const ANode node = ANode("n").Gpus(8).Missing(1).Holding(APod("a").Whole(2), {6, 7});
  EXPECT_EQ(node.Build().closed(), GpuBit(5));
  EXPECT_EQ(node.Build().healthy_gpus(), 7);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(5)), Reason::kFits);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(6)), Reason::kGpusBusy);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(7)), Reason::kGpusBusy);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(8)), Reason::kTooFewGpus);
  EXPECT_FALSE(node.Build().CanTake(APod("p").Whole(1).On("n", {5})));
}

TEST(MissingGpus, WhatIsHeldStaysHeldWhenANodeShrinks) {
  ClusterState state;
  const APod last = APod("last").Whole(1), share = APod("share").Share(600);
  ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{
      NodeUpserted{EightGpus(0)}, PodBound{last.Request(), last.On("n", {7})},
      PodBound{share.Request(), share.On("n", {0})}, NodeUpserted{EightGpus(1)}}));
  const Node& node = state.Current()->node(0);
  EXPECT_EQ(node.gpus()[7].milli, 0);
  EXPECT_EQ(node.gpus()[0].milli, 400);
  EXPECT_EQ(node.closed(), GpuBit(6));
  const auto choices = DeviceChoices(node, APod("p").Share(500).Shape(), DeviceRule::kBestScore);
  for (const DeviceChoice& choice : choices) EXPECT_EQ(choice.gpus & (GpuBit(7) | GpuBit(6)), 0U);
}

TEST(MissingGpus, WhereAllAreHeldOneThatGetsFreeMakesNoRoom) {
  ANode node = ANode("n").Gpus(2).Missing(1).Holding(APod("a").Whole(1), {0});
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(1)), Reason::kGpusBusy);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Share(1)), Reason::kShareBusy);
  node.Holding(APod("b").Whole(1), {1});
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(1)), Reason::kGpusBusy);
  EXPECT_EQ(ReasonFor(ANode("n").Gpus(2).Missing(1).Build(), APod("p").Whole(1)), Reason::kFits);
}

TEST(MissingGpus, CloseAsManyReplicasAsAreMissing) {
  ANode node = ANode("n").Gpus(3).Missing(1);
  node.Holding(APod("a").Share(500), {0}).Holding(APod("b").Share(600), {1});
  node.Holding(APod("c").Share(700), {2});
  EXPECT_EQ(node.Build().closed(), AllGpus(3)) << "what is free of all makes up one GPU and 200";
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Share(1)), Reason::kShareBusy);
  ANode lighter = ANode("n").Gpus(3).Missing(1);
  lighter.Holding(APod("a").Share(400), {0}).Holding(APod("b").Share(500), {1});
  lighter.Holding(APod("c").Share(700), {2});
  EXPECT_EQ(lighter.Build().closed(), GpuBit(0) | GpuBit(1));
  EXPECT_EQ(ReasonFor(lighter.Build(), APod("p").Share(300)), Reason::kFits);
  EXPECT_EQ(ReasonFor(lighter.Build(), APod("p").Share(301)), Reason::kShareBusy);
}

TEST(MissingGpus, ThoseThatAreNamedAreNotClosedASecondTime) {
  const Node node = ANode("n").Gpus(4).Unhealthy(0).Missing(1).Build();
  EXPECT_EQ(node.healthy_gpus(), 2);
  EXPECT_EQ(node.closed(), GpuBit(0) | GpuBit(3));
}

TEST(MissingGpus, AllOfThemAreADevicePluginThatOffersNone) {
  const Node none = ANode("n").Gpus(8).Missing(8).Build();
  EXPECT_EQ(none.closed(), AllGpus(8));
  EXPECT_EQ(ReasonFor(none, APod("p").Whole(1)), Reason::kNoGpuOffered);
  EXPECT_EQ(ReasonFor(none, APod("p").Share(1)), Reason::kNoGpuOffered);
  EXPECT_EQ(ReasonFor(none, APod("p").Cpu(1)), Reason::kFits);
}

// Random pods on a node whose GPUs fall out and come back: what is given never makes the sum
// larger than what is allocatable, and what is held is never forgotten.
TEST(MissingGpus, NothingIsEverGivenBeyondWhatIsAllocatable) {
  constexpr std::int64_t kMemory = 16'000;
  int given = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto below = [&random](int end) {
      return static_cast<int>(random.Below(static_cast<std::uint64_t>(end)));
    };
    ClusterState state;
    int missing = 0;
    std::vector<APod> there;
    ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{NodeUpserted{EightGpus(0)}}));
    for (int step = 0; step < 60; ++step) {
      const int kind = below(10);
      if (kind == 0) {
        missing = below(4);
        ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{NodeUpserted{EightGpus(missing)}}));
      } else if (kind <= 3 && !there.empty()) {
        const auto gone = there.begin() + below(static_cast<int>(there.size()));
        ASSERT_TRUE(state.Apply(std::vector<ClusterEvent>{PodGone{gone->Request().id.uid}}));
        there.erase(gone);
      } else {
        APod pod(std::to_string(step));
        if (kind < 6) pod.Whole(1 + below(3));
        if (kind >= 6 && kind < 8) pod.Share(100 * (1 + below(9)));
        if (kind >= 8) pod.Share(50, 1000 * (1 + below(15)));
        const auto snapshot = state.Current();
        const auto choices = DeviceChoices(snapshot->node(0), pod.Shape(), DeviceRule::kBestScore);
        ASSERT_EQ(choices.empty(), ReasonFor(snapshot->node(0), pod) != Reason::kFits);
        choices.empty() ? ++refused : ++given;
        if (choices.empty()) continue;
        const Placement placement = PlacementFor(snapshot->node(0), pod.Shape(), choices.front());
        ASSERT_TRUE(state.Reserve(pod.Request(), placement, Instant::max()));
        ASSERT_TRUE(state.Confirm(pod.Request().id.uid));
        there.push_back(pod);
        std::int64_t milli = 0, memory_mib = 0;
        for (const GpuFree& free : state.Current()->node(0).gpus()) {
          milli += kMilliPerGpu - free.milli;
          memory_mib += kMemory - free.memory_mib;
        }
        ASSERT_LE(milli, std::int64_t{8 - missing} * kMilliPerGpu);
        ASSERT_LE(memory_mib, (8 - missing) * kMemory);
      }
      ASSERT_EQ(state.Current()->node(0).pods().size(), there.size());
    }
  }
  EXPECT_GT(given, 2000);
  EXPECT_GT(refused, 2000);
}

TEST(DisplacedGrants, OnGpusThatTheNodeHasNoLongerAreAssumedToBeOthers) {
  // The plugin has started anew and counts seven: the pod that had the eighth has one of them.
  ANode node = ANode("n").Gpus(7).Holding(APod("last").Whole(2), {6, 7});
  EXPECT_EQ(node.Build().gpus()[6].milli, 0);
  EXPECT_EQ(node.Build().gpus()[5].milli, 0);
  EXPECT_EQ(node.Build().unattributed(), 1);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(5)), Reason::kFits);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(6)), Reason::kGpusBusy);
  node.Holding(APod("share").Share(300), {7});
  EXPECT_EQ(node.Build().gpus()[4].milli, 700);
  Node emptied = node.Build();
  emptied.Remove("uid-last");
  emptied.Remove("uid-share");
  EXPECT_EQ(emptied, ANode("n").Gpus(7).Build());
}

TEST(GpuPlaces, AreGivenOneToAPodUntilNoneIsLeft) {
  ANode node = ANode("n").Places(2);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(1)), Reason::kFits);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(2)), Reason::kOnePlaceEach);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Share(1)), Reason::kPlacesOnly);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").ShareByMemory(1)), Reason::kPlacesOnly);
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Mig("1g.5gb")), Reason::kNoMig);
  node.Holding(APod("a").Whole(1)).Holding(APod("b").Whole(1));
  EXPECT_EQ(ReasonFor(node.Build(), APod("p").Whole(1)), Reason::kGpusBusy);
  EXPECT_EQ(node.Build().unattributed(), 0) << "nobody could say more";
  const auto free = DeviceChoices(ANode("n").Places(2).Build(), APod("p").Whole(1).Shape(),
                                  DeviceRule::kBestScore);
  ASSERT_EQ(free.size(), 1U);
  const Placement placement =
      PlacementFor(ANode("n").Places(2).Build(), APod("p").Whole(1).Shape(), free.front());
  EXPECT_EQ(placement.places, 1);
  EXPECT_TRUE(placement.grants.empty());
  EXPECT_TRUE(ANode("n").Places(2).Build().CanTake(placement));
  EXPECT_FALSE(node.Build().CanTake(placement));
}

TEST(GpuPlaces, AreMadeFreeByEvictingOnePod) {
  const Node node = ANode("n")
                        .Places(3)
                        .Holding(APod("a").Whole(1).Priority(1))
                        .Holding(APod("b").Whole(1).Priority(2))
                        .Holding(APod("c").Whole(1).Priority(3))
                        .Build();
  const PodRequest pod = APod("p").Whole(1).Priority(9).Request();
  EXPECT_EQ(AddedVictims(node, pod, {}, {}), std::vector<std::string>{"uid-a"});
}

TEST(MissingGpus, AreMadeUpForByEvictingOnePodMore) {
  ANode node = ANode("n").Gpus(2).Missing(1);
  node.Holding(APod("a").Whole(1).Priority(1), {0}).Holding(APod("b").Whole(1).Priority(2), {1});
  EXPECT_EQ(AddedVictims(node.Build(), APod("p").Whole(1).Priority(9).Request(), {}, {}),
            (std::vector<std::string>{"uid-a", "uid-b"}));
  EXPECT_EQ(AddedVictims(node.Build(), APod("p").Whole(1).Priority(2).Request(), {}, {}),
            std::nullopt);
}

TEST(GpuPlaces, AreFewerWhenSomeGpusAreUnhealthy) {
  EXPECT_EQ(ReasonFor(ANode("n").Places(4).Missing(3).Holding(APod("a").Whole(1)).Build(),
                      APod("p").Whole(1)),
            Reason::kGpusBusy);
  EXPECT_EQ(ReasonFor(ANode("n").Places(4).Missing(4).Build(), APod("p").Whole(1)),
            Reason::kNoGpuOffered);
}

TEST(GpuPlaces, OfAnotherSchedulerAreNotAssigned) {
  const Node node = ANode("n").Places(80, true).Build();
  EXPECT_EQ(ReasonFor(node, APod("p").Whole(1)), Reason::kGpusForeign);
  EXPECT_EQ(ReasonFor(node, APod("p").Share(1)), Reason::kGpusForeign);
  EXPECT_EQ(ReasonFor(node, APod("p").Cpu(1)), Reason::kFits);
}

TEST(GpuResource, MustBeTheSameOnPodAndNodeWhenBothNameOne) {
  NodeSpec amd = ANode("n").Gpus(2).Spec();
  amd.gpu_resource = "amd.com/gpu";
  const Node node(std::make_shared<const NodeSpec>(amd));
  RequestShape shape = APod("p").Whole(1).Shape();
  EXPECT_EQ(FirstObjection(node, shape), Reason::kFits);
  shape.gpu_resource = "amd.com/gpu";
  EXPECT_EQ(FirstObjection(node, shape), Reason::kFits);
  shape.gpu_resource = "nvidia.com/gpu";
  EXPECT_EQ(FirstObjection(node, shape), Reason::kOtherResource);
  EXPECT_EQ(FirstObjection(ANode("n").Build(), shape), Reason::kNoGpu);
}

}  // namespace
}  // namespace berth::test::missing_gpus_test
