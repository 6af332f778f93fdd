// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/gang/gang_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/replay/gang/gang_simulation.h"
#include "cluster/state/snapshot.h"
#include "test/support/builders.h"

namespace berth::replay::gang_rules_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using test::ANode;
using test::APod;

ANode In(const std::string& name, const std::string& rack, int gpus = 8) {
  return ANode(name).Gpus(gpus).Labelled({{"block", "b"}, {"rack", rack}});
}

GangJob AJob(const std::vector<GangRole>& roles, int at_s = 0, int runs_s = 60) {
  GangJob job;
  job.roles = roles;
  job.at = seconds(at_s);
  job.runs = seconds(runs_s);
  return job;
}
GangRole Of(const APod& pod, int count) { return {pod.Shape(), count}; }

class GangRulesTest : public testing::Test {
 protected:
  void On(const std::vector<ANode>& nodes) {
    workload_.nodes.clear();
    for (const ANode& node : nodes) workload_.nodes.push_back(node.Spec());
    snapshot_ = test::SnapshotOf(nodes);
  }
  std::unique_ptr<GangRule> Rule(const std::string& name) {
    return MakeGangRule(name, *snapshot_).value();
  }
  GangAttempt Try(const std::string& name, const GangJob& job) {
    std::vector<PodRequest> pods;
    for (const GangRole& role : job.roles) {
      for (int i = 0; i < role.count; ++i) {
        pods.push_back(APod("m" + std::to_string(pods.size())).Request());
        pods.back().shape = role.shape;
      }
    }
    const DomainTree tree = DomainsOf(*snapshot_, GangLevels());
    return Rule(name)->Try(snapshot_, tree, job, pods, std::vector<char>(pods.size(), 0), 0);
  }
  static std::string NodesOf(const GangAttempt& attempt) {
    std::vector<std::string> names;
    for (const auto& place : attempt.places) names.push_back(place.placement.node);
    std::ranges::sort(names);
    std::string text;
    for (const std::string& name : names) text += name;
    return text;
  }
  // Jobs of other kinds have other numbers.
  GangResult Simulate(const std::string& name, std::vector<GangJob> jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].kind = i;
    workload_.jobs = std::move(jobs);
    workload_.horizon = hours(1);
    return SimulateGangs(workload_, *Rule(name)).value();
  }

  std::shared_ptr<const Snapshot> snapshot_;
  GangWorkload workload_;
};

TEST_F(GangRulesTest, ARequiredRackIsKeptByEveryRule) {
  On({In("a", "r1"), In("b", "r1"), In("c", "r2"), In("d", "r2"), In("e", "r2")});
  GangJob job = AJob({Of(APod("w").Whole(8), 2)});
  job.domain.required = 1;
  for (const std::string_view rule : GangRuleNames()) {
    const std::string nodes = NodesOf(Try(std::string(rule), job));
    EXPECT_TRUE(nodes == "ab" || nodes == "cd" || nodes == "ce" || nodes == "de")
        << rule << ": " << nodes;
  }
}

TEST_F(GangRulesTest, OnlyGreedyHoldsAndOnlyWhereATenthIsMissing) {
  On({In("a", "r1"), In("b", "r1")});
  const GangJob far = AJob({Of(APod("w").Whole(8), 4)});
  const GangAttempt none = Try("greedy", far);
  EXPECT_EQ(none.hold, Millis(0));
  EXPECT_EQ(none.back_off, seconds(1));
  const GangJob close = AJob({Of(APod("w").Whole(1), 17)});
  EXPECT_EQ(Try("greedy", close).hold, seconds(60));
  EXPECT_EQ(Try("greedy", close).places.size(), 16U);
  for (const std::string rule : {"berth", "volcano-like", "kueue-tas-like"}) {
    EXPECT_TRUE(Try(rule, close).places.empty()) << rule;
  }
}

TEST_F(GangRulesTest, GreedyTakesTheEmptiestRackAndBerthTheTightest) {
  On({In("a", "r1"), In("b", "r1"), In("c", "r1"), In("d", "r2").Cpu(32), In("e", "r2").Cpu(32)});
  GangJob job = AJob({Of(APod("w").Whole(8).Cpu(1), 2)});
  job.domain.required = 1;
  EXPECT_EQ(NodesOf(Try("berth", job)), "de");
  EXPECT_EQ(NodesOf(Try("greedy", job)), "ab");
}

