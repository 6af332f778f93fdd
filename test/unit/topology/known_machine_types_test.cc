// SPDX-License-Identifier: Apache-2.0
#include "topology/machine_types.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace berth::known_machine_types_test {
namespace {

using Names = std::vector<std::string_view>;

TEST(MachineTypes, WithoutSpecsAreTheCatalogue) {
  const MachineTypes types;
  for (const MachineType& row : MachineTypeCatalogue()) EXPECT_EQ(types.Find(row.name), &row);
  EXPECT_EQ(types.Find("hq-l40s"), nullptr);
  EXPECT_EQ(types.Find(""), nullptr);
}

TEST(MachineTypes, OfAnOperatorExtendTheCatalogue) {
  const MachineTypes types(std::vector<MachineTypeSpec>{{.name = "zz", .gpus = 2},
                                                        {.name = "hq-l40s",
                                                         .gpus = 4,
                                                         .gpu_model = "NVIDIA-L40S",
                                                         .gpu_memory_mib = 46'068,
                                                         .gpu_parts = 2,
                                                         .rdma = true,
                                                         .nvme_gib = 3500,
                                                         .price_per_hour = 7.5}});
  const MachineType* const own = types.Find("hq-l40s");
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(own->gpus, 4);
  EXPECT_EQ(own->gpu_model, "NVIDIA-L40S");
  EXPECT_EQ(own->gpu_memory_mib, 46'068);
  EXPECT_EQ(own->gpu_parts, 2);
  EXPECT_TRUE(own->rdma);
  EXPECT_EQ(own->nvme_gib, 3500);
  EXPECT_EQ(own->price_per_hour, 7.5);
  EXPECT_EQ(own->source, "the configuration");
  const MachineType* const least = types.Find("zz");
  ASSERT_NE(least, nullptr);
  EXPECT_EQ(least->gpu_model, "");
  EXPECT_EQ(least->gpu_parts, 1);
  EXPECT_FALSE(least->rdma);
  EXPECT_EQ(least->price_per_hour, 0);
  EXPECT_EQ(types.Find("p5.48xlarge"), FindMachineType("p5.48xlarge")) << "the others stay";
  EXPECT_EQ(types.Find("HQ-L40S"), nullptr);
}

TEST(MachineTypes, OfTheCatalogueKeepWhatIsNotSaidOfThem) {
  const MachineType& catalogued = *FindMachineType("p5.48xlarge");
  const MachineTypes priced(
      std::vector<MachineTypeSpec>{{.name = "p5.48xlarge", .price_per_hour = 98.3}});
  const MachineType& row = *priced.Find("p5.48xlarge");
  EXPECT_EQ(row.price_per_hour, 98.3);
  EXPECT_EQ(row.gpus, catalogued.gpus);
  EXPECT_EQ(row.gpu_model, catalogued.gpu_model);
  EXPECT_EQ(row.gpu_memory_mib, catalogued.gpu_memory_mib);
  EXPECT_EQ(row.rdma, catalogued.rdma);
  EXPECT_EQ(row.nvme_gib, catalogued.nvme_gib);
  const MachineTypes other(std::vector<MachineTypeSpec>{
      {.name = "p5.48xlarge", .gpus = 4, .gpu_model = "X", .rdma = false, .nvme_gib = 0}});
  EXPECT_EQ(other.Find("p5.48xlarge")->gpus, 4);
  EXPECT_EQ(other.Find("p5.48xlarge")->gpu_model, "X");
  EXPECT_FALSE(other.Find("p5.48xlarge")->rdma) << "said to be none, and not unsaid";
  EXPECT_EQ(other.Find("p5.48xlarge")->nvme_gib, 0);
}

TEST(MachineTypes, TheirRowsOutliveTheSpecs) {
  std::vector<MachineTypeSpec> specs;
  for (int i = 0; i < 100; ++i) {
    specs.push_back({.name = "own-" + std::to_string(i), .gpus = 1, .gpu_model = "short"});
  }
  const MachineTypes types(specs);
  specs.clear();
  for (int i = 0; i < 100; ++i) {
    const MachineType* const row = types.Find("own-" + std::to_string(i));
    ASSERT_NE(row, nullptr) << i;
    EXPECT_EQ(row->name, "own-" + std::to_string(i));
    EXPECT_EQ(row->gpu_model, "short");
  }
}

TEST(MachineTypes, NearestNamesCloseTheGapOfATypo) {
  const MachineTypes types(
      std::vector<MachineTypeSpec>{{.name = "hq-l40s-4", .gpus = 4}, {.name = "p5.48xlarge"}});
  EXPECT_EQ(types.NearestTo("standard_nd96isr_h100_V5", 1), Names{"Standard_ND96isr_H100_v5"});
  EXPECT_EQ(types.NearestTo("ND96isr_H100_v5", 1), Names{"Standard_ND96isr_H100_v5"});
  EXPECT_EQ(types.NearestTo("hq-l40s", 1), Names{"hq-l40s-4"});
  EXPECT_EQ(types.NearestTo("p5.48xlarg", 2), (Names{"p5.48xlarge", "g5.48xlarge"}))
      << "a type that is in both is named once";
  EXPECT_EQ(types.NearestTo(std::string(1 << 20, 'x'), 3).size(), 3u);
  EXPECT_EQ(types.NearestTo("x", 10'000).size(), MachineTypeCatalogue().size() + 1);
}

TEST(MachineTypes, MemoryThatARowDoesNotSayIsThatOfTheModel) {
  const std::int64_t whole = GpuMemoryMibOf(*FindMachineType("p5.48xlarge"));
  EXPECT_GT(whole, 80'000);
  const MachineTypes types(std::vector<MachineTypeSpec>{
      {.name = "half", .gpus = 1, .gpu_model = "NVIDIA-H100-80GB-HBM3", .gpu_parts = 2},
      {.name = "odd", .gpus = 1, .gpu_model = "unheard of"}});
  EXPECT_EQ(GpuMemoryMibOf(*types.Find("half")), whole / 2);
  EXPECT_EQ(GpuMemoryMibOf(*types.Find("odd")), 0);
}

TEST(MachineTypes, TheirGpusAreCountedByTheResourceOfTheirVendor) {
  for (const MachineType& row : MachineTypeCatalogue()) {
    const bool is_amd = row.gpu_model.find("NVIDIA") == std::string_view::npos &&
                        row.gpu_model.find("Tesla") == std::string_view::npos;
    EXPECT_EQ(GpuResourceOf(row), is_amd ? "amd.com/gpu" : "nvidia.com/gpu") << row.name;
  }
}

}  // namespace
}  // namespace berth::known_machine_types_test
