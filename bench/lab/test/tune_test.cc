// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/lab/tune/knobs.h"
#include "bench/lab/tune/search.h"
#include "bench/lab/tune/tuning.h"

namespace berth::replay::tune_test {
namespace {

Point Unchanged(const Point& point) { return point; }

// Highest at (0.2, 0.9); case c adds c, and counts what is asked.
struct Hill {
  Evaluate function = [this](const Evaluations& wanted) -> Result<std::vector<double>> {
    std::vector<double> values;
    for (const auto& [point, number] : wanted) {
      asked.emplace_back(point, number);
      values.push_back(-std::pow(point[0] - 0.2, 2) - std::pow(point[1] - 0.9, 2) +
                       static_cast<double>(number));
    }
    return values;
  };
  Evaluations asked;
};

TEST(Knob, TurnsCoordinatesIntoValues) {
  const Knob linear{"l", 2, 6, Scale::kLinear, false, {}, {}};
  EXPECT_DOUBLE_EQ(linear.ValueAt(0.25), 3);
  EXPECT_DOUBLE_EQ(linear.CoordinateOf(3), 0.25);
  EXPECT_DOUBLE_EQ(linear.ValueAt(7), 6) << "cut to the range";
  EXPECT_DOUBLE_EQ(linear.CoordinateOf(-1), 0);
  const Knob log{"w", 1, 1000, Scale::kLog, true, {}, {}};
  EXPECT_DOUBLE_EQ(log.ValueAt(1.0 / 3), 10);
  EXPECT_DOUBLE_EQ(log.ValueAt(0.5), 32) << "31.6 as a whole number";
  EXPECT_NEAR(log.CoordinateOf(100), 2.0 / 3, 1e-12);
}

TEST(KnobsOf, HoldsTheFirstWeightAndTurnsTheOthers) {
  const TunedPolicy policy{{"p", {{"best-fit", 100}, {"gpu-packing", 10}}}};
  const std::vector<Knob> knobs = KnobsOf(policy).value();
  ASSERT_EQ(knobs.size(), 1U);
  EXPECT_EQ(knobs[0].name, "scorers[gpu-packing].weight");
  EXPECT_NEAR(PointOf(policy, knobs)[0], 1.0 / 3, 1e-12);
  const TunedPolicy turned = At(policy, knobs, {1.0});
  EXPECT_EQ(turned.profile.scorers[0].weight, 100);
  EXPECT_EQ(turned.profile.scorers[1].weight, 1000);
}

TEST(KnobsOf, TurnsTheParametersOfExpectedWasteWhereTheProfileHasIt) {
  TunedPolicy policy{{"p", {{"best-fit", 100}, {"expected-waste", 100}}}};
  const std::vector<Knob> knobs = KnobsOf(policy).value();
  std::set<std::string> names;
  for (const Knob& knob : knobs) names.insert(knob.name);
  EXPECT_EQ(names.size(), knobs.size());
  EXPECT_TRUE(names.contains("scorers[expected-waste].weight"));
  EXPECT_TRUE(names.contains("expectedWaste.modelPriceGpus"));
  const Point defaults = PointOf(policy, knobs);
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    EXPECT_DOUBLE_EQ(knobs[i].ValueAt(defaults[i]), knobs[i].get(policy)) << knobs[i].name;
    Point other = defaults;
    other[i] = defaults[i] < 0.5 ? 1 : 0;
    const TunedPolicy turned = At(policy, knobs, other);
    EXPECT_EQ(turned.profile == policy.profile, knobs[i].name.starts_with("expectedWaste."));
    EXPECT_EQ(turned.waste == policy.waste, !knobs[i].name.starts_with("expectedWaste."));
  }
}

TEST(KnobsOf, NeedsSomethingToTurn) {
  EXPECT_EQ(KnobsOf({{"alone", {{"best-fit", 1}}}}).error().message,
            "profile alone: want two scorers or a scorer with parameters, got nothing to search");
}

TEST(LatinHypercube, HasOnePointInEverySliceOfEveryAxis) {
  const std::vector<Point> cube = LatinHypercube(3, 16, 5);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    std::set<int> slices;
    for (const Point& point : cube) slices.insert(static_cast<int>(point[axis] * 16));
    EXPECT_EQ(slices.size(), 16U);
    EXPECT_EQ(*slices.begin(), 0);
    EXPECT_EQ(*slices.rbegin(), 15);
  }
  EXPECT_EQ(cube, LatinHypercube(3, 16, 5));
  EXPECT_NE(cube, LatinHypercube(3, 16, 6));
}

