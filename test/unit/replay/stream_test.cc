// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace berth::replay::stream_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

const std::vector<TraceNode> kHundredGpus(25, TraceNode{"n", 1000, 1000, 4, "T4"});
const std::vector<TraceTask> kTasks = {
    {"half", 1, 1, 1, 500, ""}, {"none", 1, 1, 0, 0, ""}, {"two", 1, 1, 2, 1000, ""}};

std::vector<double> SortedSeconds(const std::vector<Millis>& times) {
  std::vector<double> sorted;
  for (const Millis time : times) sorted.push_back(static_cast<double>(time.count()) / 1000);
  std::ranges::sort(sorted);
  return sorted;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::vector<Millis> Lifetimes1000(Lifetimes kind, bool residual, int count = 100'000) {
  const LifetimeLaw law(kind, seconds(1000));
  Random random(7);
  std::vector<Millis> drawn;
  for (int i = 0; i < count; ++i) {
    drawn.push_back(residual ? law.DrawResidual(random) : law.Draw(random));
  }
  return drawn;
}

bool Same(const Stream& a, const Stream& b) {
  return a.horizon == b.horizon && a.primed == b.primed &&
         std::ranges::equal(a.arrivals, b.arrivals, [](const Arrival& x, const Arrival& y) {
           return x.task == y.task && x.at == y.at && x.runs == y.runs;
         });
}

TEST(LifetimeLaw, LogNormalHasTheMeanTheMedianAndTheTailThatItSays) {
  const std::vector<double> drawn = SortedSeconds(Lifetimes1000(Lifetimes::kLogNormal, false));
  EXPECT_NEAR(Mean(drawn), 1000, 20);
  EXPECT_NEAR(drawn[drawn.size() / 2], 1000 * std::exp(-0.5), 15);
  EXPECT_NEAR(drawn[drawn.size() * 99 / 100], 1000 * std::exp(2.326 - 0.5), 250);
}

TEST(LifetimeLaw, ParetoIsBoundedAndItsTailFallsWithItsPower) {
  const std::vector<double> drawn = SortedSeconds(Lifetimes1000(Lifetimes::kBoundedPareto, false));
  EXPECT_NEAR(Mean(drawn), 1000, 50);
  const double shortest = drawn.front();
  EXPECT_LE(drawn.back(), shortest * 1000 * 1.001);
  // P(X > 10 x shortest) = 10^-1.2, but for the bound.
  const auto longer =
      static_cast<double>(drawn.end() - std::ranges::upper_bound(drawn, 10 * shortest));
  EXPECT_NEAR(longer / static_cast<double>(drawn.size()), std::pow(10, -1.2), 0.004);
}

TEST(LifetimeLaw, ResidualsAreThoseOfAPodFoundRunning) {
  // Mean residual = E[X^2] / (2 E[X]); log-normal with sigma 1: mean * e / 2.
  EXPECT_NEAR(Mean(SortedSeconds(Lifetimes1000(Lifetimes::kLogNormal, true))),
              1000 * std::exp(1.0) / 2, 60);
  // Bounded Pareto: E[X^2] = alpha / (2 - alpha) * (r^(2 - alpha) - 1) / (1 - r^-alpha).
  const double shortest = SortedSeconds(Lifetimes1000(Lifetimes::kBoundedPareto, false)).front();
  const double second_moment = 1.2 / 0.8 * (std::pow(1000, 0.8) - 1) / (1 - std::pow(1000, -1.2));
  EXPECT_NEAR(Mean(SortedSeconds(Lifetimes1000(Lifetimes::kBoundedPareto, true, 400'000))),
              shortest * shortest * second_moment / 2000, 500);
}

TEST(DrawStream, ArrivesAtTheRateOfTheLoad) {
  const StreamOptions options{0.8, Lifetimes::kLogNormal, hours(1), hours(100)};
  const Stream stream = DrawStream(kHundredGpus, kTasks, options, 1).value();
  std::int64_t primed_milli = 0;
  for (std::size_t i = 0; i < stream.primed; ++i) {
    EXPECT_EQ(stream.arrivals[i].at, Millis(0));
    primed_milli += GpuDemandMilli(kTasks[stream.arrivals[i].task]);
  }
  EXPECT_GE(primed_milli, 80'000) << "80 GPUs run at first";
  EXPECT_LT(primed_milli, 82'000);
  // Mean demand 2500 / 3 thousandths: 96 pods run at a time, as many come per hour.
  const auto drawn = static_cast<double>(stream.arrivals.size() - stream.primed);
  EXPECT_NEAR(drawn, 9600, 4 * std::sqrt(9600.0));
  EXPECT_TRUE(std::ranges::is_sorted(stream.arrivals, {}, &Arrival::at));
  EXPECT_LT(stream.arrivals.back().at, stream.horizon);
  // Gaps of a Poisson process: mean and standard deviation are equal.
  std::vector<double> gaps;
  for (std::size_t i = stream.primed + 1; i < stream.arrivals.size(); ++i) {
    gaps.push_back(
        static_cast<double>((stream.arrivals[i].at - stream.arrivals[i - 1].at).count()));
  }
  const double mean = Mean(gaps);
  double squares = 0;
  for (const double gap : gaps) squares += (gap - mean) * (gap - mean);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(gaps.size())) / mean, 1.0, 0.05);
}

// The law of all pods is that of kLogNormal, but pods of one owner differ less.
TEST(DrawStream, LifetimesGoByTheOwnerWhereAskedFor) {
  std::vector<TraceTask> tasks;
  for (int i = 0; i < 1000; ++i) {
    TraceTask& task = tasks.emplace_back();
    task.name = std::to_string(i);
    task.gpus = 1;
    task.gpu_milli = 1000;
  }
  const StreamOptions options{1.0, Lifetimes::kByOwner, hours(1), hours(200)};
  const Stream stream = DrawStream(kHundredGpus, tasks, options, 3).value();
  ASSERT_EQ(stream.owners.size(), tasks.size());
  std::vector<std::vector<double>> logs(kOwners + 1);
  double hours_run = 0;
  for (std::size_t i = stream.primed; i < stream.arrivals.size(); ++i) {
    const Arrival& pod = stream.arrivals[i];
    hours_run += static_cast<double>(pod.runs.count()) / 3.6e6;
    logs[stream.owners[pod.task]].push_back(std::log(static_cast<double>(pod.runs.count())));
  }
  EXPECT_NEAR(hours_run / (100 * 200), 1, 0.05) << "the load is as asked";
  std::vector<double> means;
  for (std::size_t owner = 1; owner <= kOwners; ++owner) {
    const double mean = Mean(logs[owner]);
    double squares = 0;
    for (const double one : logs[owner]) squares += (one - mean) * (one - mean);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(logs[owner].size())), 0.39, 0.06);
    means.push_back(mean);
  }
  std::ranges::sort(means);
  EXPECT_GT(means.back() - means.front(), 2);
  EXPECT_EQ(stream.past.size(), stream.primed);
  for (std::size_t i = 0; i < stream.primed; ++i) EXPECT_GT(stream.arrivals[i].ran, Millis(0));
}

TEST(DrawStream, IsAFunctionOfItsSeed) {
  const StreamOptions options{1.0, Lifetimes::kBoundedPareto, hours(1), hours(3)};
  const Stream stream = DrawStream(kHundredGpus, kTasks, options, 5).value();
  EXPECT_TRUE(Same(stream, DrawStream(kHundredGpus, kTasks, options, 5).value()));
  EXPECT_FALSE(Same(stream, DrawStream(kHundredGpus, kTasks, options, 6).value()));
}

TEST(DrawStream, NeedsATaskWithAGpuAndAnEnd) {
  const std::vector<TraceTask> none = {kTasks[1]};
  EXPECT_EQ(DrawStream(kHundredGpus, none, {}, 1).error().message,
            "tasks: want one that asks for a GPU, got none");
  const StreamOptions endless{10, Lifetimes::kLogNormal, seconds(1), hours(100)};
  EXPECT_EQ(DrawStream(kHundredGpus, kTasks, endless, 1).error().message.substr(0, 52),
            "load, hours, mean lifetime: want at most 5000000 arr");
}

TEST(StreamOfTrace, TakesTheTimesOfTheTrace) {
  std::vector<TraceTask> tasks = kTasks;
  tasks[0].created_s = 50;
  tasks[0].deleted_s = 60;
  tasks[1].created_s = 7;
  tasks[1].deleted_s = 7;
  tasks[2].created_s = 7;
  tasks[2].deleted_s = 100;
  const Stream stream = StreamOfTrace(tasks);
  EXPECT_TRUE(Same(
      stream,
      {{{1, seconds(7), seconds(0)}, {2, seconds(7), seconds(93)}, {0, seconds(50), seconds(10)}},
       seconds(100),
       0}));
}

}  // namespace
}  // namespace berth::replay::stream_test
