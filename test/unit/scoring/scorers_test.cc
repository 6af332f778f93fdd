// SPDX-License-Identifier: Apache-2.0
//
// The baselines, against values worked out by hand from the formulas in their headers.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/baselines/baselines.h"
#include "scoring/devices/device_picker.h"
#include "scoring/scorers/scorers.h"
#include "test/support/builders.h"

namespace berth::test::scorers_test {
namespace {

struct Case {
  std::string description;
  ANode node;
  APod pod;
  int want;
};

// The score of the first choice that the pod has on the node.
int ScoreOf(const Scorer& scorer, const ANode& node, const APod& pod) {
  const Node built = node.Build();
  const auto choices = DeviceChoices(built, pod.Shape(), DeviceRule::kTightest);
  EXPECT_FALSE(choices.empty());
  std::vector<int> scores(choices.size(), -1);
  scorer.Score(built, pod.Shape(), choices, scores);
  return scores.front();
}

void ExpectScores(const Scorer& scorer, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(ScoreOf(scorer, c.node, c.pod), c.want) << c.description;
  }
}

// raw = 100 * (1 - (CPU left / 128 + GPU left / 8) / 2)
TEST(BestFit, PrefersTheNodeOnWhichLeastIsLeft) {
  EXPECT_EQ(BestFit().normalization(), Normalization::kMinMax);
  ExpectScores(BestFit(),
               {{"60 cores and 3 GPUs left: 1 - (.46875 + .375) / 2 = .578",
                 ANode("n").Cpu(64).Gpus(4), APod("p").Cpu(4).Whole(1), 57},
                {"nothing left", ANode("n").Cpu(4).Gpus(1), APod("p").Cpu(4).Whole(1), 100},
                {"half a GPU left: 1 - .0625 / 2 = .968", ANode("n").Cpu(0).Gpus(1),
                 APod("p").Share(500), 96},
                {"all of the largest node left", ANode("n").Cpu(128).Gpus(8), APod("p"), 0},
                {"a larger node goes below zero: 1 - (2 + 2) / 2", ANode("n").Cpu(256).Gpus(16),
                 APod("p"), -100},
                {"an overcommitted node goes above 100: 1 + 128 / 128 / 2",
                 ANode("n").Cpu(0).Holding(APod("a").Cpu(128)), APod("p"), 150}});
}

// score = 100 * (1 - (free . asked) / 2), vectors (CPU / 128, GPU / 8)
TEST(DotProduct, PrefersTheNodeThatPointsElsewhere) {
  EXPECT_EQ(DotProduct().normalization(), Normalization::kNone);
  ExpectScores(
      DotProduct(),
      {{".5 * .25 + .5 * .25 = .25: 87.5", ANode("n").Cpu(64).Gpus(4), APod("p").Cpu(32).Whole(2),
        87},
       {"a share: .5 * .0625 = .03125: 98.4", ANode("n").Cpu(64).Gpus(4), APod("p").Share(500), 98},
       {"nothing asked", ANode("n").Cpu(64).Gpus(4), APod("p"), 100},
       {"all of the largest node", ANode("n").Cpu(128).Gpus(8), APod("p").Cpu(128).Whole(8), 0},
       {"beyond the largest node it stays at 0", ANode("n").Cpu(256).Gpus(16),
        APod("p").Cpu(256).Whole(16), 0},
       {"an overcommitted node stays at 100",
        ANode("n")
            .Gpus(2)
            .Holding(APod("a").Whole(1), {0})
            .Holding(APod("b").Whole(1), {0})
            .Holding(APod("c").Whole(1), {0}),
        APod("p").Whole(1), 100}});
}

// score = 25 * (8 - free GPUs) / 8 + 75 / 50 / 25 / 0
TEST(GpuClustering, KeepsPodsOfAKindTogether) {
  EXPECT_EQ(GpuClustering().normalization(), Normalization::kNone);
  const ANode eight = ANode("n").Gpus(8);
  const ANode ones = ANode(eight).Holding(APod("a").Whole(1), {0});
  const ANode mixed = ANode(ones).Holding(APod("b").Share(300), {1});
  ExpectScores(
      GpuClustering(),
      {{"only this kind: 25 * 1 / 8 = 3.1", ones, APod("p").Whole(1), 78},
       {"this kind among others: 25 * 1.3 / 8 = 4.06", mixed, APod("p").Whole(1), 54},
       {"shares are a kind", mixed, APod("p").Share(500), 54},
       {"only other kinds", ones, APod("p").Whole(2), 3},
       {"a whole GPU is not a share", ones, APod("p").Share(500), 3},
       {"no GPU pod", eight, APod("p").Whole(1), 25},
       {"no GPU pod, half the size: 25 * 4 / 8 = 12.5", ANode("n").Gpus(4), APod("p").Whole(1), 37},
       {"CPU pods do not count", ANode(eight).Holding(APod("c").Cpu(1)), APod("p").Whole(1), 25},
       {"larger than 8 GPUs", ANode("n").Gpus(16), APod("p").Whole(1), 25},
       {"full but for the rest of a share: 25 * 7.7 / 8 = 24.06",
        ANode("n").Gpus(1).Holding(APod("a").Share(700), {0}), APod("p").Share(300), 99},
       {"overcommitted stays within its tier",
        ANode("n")
            .Gpus(2)
            .Holding(APod("a").Whole(1), {0})
            .Holding(APod("b").Whole(1), {0})
            .Holding(APod("c").Whole(1), {0}),
        APod("p").Whole(1), 100},
       {"no GPU asked", ones, APod("p").Cpu(1), 0}});
}

TEST(GpuPacking, FillsSharedGpusThenUsedNodesThenEmptyOnes) {
  EXPECT_EQ(GpuPacking().normalization(), Normalization::kNone);
  const ANode used = ANode("n").Gpus(8).Holding(APod("a").Share(300), {0});
  ExpectScores(
      GpuPacking(),
      {{"a shared GPU, 70 % free: 100 - 7", used, APod("p").Share(200), 93},
       {"a shared GPU, 99.9 % free counts as 99: 100 - 9",
        ANode("n").Gpus(1).Holding(APod("a").Share(1), {0}), APod("p").Share(200), 91},
       {"a shared GPU, nearly full: 100 - 0", ANode("n").Gpus(1).Holding(APod("a").Share(995), {0}),
        APod("p").Share(5), 100},
       {"one idle GPU of a used node: 50 - 1", used, APod("p").Whole(1), 49},
       {"a share that needs an idle GPU: 50 - 1", used, APod("p").Share(800), 49},
       {"four idle GPUs: 50 - 4", used, APod("p").Whole(4), 46},
       {"twenty idle GPUs: not below 33", ANode("n").Gpus(32).Holding(APod("a").Share(300), {0}),
        APod("p").Whole(20), 33},
       {"an empty node: 33 - 8", ANode("n").Gpus(8), APod("p").Whole(1), 25},
       {"an empty node, whatever is asked: 33 - 8", ANode("n").Gpus(8), APod("p").Whole(8), 25},
       {"an empty node of one: 33 - 1", ANode("n").Gpus(1), APod("p").Share(1), 32},
       {"an empty node of 20: not below 20", ANode("n").Gpus(20), APod("p").Whole(1), 20},
       {"an empty node of 64: not below 64", ANode("n").Gpus(64), APod("p").Whole(1), 64},
       {"no GPU asked", used, APod("p").Cpu(1), 0}});
}

TEST(GpuPacking, ScoresEveryChoiceByItsOwnGpu) {
  const Node node = ANode("n")
                        .Gpus(3)
                        .Holding(APod("a").Share(300), {0})
                        .Holding(APod("b").Share(600), {1})
                        .Build();
  const RequestShape shape = APod("p").Share(200).Shape();
  const auto choices = DeviceChoices(node, shape, DeviceRule::kBestScore);
  ASSERT_EQ(choices.size(), 3U);
  std::vector<int> scores(3);
  GpuPacking().Score(node, shape, choices, scores);
  EXPECT_EQ(scores, (std::vector<int>{93, 96, 49}));
}

// 100 * mean of what is left of each resource
TEST(Spreading, PrefersTheNodeThatStaysEmptiest) {
  EXPECT_EQ(Spreading().normalization(), Normalization::kNone);
  const ANode empty = ANode("n").Cpu(64).Gpus(4);
  ExpectScores(Spreading(),
               {{"3/4 of CPU and GPUs, all memory: 2.5 / 3", empty, APod("p").Cpu(16).Whole(1), 83},
                {"a share: (1 + 1 + 3.5 / 4) / 3", empty, APod("p").Share(500), 95},
                {"no GPU asked: (.75 + 1) / 2, GPUs do not count", empty, APod("p").Cpu(16), 87},
                {"a used node: (.5 + 1 + .5) / 3",
                 ANode("n").Cpu(64).Gpus(4).Holding(APod("a").Cpu(16).Whole(1), {0}),
                 APod("p").Cpu(16).Whole(1), 66},
                {"a node of no CPU: memory alone", ANode("n").Cpu(0), APod("p").MemoryGib(64), 75},
                {"an overcommitted CPU counts as full: (0 + 1) / 2",
                 ANode("n").Cpu(16).Holding(APod("a").Cpu(32)), APod("p"), 50}});
}

// raw = 200 * GPUs * (weights of the traits it has - weight of price * price) / 100
TEST(WorkloadFit, CountsWishesInGpusThatThePodTakes) {
  const auto node = [](const std::vector<std::string>& traits, double price = 0) {
    NodeSpec spec = ANode("n").Gpus(8).Build().spec();
    spec.traits = traits;
    spec.gpu_price = price;
    return Node(std::make_shared<const NodeSpec>(spec));
  };
  const auto score = [](const Node& at, RequestShape shape) {
    shape.nodes.wishes = {{"price", 10}, {"rdma", 40}, {"spot", -60}};
    const auto choices = DeviceChoices(at, shape, DeviceRule::kTightest);
    std::vector<int> scores(choices.size(), -1);
    WorkloadFit().Score(at, shape, choices, scores);
    return scores.front();
  };
  const RequestShape four = APod("p").Whole(4).Shape();
  EXPECT_EQ(score(node({}), four), 0);
  EXPECT_EQ(score(node({"nvme", "rdma"}), four), 320) << "1.6 GPUs";
  EXPECT_EQ(score(node({"spot"}), four), -480);
  EXPECT_EQ(score(node({"rdma", "spot"}), four), -160);
  EXPECT_EQ(score(node({}, 2.5), four), -200) << "a quarter of each GPU";
  EXPECT_EQ(score(node({"rdma"}), APod("p").Share(250).Shape()), 20);
  EXPECT_FALSE(WorkloadFit().Applies(four)) << "that has no wishes";
}

}  // namespace
}  // namespace berth::test::scorers_test
