// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/device_picker.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::device_picker_test {
namespace {

using Choices = std::vector<DeviceChoice>;

constexpr DeviceRule kEveryRule[] = {DeviceRule::kFirst, DeviceRule::kTightest,
                                     DeviceRule::kBestScore, DeviceRule::kRandom};

// GPU i of the node has free[i] thousandths.
Node NodeWithFree(const std::vector<int>& free) {
  ANode node = ANode("n").Gpus(static_cast<int>(free.size()), 0);
  for (std::size_t i = 0; i < free.size(); ++i) {
    if (free[i] < kMilliPerGpu) {
      node.Holding(APod("p" + std::to_string(i)).Share(kMilliPerGpu - free[i]),
                   {static_cast<int>(i)});
    }
  }
  return node.Build();
}

RequestShape Asking(const GpuShare& share) {
  RequestShape shape;
  shape.gpus = share;
  return shape;
}

TEST(ShareOn, FillsInTheAmountThatIsOpen) {
  struct Case {
    std::string description;
    std::int64_t gpu_memory;
    GpuShare share;
    DeviceChoice want;
  };
  for (const Case& c : {Case{"memory follows compute", 16'000, {300, 0}, {2, 300, 4800}},
                        Case{"memory is rounded down", 15'109, {500, 0}, {2, 500, 7554}},
                        Case{"compute follows memory", 16'000, {0, 4000}, {2, 250, 4000}},
                        Case{"compute is rounded down", 16'000, {0, 4001}, {2, 250, 4001}},
                        Case{"one MiB is something", 16'000, {0, 1}, {2, 1, 1}},
                        Case{"all of the memory", 16'000, {0, 16'000}, {2, 1000, 16'000}},
                        Case{"both named", 16'000, {300, 15'000}, {2, 300, 15'000}},
                        Case{"memory by the card", 16'000, {500, 0, 250}, {2, 500, 4000}},
                        Case{"compute follows it", 16'000, {0, 0, 250}, {2, 250, 4000}},
                        Case{"memory not known", 0, {300, 0}, {2, 300, 0}}}) {
    const auto choice = ShareOn(ANode("n").Gpus(2, c.gpu_memory).Build(), 1, Asking(c.share));
    ASSERT_TRUE(choice.has_value()) << c.description;
    EXPECT_EQ(*choice, c.want) << c.description << ": " << choice->milli << " milli, "
                               << choice->memory_mib << " MiB";
  }
}

TEST(ShareOn, IsEmptyWhereTheGpuCanNeverHoldTheShare) {
  EXPECT_FALSE(ShareOn(ANode("n").Gpus(1).Unhealthy(0).Build(), 0, Asking({300, 0})))
      << "not healthy";
  EXPECT_FALSE(ShareOn(ANode("n").Gpus(1, 16'000).Build(), 0, Asking({0, 16'001}))) << "too small";
  EXPECT_FALSE(ShareOn(ANode("n").Gpus(1, 16'000).Build(), 0, Asking({300, 16'001})))
      << "too small";
  EXPECT_FALSE(ShareOn(ANode("n").Gpus(1, 0).Build(), 0, Asking({0, 1}))) << "memory is not known";
  EXPECT_FALSE(ShareOn(ANode("n").Gpus(1, 0).Build(), 0, Asking({500, 0, 250})))
      << "memory is not known";
  EXPECT_FALSE(ShareOn(ANode("n").Gpus(1, 0).Build(), 0, Asking({300, 1})))
      << "memory is not known";
}

TEST(ShareOn, LooksAtTheEmptyGpuNotAtWhatIsFree) {
  const Node node = ANode("n").Gpus(1).Holding(APod("a").Whole(1), {0}).Build();
  const auto choice = ShareOn(node, 0, Asking({300, 0}));
  ASSERT_TRUE(choice.has_value());
  EXPECT_FALSE(HasFree(node, 0, *choice, Asking({300, 0})));
}

TEST(HasFree, NeedsComputeAndMemoryToTheLastBit) {
  const Node node = ANode("n").Gpus(1, 1000).Holding(APod("a").Share(400, 700), {0}).Build();
  EXPECT_TRUE(HasFree(node, 0, {1, 600, 300}, {}));
  EXPECT_FALSE(HasFree(node, 0, {1, 601, 300}, {}));
  EXPECT_FALSE(HasFree(node, 0, {1, 600, 301}, {}));
  EXPECT_TRUE(HasFree(node, 0, {1, 600, 0}, {})) << "memory not asked for";
}

TEST(IsIdle, NeedsAHealthyAndUnusedGpu) {
  const Node node = ANode("n")
                        .Gpus(5, 1000)
                        .Unhealthy(1)
                        .Holding(APod("a").Share(1), {2})
                        .Holding(APod("b").Whole(1), {3})
                        .Holding(APod("c").ShareByMemory(200), {4})
                        .Build();
  ASSERT_EQ(node.gpus()[4].milli, kMilliPerGpu) << "the grant takes memory alone";
  EXPECT_TRUE(IsIdle(node, 0));
  for (const int gpu : {1, 2, 3, 4}) EXPECT_FALSE(IsIdle(node, gpu)) << gpu;
}

TEST(DeviceChoices, OffersOneEmptyChoiceToAPodWithoutGpu) {
  for (const DeviceRule rule : kEveryRule) {
    EXPECT_EQ(DeviceChoices(ANode("n").Build(), APod("p").Cpu(1).Shape(), rule),
              Choices{DeviceChoice{}});
  }
}

TEST(DeviceChoices, GivesWholeGpusTheLowestIdleIndicesUnderEveryRule) {
  const Node node = ANode("n")
                        .Gpus(6, 16'000)
                        .Unhealthy(2)
                        .Holding(APod("a").Share(1), {0})
                        .Holding(APod("b").ShareByMemory(1), {4})
                        .Build();
  for (const DeviceRule rule : kEveryRule) {
    EXPECT_EQ(DeviceChoices(node, APod("p").Whole(1).Shape(), rule),
              (Choices{{0b000010, 1000, 16'000}}));
    EXPECT_EQ(DeviceChoices(node, APod("p").Whole(3).Shape(), rule),
              (Choices{{0b101010, 1000, 16'000}}));
    EXPECT_TRUE(DeviceChoices(node, APod("p").Whole(4).Shape(), rule).empty());
  }
}

TEST(DeviceChoices, FillsTheLargestNodeThereCanBe) {
  const Node node = ANode("n").Gpus(kMaxGpusPerNode).Build();
  const Choices all = DeviceChoices(node, APod("p").Whole(64).Shape(), DeviceRule::kFirst);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].gpus, ~std::uint64_t{0});
  EXPECT_EQ(PlacementFor(node, APod("p").Whole(64).Shape(), all[0]).grants.size(), 64U);
}

struct RuleCase {
  std::string description;
  std::vector<int> free;
  int share;
  DeviceRule rule;
  std::vector<int> want;  // GPUs offered, in order
};

TEST(DeviceChoices, PicksTheGpuOfAShareByItsRule) {
  for (const RuleCase& c : std::vector<RuleCase>{
           {"first: the lowest index", {1000, 300, 500}, 300, DeviceRule::kFirst, {0}},
           {"first: the lowest that fits", {200, 1000, 300}, 300, DeviceRule::kFirst, {1}},
           {"tightest: the least free", {1000, 500, 300}, 300, DeviceRule::kTightest, {2}},
           {"tightest: of those that fit", {1000, 500, 299}, 300, DeviceRule::kTightest, {1}},
           {"tightest: among equals the lowest", {1000, 500, 500}, 1, DeviceRule::kTightest, {1}},
           {"best score: all that differ",
            {1000, 500, 300},
            300,
            DeviceRule::kBestScore,
            {0, 1, 2}},
           {"best score: equal ones once",
            {500, 1000, 500, 1000, 200},
            300,
            DeviceRule::kBestScore,
            {0, 1}},
           {"best score: none that is too full", {299, 100}, 300, DeviceRule::kBestScore, {}},
           {"tightest: nothing fits", {299, 100}, 300, DeviceRule::kTightest, {}},
           {"first: nothing fits", {299, 100}, 300, DeviceRule::kFirst, {}},
           {"random: nothing fits", {299, 100}, 300, DeviceRule::kRandom, {}},
           {"random: the only one", {299, 300}, 300, DeviceRule::kRandom, {1}}}) {
    Choices want;
    for (const int gpu : c.want) want.push_back({std::uint64_t{1} << gpu, c.share, 0});
    EXPECT_EQ(DeviceChoices(NodeWithFree(c.free), APod("p").Share(c.share).Shape(), c.rule), want)
        << c.description;
  }
}

TEST(DeviceChoices, OffersGpusApartThatDifferInMemoryAlone) {
  const RequestShape by_compute = APod("p").Share(500).Shape();
  const Node sizes = ANode("n").Gpus(3, 16'000).GpuMemory(1, 32'000).Build();
  EXPECT_EQ(DeviceChoices(sizes, by_compute, DeviceRule::kBestScore),
            (Choices{{0b001, 500, 8000}, {0b010, 500, 16'000}}));
  const RequestShape by_memory = APod("p").ShareByMemory(8000).Shape();
  EXPECT_EQ(DeviceChoices(sizes, by_memory, DeviceRule::kBestScore),
            (Choices{{0b001, 500, 8000}, {0b010, 250, 8000}}));
  const Node alike_now = ANode("n")
                             .Gpus(2, 16'000)
                             .GpuMemory(1, 24'000)
                             .Holding(APod("a").Share(500, 8000), {0})
                             .Holding(APod("b").Share(500, 16'000), {1})
                             .Build();
  ASSERT_EQ(alike_now.gpus()[0], alike_now.gpus()[1]) << "equally free, of different size";
  EXPECT_EQ(DeviceChoices(alike_now, APod("p").Share(100).Shape(), DeviceRule::kBestScore),
            (Choices{{0b01, 100, 1600}, {0b10, 100, 2400}}));
  const Node used = ANode("n").Gpus(2).Holding(APod("a").ShareByMemory(1000), {1}).Build();
  EXPECT_EQ(DeviceChoices(used, by_memory, DeviceRule::kBestScore).size(), 2U);
}

TEST(DeviceChoices, SkipsGpusWhoseMemoryIsShort) {
  const Node node = ANode("n").Gpus(2, 16'000).Holding(APod("a").Share(100, 12'000), {0}).Build();
  EXPECT_EQ(DeviceChoices(node, APod("p").ShareByMemory(6000).Shape(), DeviceRule::kTightest),
            (Choices{{0b10, 375, 6000}}));
}

TEST(DeviceChoices, DrawsTheSameGpuForTheSameNodeAndOthersForOthers) {
  const RequestShape shape = APod("p").Share(100).Shape();
  std::set<std::uint64_t> drawn;
  for (int i = 0; i < 64; ++i) {
    const ANode node = ANode("n" + std::to_string(i)).Gpus(4);
    const Choices choices = DeviceChoices(node.Build(), shape, DeviceRule::kRandom);
    ASSERT_EQ(choices.size(), 1U);
    EXPECT_EQ(choices, DeviceChoices(node.Build(), shape, DeviceRule::kRandom));
    drawn.insert(choices[0].gpus);
  }
  EXPECT_EQ(drawn, (std::set<std::uint64_t>{1, 2, 4, 8})) << "64 draws reach all four";
}

TEST(PlacementFor, SpellsAChoiceOut) {
  const Node node = ANode("n").Gpus(4, 16'000).Build();
  const APod pod = APod("p").Share(250).Cpu(2).MemoryGib(3);
  EXPECT_EQ(PlacementFor(node, pod.Shape(), {0b0100, 250, 4000}),
            (Placement{"n", 2000, 3 * kGib, {{2, 250, 4000}}}));
  EXPECT_EQ(PlacementFor(node, APod("q").Cpu(1).Shape(), {}), (Placement{"n", 1000, 0, {}}));
}

TEST(PlacementFor, GrantsAWholeGpuTheMemoryThatItHas) {
  const Node node = ANode("n").Gpus(3, 16'000).GpuMemory(2, 32'000).Build();
  const RequestShape two = APod("p").Whole(2).Shape();
  EXPECT_EQ(PlacementFor(node, two, {0b101, 1000, 32'000}).grants,
            (std::vector<DeviceGrant>{{0, 1000, 16'000}, {2, 1000, 32'000}}));
}

TEST(PlacementFor, GrantsAShareOfAllComputeOnlyTheMemoryThatItAskedFor) {
  const Node node = ANode("n").Gpus(1, 16'000).Build();
  EXPECT_EQ(PlacementFor(node, APod("p").Share(1000, 2000).Shape(), {1, 1000, 2000}).grants,
            (std::vector<DeviceGrant>{{0, 1000, 2000}}));
}

// --- GPUs by their UUIDs

std::vector<std::uint64_t> MasksOf(const Choices& choices) {
  std::vector<std::uint64_t> masks;
  for (const DeviceChoice& choice : choices) masks.push_back(choice.gpus);
  return masks;
}

TEST(GpusByUuid, AreTheOnlyOnesThatAPodGets) {
  const Node node = ANode("n").Gpus(4).Named().Build();
  for (const DeviceRule rule : kEveryRule) {
    EXPECT_EQ(MasksOf(DeviceChoices(node, APod("p").Whole(1).OnGpus({"GPU-2"}).Shape(), rule)),
              std::vector<std::uint64_t>{0b0100});
    EXPECT_EQ(MasksOf(DeviceChoices(node, APod("p").Share(300).OnGpus({"GPU-2"}).Shape(), rule)),
              std::vector<std::uint64_t>{0b0100});
  }
  const APod two = APod("p").Whole(2).NotOnGpus({"GPU-0", "GPU-2"});
  EXPECT_EQ(MasksOf(DeviceChoices(node, two.Shape(), DeviceRule::kTightest)),
            std::vector<std::uint64_t>{0b1010});
  EXPECT_EQ(WholeChoicesInTurn(node, 1, two.Shape()), 2);
}

TEST(GpusByUuid, ThatAreBusyAreWaitedFor) {
  const Node node = ANode("n").Gpus(2).Named().Holding(APod("a").Whole(1), {1}).Build();
  for (const APod& pod :
       {APod("p").Whole(1).OnGpus({"GPU-1"}), APod("p").Share(1).OnGpus({"GPU-1"}),
        APod("p").Whole(2).OnGpus({"GPU-0", "GPU-1"})}) {
    EXPECT_TRUE(DeviceChoices(node, pod.Shape(), DeviceRule::kBestScore).empty());
  }
}

TEST(GpusByUuid, AreNoneWhereTheDevicePluginMayPickOthers) {
  const NodeSpec plain = ANode("n").Gpus(2).Named("").Build().spec();
  EXPECT_EQ(AcceptedGpus(plain, APod("p").Whole(1).OnGpus({"GPU-1"}).Shape()), 0U);
  EXPECT_EQ(AcceptedGpus(plain, APod("p").Whole(1).OnGpus({"GPU-0", "GPU-1"}).Shape()), 0b11U)
      << "whichever it picks";
  EXPECT_EQ(AcceptedGpus(plain, APod("p").Whole(1).NotOnGpus({"GPU-7"}).Shape()), 0b11U);
  EXPECT_EQ(AcceptedGpus(plain, APod("p").Share(100).OnGpus({"GPU-1"}).Shape()), 0b10U)
      << "a share's container learns it";
}

TEST(GpusByUuid, AreNoneOfThoseWhoseUuidIsNotKnown) {
  const NodeSpec unknown = ANode("n").Gpus(2).Build().spec();
  EXPECT_EQ(AcceptedGpus(unknown, APod("p").Share(1).OnGpus({"GPU-1"}).Shape()), 0U);
  EXPECT_EQ(AcceptedGpus(unknown, APod("p").Share(1).NotOnGpus({"GPU-1"}).Shape()), 0U)
      << "it may be that one";
  EXPECT_EQ(AcceptedGpus(unknown, APod("p").Share(1).Shape()), 0b11U);
}

// --- Shares of several GPUs

TEST(SharesOfSeveral, AreOfTheFullestGpusThatFit) {
  const Node node = NodeWithFree({1000, 600, 200, 500, 1000});
  const RequestShape two = APod("p").Shares(2, 300).Shape();
  EXPECT_EQ(DeviceChoices(node, two, DeviceRule::kTightest), (Choices{{0b01010, 300, 0}}));
  EXPECT_EQ(DeviceChoices(node, two, DeviceRule::kFirst), (Choices{{0b00011, 300, 0}}));
  EXPECT_EQ(DeviceChoices(node, APod("p").Shares(4, 300).Shape(), DeviceRule::kTightest),
            (Choices{{0b11011, 300, 0}}));
  EXPECT_TRUE(DeviceChoices(node, APod("p").Shares(5, 300).Shape(), DeviceRule::kTightest).empty());
}

TEST(SharesOfSeveral, AreScoredAroundEveryGpuAndOnTheFreest) {
  const Node node = NodeWithFree({1000, 600, 200, 500, 1000});
  EXPECT_EQ(DeviceChoices(node, APod("p").Shares(2, 300).Shape(), DeviceRule::kBestScore),
            (Choices{{0b01001, 300, 0}, {0b01010, 300, 0}, {0b10001, 300, 0}}))
      << "an idle one with the fullest, the two fullest, the two idle ones";
}

TEST(SharesOfSeveral, TakeOfUnequalGpusWhatEachHas) {
  const Node node = ANode("n").Gpus(2, 16'000).GpuMemory(1, 32'000).Build();
  RequestShape shape = APod("p").Shares(2, 0, 8000).Shape();
  const Choices choices = DeviceChoices(node, shape, DeviceRule::kTightest);
  ASSERT_EQ(choices, (Choices{{0b11, 500, 8000}}));
  EXPECT_EQ(PlacementFor(node, shape, choices[0]).grants,
            (std::vector<DeviceGrant>{{0, 500, 8000}, {1, 250, 8000}}));
  shape.gpus = GpuShare{.milli = 300, .memory_milli = 500, .count = 2};
  EXPECT_EQ(PlacementFor(node, shape, {0b11, 300, 16'000}).grants,
            (std::vector<DeviceGrant>{{0, 300, 8000}, {1, 300, 16'000}}));
}

TEST(SharesOfSeveral, KeepOffTheGpusOfOtherReplicas) {
  const APod replica = APod("a").Shares(2, 100).Spreads(Spread::kCard, "web");
  const Node node = ANode("n").Gpus(5, 0).Holding(replica, {0, 1}).Build();
  const RequestShape next = APod("b").Shares(2, 100).Spreads(Spread::kCard, "web").Shape();
  EXPECT_EQ(DeviceChoices(node, next, DeviceRule::kTightest), (Choices{{0b01100, 100, 0}}));
  const RequestShape four = APod("b").Shares(4, 100).Spreads(Spread::kCard, "web").Shape();
  EXPECT_EQ(DeviceChoices(node, four, DeviceRule::kTightest).size(), 1U) << "there are only three";
}

}  // namespace
}  // namespace berth::test::device_picker_test
