// SPDX-License-Identifier: Apache-2.0
#include "bench/power/power.h"

#include <gtest/gtest.h>

#include <string_view>

namespace berth::gpu_power_test {
namespace {

TEST(GpuPowerCatalogue, IsSortedByNameAndNamesAreUnique) {
  const auto rows = GpuPowerCatalogue();
  ASSERT_FALSE(rows.empty());
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i - 1].name, rows[i].name);
}

TEST(GpuPowerCatalogue, SaysWhereEveryFigureWasReadAndBusyIsMoreThanIdle) {
  for (const GpuPower& row : GpuPowerCatalogue()) {
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_GT(row.idle_watts, 0) << row.name;
    EXPECT_LT(row.idle_watts, row.busy_watts) << row.name;
    EXPECT_LT(row.busy_watts, 2000) << row.name;
    if (row.cpu == nullptr) continue;
    EXPECT_FALSE(row.cpu->source.empty()) << row.cpu->name;
    EXPECT_GT(row.cpu->idle_watts, 0) << row.cpu->name;
    EXPECT_LT(row.cpu->idle_watts, row.cpu->busy_watts) << row.cpu->name;
    EXPECT_GT(row.cpu->cores, 0) << row.cpu->name;
  }
}

TEST(GpuPowerCatalogue, KnowsTheModelsAndTheCpusOfTheOpenbTrace) {
  for (const std::string_view name : {"A10", "G2", "G3", "P100", "T4", "V100M16", "V100M32"}) {
    const GpuPower* const row = FindGpuPower(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_NE(row->cpu, nullptr) << name;
  }
}

TEST(FindGpuPower, FindsEveryRowByItsWholeName) {
  for (const GpuPower& row : GpuPowerCatalogue()) EXPECT_EQ(FindGpuPower(row.name), &row);
  for (const std::string_view name : {"", "A", "T", "T40", "t4", " T4", "NVIDIA-A10-4Q", "~"}) {
    EXPECT_EQ(FindGpuPower(name), nullptr) << "\"" << name << "\"";
  }
}

}  // namespace
}  // namespace berth::gpu_power_test
