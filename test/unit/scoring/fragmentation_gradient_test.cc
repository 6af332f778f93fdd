// SPDX-License-Identifier: Apache-2.0
//
// The metric and its gradient, against values worked out by hand. The published curves are compared
// in test/parity.
#include "scoring/scorers/scorers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scoring/devices/device_picker.h"
#include "test/support/builders.h"

namespace berth::test::fragmentation_gradient_test {
namespace {

// Class A: half a GPU and 4 cores, 60 %. Class B: two whole GPUs and 8 cores, 40 %.
RequestMix TwoClasses() {
  return {{APod("a").Share(500).Cpu(4).Shape(), 0.6}, {APod("b").Whole(2).Cpu(8).Shape(), 0.4}};
}

struct FragmentCase {
  std::string description;
  ANode node;
  double want;  // thousandths of a GPU
};

TEST(FragmentationGradient, CountsWhatEachClassCannotUse) {
  const FragmentationGradient scorer(TwoClasses());
  for (const FragmentCase& c : std::vector<FragmentCase>{
           {"empty: both fit and use all of it", ANode("n").Gpus(2), 0},
           {"no GPU: nothing to waste", ANode("n"), 0},
           {".3 and 1 free: A leaves .3, B does not fit: .6 * 300 + .4 * 1300",
            ANode("n").Gpus(2).Holding(APod("x").Share(700), {0}), 700},
           {".5 and 1 free: A leaves nothing, B does not fit: .4 * 1500",
            ANode("n").Gpus(2).Holding(APod("x").Share(500), {0}), 600},
           {".4 and .4 free: neither fits: all of it",
            ANode("n")
                .Gpus(2)
                .Holding(APod("x").Share(600), {0})
                .Holding(APod("y").Share(600), {1}),
            800},
           {"one GPU: B lacks GPUs: .4 * 1000", ANode("n").Gpus(1), 400},
           {"6 cores: B lacks CPU: .4 * 2000", ANode("n").Gpus(2).Cpu(6), 800},
           {"2 cores: both lack CPU: all of it", ANode("n").Gpus(2).Cpu(2), 2000},
           {"one of three out of order does not count", ANode("n").Gpus(3).Unhealthy(1), 0},
           {"one of two out of order: .4 * 1000", ANode("n").Gpus(2).Unhealthy(0), 400},
           {"overcommitted counts as nothing free: .4 * 1000",
            ANode("n").Gpus(2).Holding(APod("x").Whole(1), {0}).Holding(APod("y").Whole(1), {0}),
            400}}) {
    EXPECT_NEAR(scorer.FragmentMilli(c.node.Build()), c.want, 1e-9) << c.description;
  }
}

TEST(FragmentationGradient, CountsAllAsWasteForClassesThatCannotUseTheNode) {
  const RequestMix mix = {{APod("cpu").Cpu(1).Shape(), 0.1},
                          {APod("a100").Whole(1).Models({"A100"}).Shape(), 0.2},
                          {APod("either").Whole(1).Models({"A100", "T4"}).Shape(), 0.3},
                          {APod("any").Whole(1).Shape(), 0.4}};
  const FragmentationGradient scorer(mix);
  const auto fragment = [&scorer](const std::string& model) {
    return scorer.FragmentMilli(ANode("n").Gpus(2).Model(model).Build());
  };
  EXPECT_NEAR(fragment("A100"), 200, 1e-9) << ".1 * 2000";
  EXPECT_NEAR(fragment("T4"), 600, 1e-9) << "(.1 + .2) * 2000";
  EXPECT_NEAR(fragment("P4"), 1200, 1e-9) << "(.1 + .2 + .3) * 2000";
  EXPECT_NEAR(fragment(""), 1200, 1e-9) << "a model that is not published";
}

struct GradientCase {
  std::string description;
  ANode node;
  APod pod;
  std::vector<int> want;  // per choice, by ascending GPU
};

TEST(FragmentationGradient, ScoresTheSigmoidOfWhatIsGained) {
  const FragmentationGradient scorer(TwoClasses());
  const ANode part = ANode("n").Gpus(2).Holding(APod("x").Share(700), {0});
  for (const GradientCase& c : std::vector<GradientCase>{
           {"0 -> .4 * 1700: sigmoid(-.68) = .336", ANode("n").Gpus(2), APod("p").Share(300), {33}},
           {"0 -> .6 * 400 + .4 * 1400: sigmoid(-.8) = .310",
            ANode("n").Gpus(2),
            APod("p").Share(600),
            {31}},
           {"700 -> .4 * 1000: sigmoid(.3) = .574; 700 -> .6 * 300 + .4 * 1000: sigmoid(.12) = "
            ".529",
            part,
            APod("p").Share(300),
            {57, 52}},
           {"the fuller GPU becomes the emptier: .4 * 1500 -> .6 * 200 + .4 * 700: sigmoid(.2) = "
            ".549",
            ANode("n").Gpus(2).Holding(APod("x").Share(500), {0}),
            APod("p").Share(800),
            {54}},
           {"0 -> 0: sigmoid(0)", ANode("n").Gpus(2), APod("p").Whole(2), {50}},
           {"0 -> .4 * 1000: sigmoid(-.4) = .401", ANode("n").Gpus(2), APod("p").Whole(1), {40}},
           {"its CPU counts too: 0 -> .4 * 2000: sigmoid(-.8) = .310",
            ANode("n").Gpus(2).Cpu(10),
            APod("p").Cpu(3),
            {31}},
           {"nothing asked, nothing changed", part, APod("p"), {50}}}) {
    const Node node = c.node.Build();
    const auto choices = DeviceChoices(node, c.pod.Shape(), DeviceRule::kBestScore);
    ASSERT_EQ(choices.size(), c.want.size()) << c.description;
    std::vector<int> scores(choices.size(), -1);
    scorer.Score(node, c.pod.Shape(), choices, scores);
    EXPECT_EQ(scores, c.want) << c.description;
  }
}

TEST(FragmentationGradient, StaysWithin0And100OnTheLargestNode) {
  const FragmentationGradient scorer({{APod("all").Whole(64).Shape(), 1.0}});
  const Node node = ANode("n").Gpus(64).Build();
  const std::vector<DeviceChoice> whole = {{~std::uint64_t{0}, 1000, 0}};
  const std::vector<DeviceChoice> one = {{1, 1000, 0}};
  int score = -1;
  scorer.Score(node, APod("p").Whole(64).Shape(), whole, std::span(&score, 1));
  EXPECT_EQ(score, 50);
  scorer.Score(node, APod("p").Whole(1).Shape(), one, std::span(&score, 1));
  EXPECT_EQ(score, 0) << "63 GPUs are wasted at once";
  const Node rest = ANode("n").Gpus(64).Holding(APod("x").Share(1), {0}).Build();
  std::vector<DeviceChoice> others =
      DeviceChoices(rest, APod("p").Whole(63).Shape(), DeviceRule::kFirst);
  ASSERT_EQ(others.size(), 1U);
  scorer.Score(rest, APod("p").Whole(63).Shape(), others, std::span(&score, 1));
  EXPECT_EQ(score, 100) << "63 GPUs that nobody could use are used";
}

TEST(FragmentationGradient, IsIndifferentWithoutAMix) {
  const FragmentationGradient scorer({});
  const Node node = ANode("n").Gpus(2).Build();
  EXPECT_EQ(scorer.FragmentMilli(node), 0);
  int score = -1;
  const std::vector<DeviceChoice> choice = {{1, 300, 0}};
  scorer.Score(node, APod("p").Share(300).Shape(), choice, std::span(&score, 1));
  EXPECT_EQ(score, 50);
}

}  // namespace
}  // namespace berth::test::fragmentation_gradient_test
