// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "test/support/temp_file.h"

namespace berth::replay::arrivals_test {
namespace {

using test::TempFile;
using Indices = std::vector<std::size_t>;

// 10 GPUs in all.
const std::vector<TraceNode> kNodes = {{"a", 1, 1, 8, ""}, {"b", 1, 1, 2, ""}, {"c", 1, 1, 0, ""}};

// Tasks of one GPU each, by number; every fifth asks for none.
std::vector<TraceTask> Tasks(int count) {
  std::vector<TraceTask> tasks;
  for (int i = 0; i < count; ++i) {
    const int gpus = i % 5 == 4 ? 0 : 1;
    tasks.push_back({"t" + std::to_string(i), 1, 1, gpus, gpus * 1000, ""});
  }
  return tasks;
}

std::int64_t Demand(const std::vector<TraceTask>& tasks, const Arrivals& arrivals) {
  std::int64_t demand = 0;
  for (const std::size_t task : arrivals.tasks) demand += GpuDemandMilli(tasks[task]);
  return demand;
}

Indices Sorted(Indices indices) {
  std::ranges::sort(indices);
  return indices;
}

TEST(DrawArrivals, IsTheSameForTheSameSeedAndOtherwiseForAnother) {
  const std::vector<TraceTask> tasks = Tasks(20);
  const Arrivals first = DrawArrivals(kNodes, tasks, 7, 1.3);
  const Arrivals again = DrawArrivals(kNodes, tasks, 7, 1.3);
  EXPECT_EQ(first.tasks, again.tasks);
  EXPECT_EQ(first.node_rank, again.node_rank);
  EXPECT_NE(first.tasks, DrawArrivals(kNodes, tasks, 8, 1.3).tasks);
}

TEST(DrawArrivals, IsTheSameOnEveryMachine) {
  // Computed apart from this code.
  const Arrivals drawn = DrawArrivals(kNodes, Tasks(5), 43, 0.6);
  EXPECT_EQ(drawn.tasks, (Indices{1, 2, 0, 4, 3, 3, 4, 4, 2}));
  EXPECT_EQ(drawn.node_rank, (Indices{0, 2, 1}));
}

TEST(DrawArrivals, AppendsDrawnTasksUntilTheDemandIsThere) {
  const std::vector<TraceTask> tasks = Tasks(5);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Arrivals arrivals = DrawArrivals(kNodes, tasks, seed, 1.3);
    EXPECT_EQ(Demand(tasks, arrivals), 13'000) << "seed " << seed;
    const Indices original(arrivals.tasks.begin(), arrivals.tasks.begin() + 5);
    EXPECT_EQ(Sorted(original), (Indices{0, 1, 2, 3, 4})) << "seed " << seed;
    EXPECT_EQ(Sorted(arrivals.node_rank), (Indices{0, 1, 2})) << "seed " << seed;
  }
}

TEST(DrawArrivals, DeletesTasksWhereThereAreTooMany) {
  const std::vector<TraceTask> tasks = Tasks(50);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Arrivals arrivals = DrawArrivals(kNodes, tasks, seed, 0.5);
    EXPECT_EQ(Demand(tasks, arrivals), 5000) << "seed " << seed;
    const Indices sorted = Sorted(arrivals.tasks);
    EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end()) << "seed " << seed;
  }
}

TEST(DrawArrivals, NeverGoesBeyondTheDemandThatIsWanted) {
  const std::vector<TraceTask> tasks = {{"big", 1, 1, 8, 1000, ""}, {"small", 1, 1, 1, 300, ""}};
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_LE(Demand(tasks, DrawArrivals(kNodes, tasks, seed, 1.3)), 13'000) << "seed " << seed;
  }
}

TEST(DrawArrivals, ShufflesTasksThatAskForNoGpu) {
  const std::vector<TraceTask> tasks = {{"a", 1, 1, 0, 0, ""}, {"b", 1, 1, 0, 0, ""}};
  EXPECT_EQ(Sorted(DrawArrivals(kNodes, tasks, 1, 1.3).tasks), (Indices{0, 1}));
}

const std::string kOrders = "seed 4 4 3\n0 1 0 2\n1 0 2\nseed 42 1 3\n2\n2 1 0\n";

TEST(ReadArrivals, FindsTheLinesOfItsSeed) {
  for (const auto kind : {TempFile::Kind::kPlain, TempFile::Kind::kGzip}) {
    const TempFile file(kOrders, kind);
    const auto four = ReadArrivals(file.path(), 4, 3, 3);
    ASSERT_TRUE(four.has_value()) << four.error().message;
    EXPECT_EQ(four->tasks, (Indices{0, 1, 0, 2}));
    EXPECT_EQ(four->node_rank, (Indices{1, 0, 2}));
    EXPECT_EQ(ReadArrivals(file.path(), 42, 3, 3)->node_rank, (Indices{2, 1, 0}));
  }
}

TEST(ReadArrivals, NamesTheSeedThatItDoesNotHave) {
  const TempFile file(kOrders);
  const auto arrivals = ReadArrivals(file.path(), 2, 3, 3);
  ASSERT_FALSE(arrivals.has_value());
  EXPECT_EQ(arrivals.error().code, Errc::kNotFound);
  EXPECT_EQ(arrivals.error().message, file.path() + ": no seed 2");
}

TEST(ReadArrivals, NamesFileAndLineOfWhatIsWrong) {
  struct Case {
    std::string description, text, message;  // the message goes on after the path
  };
  for (const Case& c :
       {Case{"cut off after the seed", "seed 1 2 3\n",
             ":1: want two lines after \"seed\", got the end of the file"},
        Case{"cut off after the tasks", "seed 1 2 3\n0 1\n",
             ":1: want two lines after \"seed\", got the end of the file"},
        Case{"no such task", "seed 1 2 3\n0 3\n0 1 2\n",
             ":2: want an integer from 0 to 2, got \"3\""},
        Case{"a negative task", "seed 1 2 3\n0 -1\n0 1 2\n",
             ":2: want an integer from 0 to 2, got \"-1\""},
        Case{"text for a task", "seed 1 2 3\n0 x\n0 1 2\n",
             ":2: want an integer from 0 to 2, got \"x\""},
        Case{"a rank too many", "seed 1 1 3\n0\n0 1 2 3\n",
             ":3: want an integer from 0 to 2, got \"3\""},
        Case{"a rank twice", "seed 1 1 3\n0\n0 1 1\n",
             ":3: want each rank below 3 once, got 3 numbers"},
        Case{"a rank too few", "seed 1 1 3\n0\n0 1\n",
             ":3: want each rank below 3 once, got 2 numbers"},
        Case{"tasks that are not all there", "seed 1 3 3\n0 1\n0 1 2\n", ":2: want 3 tasks, got 2"},
        Case{"a header without a count", "seed 1 x 3\n0 1\n0 1 2\n",
             ":1: want an integer from 0 to 9223372036854775807, got \"x\""},
        Case{"empty lines count", "\n\nseed 1 1 3\n9\n0 1 2\n",
             ":4: want an integer from 0 to 2, got \"9\""}}) {
    const TempFile file(c.text);
    const auto arrivals = ReadArrivals(file.path(), 1, 3, 3);
    ASSERT_FALSE(arrivals.has_value()) << c.description;
    EXPECT_EQ(arrivals.error().code, Errc::kInvalidArgument) << c.description;
    EXPECT_EQ(arrivals.error().message, file.path() + c.message) << c.description;
  }
}

}  // namespace
}  // namespace berth::replay::arrivals_test
