// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_vendor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace berth::gpu_model_test {
namespace {

TEST(GpuModelCatalogue, IsSortedByNameAndNamesAreUnique) {
  const auto rows = GpuModelCatalogue();
  ASSERT_FALSE(rows.empty());
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_LT(rows[i - 1].name, rows[i].name);
  }
}

TEST(GpuModelCatalogue, SaysWhereEveryRowWasReadAndHasAPlausibleSize) {
  for (const GpuModel& row : GpuModelCatalogue()) {
    EXPECT_FALSE(row.name.empty());
    EXPECT_FALSE(row.source.empty()) << row.name;
    EXPECT_GT(row.memory_mib, 1024) << row.name;
    EXPECT_LT(row.memory_mib, 1024 * 1024) << row.name;
  }
}

TEST(GpuModelCatalogue, KnowsTheModelsOfTheOpenbTraces) {
  for (const std::string_view name : {"A10", "G2", "G3", "P100", "T4", "V100M16", "V100M32"}) {
    const bool undisclosed = name == "G2" || name == "G3";  // anonymised in the trace
    EXPECT_EQ(FindGpuModel(name) == nullptr, undisclosed) << name;
  }
}

TEST(FindGpuModel, FindsEveryRowByItsName) {
  for (const GpuModel& row : GpuModelCatalogue()) EXPECT_EQ(FindGpuModel(row.name), &row);
}

TEST(CataloguedMemory, OfAProductThatCanBeCutIsThatOfADeviceThatTakesItWhole) {
  EXPECT_EQ(CataloguedMemoryMib("T4"), 15'109);
  EXPECT_EQ(CataloguedMemoryMib("A100-SXM4-40GB"), 40'192);
  EXPECT_EQ(CataloguedMemoryMib("NVIDIA-A100-SXM4-40GB"), 40'192);
  EXPECT_EQ(CataloguedMemoryMib("NVIDIA-H100-80GB-HBM3"), 81'152);
  EXPECT_EQ(CataloguedMemoryMib("NVIDIA-H200"), 143'360);
  for (const char* const name :
       {"", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "GTX-9", "NVIDIA-A100-SXM4-40GB-SHARED"}) {
    EXPECT_EQ(CataloguedMemoryMib(name), 0) << name;
  }
}

TEST(FindGpuModel, MatchesTheWholeNameOnly) {
  ASSERT_NE(FindGpuModel("A100"), nullptr);
  EXPECT_EQ(FindGpuModel("A100")->memory_mib, 81251);
  for (const std::string_view name :
       {"", "A", "A1000", "a100", " A100", "A100 ", "0", "~", "NVIDIA-A100-SXM4-80GB"}) {
    EXPECT_EQ(FindGpuModel(name), nullptr) << "\"" << name << "\"";
  }
}

}  // namespace
}  // namespace berth::gpu_model_test