TEST_F(GangRulesTest, CountsBySumsDoNotSeeThatNoGpuHasTheShare) {
  On({In("a", "r1", 2)});
  const GangJob job = AJob({Of(APod("w").Share(600), 3)});
  const GangAttempt counted = Try("kueue-tas-like", job);  // 2000 / 600 = 3
  EXPECT_EQ(counted.places.size(), 2U);
  EXPECT_EQ(counted.hold, seconds(300));
  EXPECT_TRUE(Try("berth", job).places.empty());
  EXPECT_TRUE(Try("volcano-like", job).places.empty());
}

TEST_F(GangRulesTest, RolesThatGreedOrderCannotPlaceAreFoundByThePlan) {
  On({In("a", "r1", 4), In("b", "r1", 3), In("c", "r1", 3)});
  const GangJob job = AJob({Of(APod("w").Whole(2), 2), Of(APod("v").Whole(3), 2)});
  EXPECT_EQ(NodesOf(Try("berth", job)), "aabc");
  EXPECT_TRUE(Try("volcano-like", job).places.empty());
}

TEST_F(GangRulesTest, AJobThatWaitsStartsWhenTheOneBeforeItEnds) {
  On({In("a", "r1"), In("b", "r1")});
  for (const std::string_view rule : GangRuleNames()) {
    const GangResult result =
        Simulate(std::string(rule), {AJob({Of(APod("w").Whole(8), 2)}, 0, 100),
                                     AJob({Of(APod("v").Whole(8).Cpu(1), 2)}, 40, 50)});
    EXPECT_EQ(result.sizes[1].arrived, 2) << rule;
    EXPECT_EQ(result.sizes[1].placed, 2) << rule;
    EXPECT_EQ(result.sizes[1].wait_p99_s, 60) << rule;
    EXPECT_NEAR(result.served_gpu_hours, 16.0 * 150 / 3600, 1e-9) << rule;
    EXPECT_EQ(result.held_gpu_hours, 0) << rule;
    EXPECT_EQ(result.cross_pairs, 0) << rule;
  }
}

TEST_F(GangRulesTest, AVainHoldIsCountedAndReleased) {
  On({In("a", "r1")});
  // 16 of 17 fit: they hold all GPUs for a minute, then the single finds them.
  const GangResult result = Simulate("greedy", {AJob({Of(APod("w").Share(500), 17)}, 0, 100),
                                                AJob({Of(APod("v").Whole(8), 1)}, 5, 10)});
  EXPECT_EQ(result.sizes[0].wait_p99_s, 55);
  EXPECT_EQ(result.sizes[2].placed, 0);
  EXPECT_GE(result.held_gpu_hours, 8.0 * 60 / 3600);
  const GangResult berth = Simulate("berth", {AJob({Of(APod("w").Share(500), 17)}, 0, 100),
                                              AJob({Of(APod("v").Whole(8), 1)}, 5, 10)});
  EXPECT_EQ(berth.sizes[0].wait_p99_s, 0);
  EXPECT_EQ(berth.held_gpu_hours, 0);
}

TEST_F(GangRulesTest, PairsInTwoRacksAreCounted) {
  On({In("a", "r1"), In("b", "r2")});
  const GangResult result = Simulate("berth", {AJob({Of(APod("w").Whole(8), 2)})});
  EXPECT_EQ(result.pairs, 1);
  EXPECT_EQ(result.cross_pairs, 1);
}

TEST_F(GangRulesTest, TheSameSeedGivesTheSameWorkloadWithThePublishedShares) {
  GangOptions options;
  options.hours = 400;
  const GangWorkload one = DrawGangWorkload("published", options).value();
  const GangWorkload other = DrawGangWorkload("published", options).value();
  ASSERT_EQ(one.jobs.size(), other.jobs.size());
  EXPECT_EQ(one.jobs.back().at, other.jobs.back().at);
  EXPECT_EQ(one.jobs.back().runs, other.jobs.back().runs);
  const auto part = [&](int least, int most) {
    const auto count = std::ranges::count_if(one.jobs, [&](const GangJob& job) {
      return job.members() >= least && job.members() <= most;
    });
    return 100.0 * static_cast<double>(count) / static_cast<double>(one.jobs.size());
  };
  EXPECT_NEAR(part(1, 1), 91.6, 0.5);
  EXPECT_NEAR(part(2, 8), 6.54, 0.4);
  EXPECT_NEAR(part(9, 32), 1.54, 0.2);
  EXPECT_NEAR(part(33, 128), 0.31, 0.1);
  const auto wrong = DrawGangWorkload("none", options);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("want some of published racks roles shares, got \"none\""),
            std::string::npos);
}

}  // namespace
}  // namespace berth::replay::gang_rules_test