TEST(Search, ClimbsTheHill) {
  Hill hill;
  const auto found = Search({0.5, 0.5}, {4, 400, 1}, Unchanged, hill.function);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NEAR(found->best[0], 0.2, 0.02);
  EXPECT_NEAR(found->best[1], 0.9, 0.02);
  EXPECT_NEAR(found->best_value, 1.5, 0.001) << "the mean of cases 0 to 3 at the top";
  EXPECT_NEAR(found->start_value, 1.5 - 0.25, 1e-12);
}

TEST(Search, SpendsNoMoreThanItsBudgetAndNothingTwice) {
  for (const std::size_t cases : {1U, 3U, 7U}) {
    for (std::size_t budget = 2 * cases; budget < 60; ++budget) {
      Hill hill;
      const auto found = Search({0.5, 0.5}, {cases, budget, budget}, Unchanged, hill.function);
      ASSERT_TRUE(found.has_value()) << found.error().message;
      EXPECT_LE(hill.asked.size(), budget);
      EXPECT_EQ(found->evaluations, hill.asked.size());
      EXPECT_GE(found->best_value, found->start_value);
      std::ranges::sort(hill.asked);
      EXPECT_EQ(std::ranges::adjacent_find(hill.asked), hill.asked.end());
    }
  }
}

TEST(Search, IsAFunctionOfItsSeed) {
  Hill first, again, other;
  const auto run = [](Hill& hill, std::uint64_t seed) {
    return Search({0.5, 0.5}, {3, 50, seed}, Unchanged, hill.function).value().best;
  };
  EXPECT_EQ(run(first, 1), run(again, 1));
  EXPECT_EQ(first.asked, again.asked);
  run(other, 2);
  EXPECT_NE(first.asked, other.asked);
}

TEST(Search, StopsWhereAllStepsMeanTheSame) {
  Hill hill;
  const auto halves = [](const Point& point) {
    Point rounded = point;
    for (double& at : rounded) at = std::round(at * 2) / 2;
    return rounded;
  };
  const auto found = Search({0.5, 0.5}, {1, 1000, 1}, halves, hill.function);
  EXPECT_LE(hill.asked.size(), 9U) << "there are nine points";
  EXPECT_EQ(found->best[1], 1.0);
}

TEST(Search, RefusesABudgetThatComparesNothing) {
  Hill hill;
  EXPECT_EQ(Search({0.5, 0.5}, {4, 7, 1}, Unchanged, hill.function).error().message,
            "budget: want at least twice the cases (4 pairs of trace and seed), got 7");
}

TEST(Search, EndsWithTheErrorOfAnEvaluation) {
  const auto found = Search({0.5}, {1, 10, 1}, Unchanged, [](const Evaluations&) {
    return Result<std::vector<double>>(Fail(Errc::kUnavailable, "gone"));
  });
  EXPECT_EQ(found.error().message, "gone");
}

TEST(Tune, FindsWeightsOnTheRealEngineWhateverTheThreads) {
  Trace trace{GenerateWorkload(4, 300), 0};
  trace.workload.nodes.resize(15);
  const TunedPolicy start{
      {"tuned", {{"spreading", 100}, {"best-fit", 100}}, DeviceRule::kTightest, TieRule::kEqual}};
  TuningOptions options;
  options.budget = 20;
  const TuningResult one = Tune(start, {trace}, options, {}).value();
  options.threads = 3;
  const TuningResult three = Tune(start, {trace}, options, {}).value();
  EXPECT_EQ(TuningText(one, start), TuningText(three, start));
  EXPECT_LE(one.evaluations, 20U);
  EXPECT_GE(one.training.best, one.training.start);
  EXPECT_GT(one.holdout_baseline, 50);
  options.first_holdout_seed = options.first_seed + 1;
  EXPECT_EQ(Tune(start, {trace}, options, {}).error().message,
            "first-holdout-seed: want held-out seeds that are not searched on, got 1001");
}

TEST(Tune, WithDeparturesTheValueIsWhatWasServed) {
  Trace trace{GenerateWorkload(4, 300), 0};
  trace.workload.nodes.resize(15);
  const TunedPolicy start{{"tuned", {{"expected-waste", 100}}}};
  TuningOptions options;
  options.budget = 6;
  options.departures.on = true;
  options.departures.load = 1.0;
  options.departures.hours = 1;
  const TuningResult result = Tune(start, {trace}, options, {}).value();
  EXPECT_EQ(result.value, "GPU-hours served, %");
  EXPECT_GT(result.holdout.start, 30);
  EXPECT_LE(result.holdout.start, 100);
  EXPECT_GT(result.holdout_baseline, 30);
  const auto json = TuningJson(result, start);
  EXPECT_EQ(json["knobs"].size(), 11U);
  EXPECT_EQ(json["value"], result.value);
}

}  // namespace
}  // namespace berth::replay::tune_test
