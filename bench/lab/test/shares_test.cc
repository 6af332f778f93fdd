// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/lab/shares/share_rules.h"
#include "bench/lab/shares/share_simulation.h"
#include "test/support/builders.h"

namespace berth::replay::shares_test {
namespace {

using std::chrono::seconds;
using test::ANode;
using test::APod;

// "node:gpu,gpu", or "" where it fits nowhere.
std::string ChoiceOf(const std::string& rule, const std::vector<ANode>& nodes, const APod& pod) {
  const auto placement = MakeShareRule(rule).value()->Choose(*test::SnapshotOf(nodes), pod.Shape());
  if (!placement) return "";
  std::string text = placement->node;
  for (const DeviceGrant& grant : placement->grants) {
    text += (text == placement->node ? ":" : ",") + std::to_string(grant.gpu);
  }
  return text;
}

// One pod with 300 and 5,000 MiB; three with 100 and 1,200 MiB each.
std::vector<ANode> TwoCards() {
  return {ANode("n")
              .Gpus(2, 10'000)
              .Holding(APod("a").Share(300, 5000), {0})
              .Holding(APod("b").Share(100, 1200), {1})
              .Holding(APod("c").Share(100, 1200), {1})
              .Holding(APod("d").Share(100, 1200), {1})};
}

// By hand, with the pod: card 0 has 2 of 10 places, 0.40 of the compute and 0.60 of the memory;
// card 1 has 4 places, 0.40 and 0.46. Free memory before: 5,000 and 6,400 MiB.
TEST(ShareRules, ChooseACardAsTheirSourcesDo) {
  const APod pod = APod("p").Share(100, 1000);
  EXPECT_EQ(ChoiceOf("hami-binpack", TwoCards(), pod), "n:1") << "1.26 over 1.20";
  EXPECT_EQ(ChoiceOf("hami-spread", TwoCards(), pod), "n:0");
  EXPECT_EQ(ChoiceOf("gpushare", TwoCards(), pod), "n:0");
  EXPECT_EQ(ChoiceOf("volcano", TwoCards(), pod), "n:1") << "the last one";
  EXPECT_EQ(ChoiceOf("koordinator", TwoCards(), pod), "n:1") << "46 % after 60 %";
  EXPECT_EQ(ChoiceOf("koordinator-most", TwoCards(), pod), "n:0");
}

// By hand: node a has 1 of 10 places, 0.6 of the compute, 0.2 of the memory; b 1 place, 0.1, 0.6.
TEST(ShareRules, ChooseANodeAsTheirSourcesDo) {
  const std::vector<ANode> nodes = {
      ANode("a").Gpus(1, 10'000).Holding(APod("x").Share(600, 2000), {0}),
      ANode("b").Gpus(1, 10'000).Holding(APod("y").Share(100, 6000), {0})};
  const APod pod = APod("p").Share(100, 1000);
  EXPECT_EQ(ChoiceOf("hami-binpack", nodes, pod), "a:0") << "0.9 over 0.8";
  EXPECT_EQ(ChoiceOf("hami-spread", nodes, pod), "b:0");
  EXPECT_EQ(ChoiceOf("gpushare", nodes, pod), "b:0");
  EXPECT_EQ(ChoiceOf("volcano", nodes, pod), "b:0") << "70 over 30";
  EXPECT_EQ(ChoiceOf("koordinator", nodes, pod), "a:0");
  EXPECT_EQ(ChoiceOf("koordinator-most", nodes, pod), "b:0");
}

TEST(ShareRules, KeepToBothDimensionsAndToIdleCards) {
  const std::vector<ANode> nodes = {ANode("n")
                                        .Gpus(4, 10'000)
                                        .Holding(APod("x").Share(900, 1000), {0})
                                        .Holding(APod("y").Share(100, 9000), {3})};
  for (const std::string_view rule : ShareRuleNames()) {
    const std::string name(rule);
    const std::string card = ChoiceOf(name, nodes, APod("p").Share(500, 5000));
    EXPECT_TRUE(card == "n:1" || card == "n:2") << name << " " << card;
    EXPECT_EQ(ChoiceOf(name, nodes, APod("w").Whole(2)), "n:1,2") << name;
    EXPECT_EQ(ChoiceOf(name, nodes, APod("w").Whole(3)), "") << name;
  }
}

ShareWorkload TwoPods() {
  ShareWorkload workload;
  workload.nodes = {ANode("n").Gpus(1, 10'000).Spec()};
  workload.kinds = {APod("a").Share(600, 5000).Shape(), APod("b").Share(600, 1000).Shape()};
  for (const RequestShape& kind : workload.kinds) workload.gpus.push_back(GpusOf(kind, 10'000));
  workload.pods = {{0, seconds(0), seconds(60)}, {1, seconds(10), seconds(60)}};
  workload.horizon = seconds(200);
  return workload;
}

TEST(ShareSimulation, ServesWaitsAndWastesAsByHand) {
  for (const std::string_view policy : SharePolicyNames()) {
    const ShareResult result = SimulateShares(TwoPods(), std::string(policy), 1).value();
    EXPECT_NEAR(result.served_gpu_hours, 2 * 0.6 * 60 / 3600, 1e-9) << policy;
    EXPECT_NEAR(result.served_pct(), 100, 1e-9);
    EXPECT_NEAR(result.used_compute, 0.6 * 120 / 200, 1e-9);
    EXPECT_NEAR(result.used_memory, (0.5 * 60 + 0.1 * 60) / 200, 1e-9);
    EXPECT_NEAR(result.waiting_hours, 50.0 / 3600, 1e-9) << "the second has no compute until 60";
    EXPECT_NEAR(result.idle_compute_waiting, 0.4, 1e-9);
    EXPECT_NEAR(result.idle_memory_waiting, 0.5, 1e-9);
    EXPECT_EQ(result.waits.back().arrived, 2);
    EXPECT_NEAR(result.waits.back().p99_s, 50, 1e-9);
    EXPECT_EQ(result.waits.back().never, 0);
  }
}

TEST(ShareSimulation, CountsAPodThatNeverStarts) {
  ShareWorkload workload = TwoPods();
  workload.horizon = seconds(40);
  const ShareResult result = SimulateShares(workload, "berth", 1).value();
  EXPECT_EQ(result.waits.back().never, 1);
  EXPECT_NEAR(result.waits.back().p99_s, 30, 1e-9);
  EXPECT_NEAR(result.served_pct(), 100.0 * 40 / 70, 1e-9);
}

TEST(ShareSimulation, GivesTheSameForTheSameStreamAndFluidTheMost) {
  ShareOptions options;
  options.hours = 3;
  options.fleet = {{4, 4, 81'920}};
  const ShareWorkload workload = DrawShareWorkload("both", options).value();
  const double fluid = SimulateShares(workload, "fluid", 1).value().served_gpu_hours;
  for (const std::string_view policy : SharePolicyNames()) {
    const ShareResult once = SimulateShares(workload, std::string(policy), 1).value();
    const ShareResult twice = SimulateShares(workload, std::string(policy), 1).value();
    EXPECT_EQ(once.served_gpu_hours, twice.served_gpu_hours) << policy;
    EXPECT_EQ(once.waits.back().mean_s, twice.waits.back().mean_s) << policy;
    EXPECT_EQ(once.demand_gpu_hours, twice.demand_gpu_hours) << policy;
    EXPECT_LE(once.served_gpu_hours, fluid) << policy;
    EXPECT_GT(once.served_gpu_hours, 0.5 * once.demand_gpu_hours) << policy;
  }
}

TEST(ShareWorkload, CountsTheLargerPart) {
  EXPECT_EQ(GpusOf(APod("p").Share(300, 4000).Shape(), 16'000), 0.3);
  EXPECT_EQ(GpusOf(APod("p").Share(100, 4000).Shape(), 16'000), 0.25);
  EXPECT_EQ(GpusOf(APod("p").Whole(4).Shape(), 16'000), 4);
}

TEST(ShareWorkload, IsTheSameForTheSameSeedAndAsksForAsMuchAsThereIs) {
  for (const std::string_view mix : ShareMixNames()) {
    ShareOptions options;
    options.hours = 200;
    const ShareWorkload workload = DrawShareWorkload(std::string(mix), options).value();
    const ShareWorkload again = DrawShareWorkload(std::string(mix), options).value();
    ASSERT_EQ(workload.pods.size(), again.pods.size());
    EXPECT_EQ(workload.kinds, again.kinds);
    double compute = 0, memory = 0;  // GPU-hours asked for
    for (std::size_t i = workload.primed; i < workload.pods.size(); ++i) {
      const double ran_hours = static_cast<double>(workload.pods[i].runs.count()) / 3'600'000;
      const RequestShape& shape = workload.kinds[workload.pods[i].kind];
      const auto* const share = std::get_if<GpuShare>(&shape.gpus);
      compute += ran_hours * shape.gpu_count() * shape.milli_per_gpu() / kMilliPerGpu;
      memory += ran_hours * (share == nullptr ? shape.gpu_count()
                                              : static_cast<double>(share->memory_mib) / 81'920);
    }
    EXPECT_NEAR(std::max(compute, memory) / (128 * 200), 1, 0.05) << mix;
  }
}

TEST(ShareWorkload, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(DrawShareWorkload("none", {}).error().message.find("notebooks"), std::string::npos);
  EXPECT_FALSE(MakeShareRule("best"));
  EXPECT_FALSE(SimulateShares(TwoPods(), "best", 1));
  EXPECT_EQ(ParseShareFleet("2x8x1000,1x4x500").value().size(), 2U);
  for (const char* text : {"", "2x8", "0x8x1000", "2x65x1000", "2x8x1000,", "2x8x1000x"}) {
    EXPECT_FALSE(ParseShareFleet(text)) << text;
  }
}

}  // namespace
}  // namespace berth::replay::shares_test
