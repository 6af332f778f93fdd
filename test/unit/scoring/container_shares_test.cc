// SPDX-License-Identifier: Apache-2.0
//
// Pods whose containers may have their parts of different GPUs: which GPUs, what the books hold,
// who is evicted for them, and what is said of them.
#include "scoring/devices/container_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scoring/devices/device_picker.h"
#include "scoring/explain/node_report.h"
#include "scoring/groups/group_domains.h"
#include "scoring/registry.h"
#include "scoring/victims.h"
#include "test/support/builders.h"
#include "test/support/wirings.h"

namespace berth::test::container_shares_test {
namespace {

constexpr std::int64_t kMib = 40'960;

GpuStep Of(std::int64_t memory_mib, int gpus = 1) {
  return {gpus, false, {.memory_mib = memory_mib, .count = gpus}};
}

ANode Cards(int count) { return ANode("n").Gpus(count, kMib).Named("hami"); }

// "0 1": the GPUs of each container.
std::string GpusOf(const ANode& node, const APod& pod) {
  const Node built = node.Build();
  EXPECT_EQ(FirstObjection(built, pod.Shape()), Reason::kFits);
  const auto choices = DeviceChoices(built, pod.Shape(), DeviceRule::kBestScore);
  if (choices.empty()) return "";
  std::string text;
  const Placement placement = PlacementFor(built, pod.Shape(), choices.front());
  for (const auto& [name, grants] : GrantsByContainer(pod.Request(), placement)) {
    text += text.empty() ? "" : "; ";
    for (const DeviceGrant& grant : grants) text += std::to_string(grant.gpu) + " ";
    text.pop_back();
  }
  return text;
}

TEST(ContainerShares, AreOfTheFullestGpusThatHaveRoom) {
  const APod pair = APod("p").InParts({Of(30'000), Of(30'000)});
  EXPECT_EQ(GpusOf(Cards(3).Holding(APod("a").Share(200, 10'000), {2}), pair), "2; 0");
  EXPECT_EQ(GpusOf(Cards(2), APod("p").InParts({Of(20'000), Of(20'000)})), "0; 0") << "together";
  EXPECT_EQ(GpusOf(Cards(3), APod("p").InParts({Of(5000), Of(6000, 3), Of(7000)})), "0; 0 1 2; 0");
  // The first container would fill GPU 1, and the second finds no room anywhere else.
  const ANode uneven = Cards(2).Holding(APod("a").Share(200, 8000), {1});
  EXPECT_EQ(GpusOf(uneven, APod("p").InParts({Of(25'000), Of(35'000)})), "1; 0");
  EXPECT_EQ(GpusOf(uneven, APod("p").InParts({Of(25'000), Of(31'000), Of(14'000)})), "0; 1; 0");
}

TEST(ContainerShares, GoWhereFewestOfTheirWorkloadAre) {
  const ANode node = Cards(3).Holding(APod("a").Share(100, 1000).Spreads(Spread::kCard, "w"), {0});
  const APod pair = APod("p").InParts({Of(30'000), Of(30'000)});
  EXPECT_EQ(GpusOf(node, pair), "0; 1");
  EXPECT_EQ(GpusOf(node, APod(pair).Spreads(Spread::kCard, "w")), "1; 2");
}

TEST(ContainerShares, OfLinkedGpusAreLinkedForEachContainer) {
  const ANode node = ANode("n").Gpus(8, kMib).Linked(LinksOf(BridgedCards())).Named("hami");
  const LinkAsk linked = {.link = LinkWish::kRequired};
  const APod two = APod("p").InParts({Of(30'000, 2), Of(30'000, 2)}).Links(linked);
  EXPECT_EQ(GpusOf(node, two), "0 1; 2 3");
  const APod four =
      APod("p").InParts({Of(30'000, 2), Of(30'000, 2), Of(30'000, 2), Of(30'000, 2)}).Links(linked);
  EXPECT_EQ(VerdictOf(FirstObjection(node.Build(), four.Shape())), Verdict::kUnresolvable)
      << "4 and 5 have no bridge";
}

TEST(ContainerShares, AreHeldOfEachGpuAndWhereTheyAreUnknownOfSeveral) {
  const APod pair = APod("p").InParts({Of(30'000), Of(30'000)});
  Node node = Cards(2).Build();
  const auto choices = DeviceChoices(node, pair.Shape(), DeviceRule::kTightest);
  node.Put(std::make_shared<const PodRecord>(PodRecord{
      pair.Request(), PlacementFor(node, pair.Shape(), choices.front()), PodState::kBound, {}}));
  for (const GpuFree& gpu : node.gpus()) EXPECT_EQ(gpu.memory_mib, kMib - 30'000);
  EXPECT_EQ(FirstObjection(node, APod("q").ShareByMemory(11'000).Shape()), Reason::kShareBusy);
  const Node unknown = Cards(2).Holding(pair).Build();
  EXPECT_EQ(unknown.unattributed(), 1);
  for (const GpuFree& gpu : unknown.gpus()) EXPECT_EQ(gpu.memory_mib, kMib - 30'000);
}

TEST(ContainerShares, FitAsOftenAsTheyArePlaced) {
  EXPECT_EQ(PodsThatFit(Cards(5).Build(), APod("p").InParts({Of(30'000), Of(30'000)}).Shape()), 2);
}

TEST(ContainerShares, EvictNoMoreThanAnyOfTheTwoWaysNeeds) {
  const auto victims = [](const ANode& node, const APod& pod) {
    const EvictionLimits none = {{}, [](const GangId&) { return std::size_t{0}; }};
    return AddedVictims(node.Build(), APod(pod).Priority(100).Request(), {}, none);
  };
  using Uids = std::vector<std::string>;
  const ANode node = Cards(2)
                         .Holding(APod("a").Share(122, 5000), {0})
                         .Holding(APod("b").Share(122, 5000), {0})
                         .Holding(APod("c").Share(122, 5000), {0})
                         .Holding(APod("d").Share(440, 18'000).Priority(200), {1})
                         .Holding(APod("e").Share(122, 5000), {1});
  EXPECT_EQ(victims(node, APod("p").InParts({Of(20'000), Of(20'000)})), Uids{"uid-e"})
      << "one GPU for both takes a, b and c";
  EXPECT_EQ(victims(node, APod("p").InParts({Of(30'000), Of(20'000)})), (Uids{"uid-c", "uid-e"}));
  EXPECT_EQ(victims(node, APod("p").InParts({Of(30'000), Of(30'000)})), std::nullopt);
}

TEST(ContainerShares, SayHowManyContainersFindRoom) {
  const auto lack = [](const ANode& node, const APod& pod) {
    const Node built = node.Build();
    return LackText(built, pod.Request(), FirstObjection(built, pod.Shape()));
  };
  const APod three = APod("p").InParts({Of(30'000), Of(30'000), Of(30'000)});
  EXPECT_EQ(lack(Cards(2), three),
            "largest free part of a GPU 40960 MiB, needs 30000; room for 2 of its 3 containers");
  EXPECT_EQ(FirstObjection(Cards(2).Build(), three.Shape()), Reason::kShareNeverFits);
  const ANode held = Cards(3).Holding(APod("a").Share(500, 20'000), {0});
  EXPECT_EQ(FirstObjection(held.Build(), three.Shape()), Reason::kShareBusy) << "3 empty ones do";
  EXPECT_EQ(AskText(three.Shape()), "a share of 30000 MiB of a GPU in each of 3 containers");
  EXPECT_EQ(AskText(APod("p").InParts({Of(30'000), Of(5000, 2)}).Shape()),
            "a share of 30000 MiB of a GPU and a share of 5000 MiB of each of 2 GPUs");
}

}  // namespace
}  // namespace berth::test::container_shares_test
