// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/oracle_mix.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

namespace berth::replay::oracle_mix_test {
namespace {

TraceTask Task(std::int64_t cpu, int gpus, int milli, const std::string& spec = "",
               std::int64_t memory_mib = 1) {
  return {"t", cpu, memory_mib, gpus, milli, spec};
}

std::vector<TraceTask> Times(int count, const TraceTask& task) {
  return std::vector<TraceTask>(static_cast<std::size_t>(count), task);
}

std::vector<TraceTask> Joined(const std::vector<std::vector<TraceTask>>& parts) {
  std::vector<TraceTask> tasks;
  for (const auto& part : parts) tasks.insert(tasks.end(), part.begin(), part.end());
  return tasks;
}

TEST(OracleMix, CountsTasksOfOneKindMostFrequentFirst) {
  const RequestMix mix =
      OracleMix(Joined({Times(1, Task(4000, 1, 500)), Times(3, Task(8000, 2, 1000)),
                        Times(4, Task(500, 0, 0))}),
                1.0);
  ASSERT_EQ(mix.size(), 3U);
  EXPECT_EQ(mix[0].shape.gpus, GpuAsk{NoGpu{}}) << "CPU-only tasks take part";
  EXPECT_DOUBLE_EQ(mix[0].weight, 0.5);
  EXPECT_EQ(mix[1].shape.gpus, GpuAsk{WholeGpus{2}});
  EXPECT_DOUBLE_EQ(mix[1].weight, 0.375);
  EXPECT_EQ(mix[2].shape.gpus, (GpuAsk{GpuShare{500, 0}}));
  EXPECT_EQ(mix[2].shape.cpu_milli, 4000);
  EXPECT_DOUBLE_EQ(mix[2].weight, 0.125);
}

TEST(OracleMix, PutsTheLargerFirstAmongEquals) {
  const RequestMix mix = OracleMix(
      {Task(1000, 1, 500), Task(2000, 1, 300), Task(1000, 1, 1000), Task(1000, 1, 500, "T4")}, 1.0);
  ASSERT_EQ(mix.size(), 4U);
  EXPECT_EQ(mix[0].shape.cpu_milli, 2000);
  EXPECT_EQ(mix[1].shape.gpus, GpuAsk{WholeGpus{1}});
  EXPECT_EQ(mix[2].shape.models, std::vector<std::string>{"T4"});
  EXPECT_TRUE(mix[3].shape.models.empty());
}

TEST(OracleMix, DoesNotLookAtMemoryAndCountsNoCpuAsALittle) {
  const RequestMix mix =
      OracleMix({Task(0, 1, 500, "", 1), Task(100, 1, 500, "", 2), Task(0, 1, 500, "", 3)}, 1.0);
  ASSERT_EQ(mix.size(), 1U);
  EXPECT_EQ(mix[0].shape.cpu_milli, 100);
  EXPECT_DOUBLE_EQ(mix[0].weight, 1.0);
}

TEST(OracleMix, TellsModelSetsApartAsTheyAreWritten) {
  EXPECT_EQ(OracleMix({Task(1, 1, 1000, "A|B"), Task(1, 1, 1000, "B|A")}, 1.0).size(), 2U);
}

TEST(OracleMix, KeepsTheShortestSufficientPrefixScaledToOne) {
  // 60 %, 30 %, 10 %.
  const auto tasks = Joined(
      {Times(6, Task(1000, 1, 500)), Times(3, Task(2000, 1, 500)), Times(1, Task(3000, 1, 500))});
  EXPECT_EQ(OracleMix(tasks, 0.5).size(), 1U);
  EXPECT_EQ(OracleMix(tasks, 0.6).size(), 1U) << "covered to the task";
  EXPECT_EQ(OracleMix(tasks, 0.61).size(), 2U);
  const RequestMix two = OracleMix(tasks, 0.9);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_DOUBLE_EQ(two[0].weight, 6.0 / 9);
  EXPECT_DOUBLE_EQ(two[1].weight, 3.0 / 9);
  EXPECT_EQ(OracleMix(tasks).size(), 3U) << "95 % by default";
}

TEST(OracleMix, IsEmptyWithoutTasks) { EXPECT_TRUE(OracleMix({}).empty()); }

}  // namespace
}  // namespace berth::replay::oracle_mix_test
