// SPDX-License-Identifier: Apache-2.0
//
// Watts worked out by hand. T4: 10 idle, 70 busy, beside CPUs with 24 cores, 20 idle, 165 busy.
// V100M16: 30 and 300, beside 16 cores, 20 and 185. Nodes of other names have no known CPU.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "bench/baselines/baselines.h"
#include "bench/power/power.h"
#include "test/support/builders.h"

namespace berth::test::node_watts_test {
namespace {

DeviceChoice On(std::uint64_t gpus, int milli = kMilliPerGpu) { return {gpus, milli, 0}; }

TEST(EstimatedWatts, CountsGpusInUseAndCpusInUse) {
  struct Case {
    std::string description;
    ANode node;
    int want;
  };
  // 96 vCPUs are 48 cores on two CPUs.
  for (const Case& c : std::vector<Case>{
           {"idle: 2 * 10 + 2 * 20", ANode("n").Model("T4").Gpus(2).Cpu(96), 60},
           {"a share starts a GPU, one core a CPU: 70 + 10 + 165 + 20",
            ANode("n").Model("T4").Gpus(2).Cpu(96).Holding(APod("a").Share(100).Cpu(2), {1}), 265},
           {"two shares of one GPU are one busy GPU",
            ANode("n")
                .Model("T4")
                .Gpus(2)
                .Cpu(96)
                .Holding(APod("a").Share(100), {1})
                .Holding(APod("b").Share(900), {1}),
            120},
           {"24 cores are one CPU: 2 * 10 + 165 + 20",
            ANode("n").Model("T4").Gpus(2).Cpu(96).Holding(APod("a").Cpu(48)), 205},
           {"one vCPU more starts the other: 2 * 10 + 2 * 165",
            ANode("n").Model("T4").Gpus(2).Cpu(96).Holding(APod("a").Cpu(49)), 350},
           {"CPUs are whole: 52 cores are three", ANode("n").Model("T4").Gpus(2).Cpu(104), 80},
           {"pods bound past Berth take no more CPUs than there are",
            ANode("n").Model("T4").Gpus(2).Cpu(96).Holding(APod("a").Cpu(200)), 350},
           {"of a name that nodes publish the GPUs alone: 70 + 10",
            ANode("n").Model("Tesla-T4").Gpus(2).Holding(APod("a").Whole(1).Cpu(60), {0}), 80}}) {
    EXPECT_EQ(EstimatedWatts(c.node.Build()), c.want) << c.description;
  }
}

TEST(EstimatedWatts, IsUnknownWithoutAFigure) {
  NodeSpec parts = ANode("n").Model("T4").Gpus(2).Spec();
  parts.gpus_are_parts = true;
  EXPECT_EQ(EstimatedWatts(Node(std::make_shared<const NodeSpec>(parts))), std::nullopt);
  EXPECT_EQ(EstimatedWatts(ANode("n").Model("GTX-9").Gpus(2).Build()), std::nullopt);
  EXPECT_EQ(EstimatedWatts(ANode("n").Model("T4").Places(4).Build()), std::nullopt);
  EXPECT_EQ(EstimatedWatts(ANode("n").Build()), std::nullopt) << "no GPU";
}

TEST(AddedWatts, IsTheDifferenceThatThePodMakes) {
  const ANode empty = ANode("n").Model("V100M16").Gpus(4).Cpu(32);  // one CPU
  const APod pod = APod("p").Whole(2).Cpu(4);
  const Node before = empty.Build(), after = ANode(empty).Holding(pod, {0, 2}).Build();
  EXPECT_EQ(AddedWatts(before, pod.Shape(), On(0b101)), 2 * 270 + 165);
  EXPECT_EQ(*EstimatedWatts(after) - *EstimatedWatts(before), 2 * 270 + 165);
  const APod share = APod("q").Share(500).Cpu(4);
  const Node used = ANode(empty).Holding(APod("a").Share(300).Cpu(2), {3}).Build();
  EXPECT_EQ(AddedWatts(used, share.Shape(), On(0b1000, 500)), 0) << "all of it runs already";
  EXPECT_EQ(AddedWatts(used, share.Shape(), On(0b0001, 500)), 270);
  EXPECT_EQ(AddedWatts(ANode("n").Model("GTX-9").Gpus(4).Build(), share.Shape(), On(1, 500)),
            std::nullopt);
}

TEST(OwnAddedWatts, IsThePartOfWhatThePodStartsThatItUses) {
  const Node empty = ANode("n").Model("V100M16").Gpus(4).Cpu(64).Build();  // two CPUs
  // Four vCPUs are 2 of 16 cores: 165 / 8 = 20.6.
  EXPECT_EQ(OwnAddedWatts(empty, APod("p").Share(500).Cpu(4).Shape(), On(1, 500)), 135 + 20);
  EXPECT_EQ(OwnAddedWatts(empty, APod("p").Whole(2).Cpu(64).Shape(), On(3)), 2 * 270 + 2 * 165);
  const Node used = ANode("n")
                        .Model("V100M16")
                        .Gpus(4)
                        .Cpu(64)
                        .Holding(APod("a").Share(300).Cpu(30), {3})
                        .Build();
  EXPECT_EQ(OwnAddedWatts(used, APod("p").Share(500).Cpu(2).Shape(), On(8, 500)), 0);
  // 30 + 34 vCPUs start the second CPU: 165, less than 17 of 16 cores.
  EXPECT_EQ(OwnAddedWatts(used, APod("p").Share(500).Cpu(34).Shape(), On(8, 500)), 165);
  EXPECT_EQ(OwnAddedWatts(ANode("n").Model("GTX-9").Gpus(4).Build(), APod("p").Share(500).Shape(),
                          On(1, 500)),
            std::nullopt);
}

TEST(Power, ScoresEveryChoiceByItself) {
  const Node node = ANode("n").Model("Tesla-T4").Gpus(2).Holding(APod("a").Share(300), {1}).Build();
  const std::vector<DeviceChoice> choices = {On(1, 500), On(2, 500)};
  std::vector<int> scores(2, 1);
  Power().Score(node, APod("p").Share(500).Shape(), choices, scores);
  EXPECT_EQ(scores, (std::vector<int>{-30, 0}));
  EXPECT_EQ(Power().normalization(), Normalization::kBestFirst);
}

TEST(Power, AnUnknownModelIsNoBetterThanAnyKnownOne) {
  const std::vector<DeviceChoice> choices = {On(3)};
  std::vector<int> known(1), unknown(1);
  for (const char* const model : {"Tesla-T4", "NVIDIA-H100-80GB-HBM3"}) {
    const APod pod = APod("p").Whole(2);
    Power().Score(ANode("n").Model(model).Gpus(2).Build(), pod.Shape(), choices, known);
    Power().Score(ANode("n").Model("GTX-9").Gpus(2).Build(), pod.Shape(), choices, unknown);
    EXPECT_LE(unknown, known) << model;
  }
}

TEST(Pwr, CountsTheBestChoiceOfTheNodeWhicheverIsTaken) {
  const Node node = ANode("n").Model("Tesla-T4").Gpus(2).Holding(APod("a").Share(300), {1}).Build();
  std::vector<int> scores(2, 1);
  Pwr().Score(node, APod("p").Share(500).Shape(), std::vector{On(1, 500), On(2, 500)}, scores);
  EXPECT_EQ(scores, (std::vector<int>{0, 0}));
  Pwr().Score(node, APod("p").Whole(1).Shape(), std::vector{On(1)}, std::span(scores).first(1));
  EXPECT_EQ(scores.front(), -60);
  EXPECT_EQ(Pwr().normalization(), Normalization::kMinMax);
}

}  // namespace
}  // namespace berth::test::node_watts_test
