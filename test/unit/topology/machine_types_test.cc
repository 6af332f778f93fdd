// SPDX-License-Identifier: Apache-2.0
#include "topology/machine_types.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "topology/gpu_vendor.h"
#include "topology/links/wiring.h"

namespace berth::machine_types_test {
namespace {

std::int64_t MachineGpuMemory(std::string_view model, std::int64_t row_mib) {
  return row_mib > 0 ? row_mib : CataloguedMemoryMib(model);
}

// The number that ends there ("8" of "BM.GPU.H100.8"), nullopt if there is none.
std::optional<int> NumberEndingAt(std::string_view name, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  int number = 0;
  const auto [stop, error] = std::from_chars(name.data() + begin, name.data() + end, number);
  return begin < end && error == std::errc{} && stop == name.data() + end ? std::optional(number)
                                                                          : std::nullopt;
}

TEST(MachineTypeCatalogue, IsSortedByNameAndNamesAreUnique) {
  const auto rows = MachineTypeCatalogue();
  ASSERT_GT(rows.size(), 100U);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i - 1].name, rows[i].name);
}

TEST(MachineTypeCatalogue, SaysWhereEveryRowWasRead) {
  for (const MachineType& row : MachineTypeCatalogue())
    EXPECT_FALSE(row.source.empty()) << row.name;
}

TEST(MachineTypeCatalogue, HasPlausibleRows) {
  for (const MachineType& row : MachineTypeCatalogue()) {
    EXPECT_GE(row.gpus, 1) << row.name;
    EXPECT_LE(row.gpus, 16) << row.name;
    EXPECT_FALSE(row.gpu_model.empty()) << row.name;
    EXPECT_EQ(row.gpu_model.find_first_of(" /,"), std::string_view::npos) << row.name;  // a label
    EXPECT_GE(row.nvme_gib, 0) << row.name;
    EXPECT_LT(row.nvme_gib, 64 * 1024) << row.name;
  }
}

TEST(MachineTypeCatalogue, KnowsTheMemoryOfEveryModel) {
  for (const MachineType& row : MachineTypeCatalogue()) {
    EXPECT_GT(MachineGpuMemory(row.gpu_model, row.gpu_memory_mib), 1024) << row.name;
    EXPECT_LT(MachineGpuMemory(row.gpu_model, row.gpu_memory_mib), 512 * 1024) << row.name;
  }
}

// The catalogue of models has some GPUs under a shorter name.
TEST(MachineTypeCatalogue, AgreesWithTheCatalogueOfModelsWhereBothKnowAMemory) {
  const auto expect_near = [](const MachineType& row, std::string_view model) {
    const auto of_model = static_cast<double>(CataloguedMemoryMib(model));
    EXPECT_GT(of_model, 0) << model;
    EXPECT_NEAR(static_cast<double>(row.gpu_memory_mib), of_model, 0.05 * of_model) << row.name;
  };
  constexpr std::pair<std::string_view, std::string_view> kShort[] = {
      {"Standard_NC6s_v3", "V100M16"},
      {"VM.GPU.A10.1", "A10"},
      {"VM.GPU2.1", "P100"},
      {"g4dn.xlarge", "T4"},
      {"p3dn.24xlarge", "V100M32"}};
  for (const auto& [name, model] : kShort) {
    ASSERT_NE(FindMachineType(name), nullptr) << name;
    expect_near(*FindMachineType(name), model);
  }
  for (const MachineType& row : MachineTypeCatalogue()) {
    if (row.gpu_memory_mib == 0 || row.gpu_parts > 1) continue;
    if (CataloguedMemoryMib(row.gpu_model) > 0) expect_near(row, row.gpu_model);
  }
}

TEST(MachineTypeCatalogue, APartOfAGpuIsOneGpuWithThatPartOfItsMemory) {
  int parts = 0;
  for (const MachineType& row : MachineTypeCatalogue()) {
    EXPECT_GE(row.gpu_parts, 1) << row.name;
    if (row.gpu_parts == 1) continue;
    ++parts;
    EXPECT_EQ(row.gpus, 1) << row.name;
    const std::int64_t whole_gib = row.gpu_parts * row.gpu_memory_mib / 1024;
    EXPECT_TRUE(whole_gib == 16 || whole_gib == 24 || whole_gib == 32 || whole_gib == 96)
        << row.name << ": " << whole_gib;
  }
  EXPECT_GT(parts, 10);
}

// "a3-highgpu-8g", "a4x-maxgpu-4g-metal".
TEST(MachineTypeCatalogue, HasAsManyGpusAsTheNameOfAMachineOfGoogleSays) {
  int seen = 0;
  for (const MachineType& row : MachineTypeCatalogue()) {
    const std::size_t gpu = row.name.find("gpu-");
    if (row.name[0] != 'a' || gpu == std::string_view::npos) continue;
    EXPECT_EQ(NumberEndingAt(row.name, row.name.find('g', gpu + 4)), row.gpus) << row.name;
    ++seen;
  }
  EXPECT_GT(seen, 10);
}

// "BM.GPU.H100.8".
TEST(MachineTypeCatalogue, HasAsManyGpusAsTheNameOfAShapeOfOracleSays) {
  int seen = 0;
  for (const MachineType& row : MachineTypeCatalogue()) {
    if (!row.name.starts_with("BM.GPU") && !row.name.starts_with("VM.GPU")) continue;
    EXPECT_EQ(NumberEndingAt(row.name, row.name.size()), row.gpus) << row.name;
    ++seen;
  }
  EXPECT_GT(seen, 10);
}

// "Standard_ND96isr_H100_v5": an r after the number of CPUs stands for RDMA.
TEST(MachineTypeCatalogue, HasRdmaWhereTheNameOfASizeOfAzureSaysSo) {
  int seen = 0;
  for (const MachineType& row : MachineTypeCatalogue()) {
    if (!row.name.starts_with("Standard_")) continue;
    const std::string_view size = row.name.substr(9, row.name.find('_', 9) - 9);
    EXPECT_EQ(size.find('r') != std::string_view::npos, row.rdma) << row.name;
    ++seen;
  }
  EXPECT_GT(seen, 20);
}

struct MachineFact {
  std::string_view name;
  int gpus;
  std::string_view model;
  int gib;  // of each GPU, as the vendor sells it
  bool rdma;
  std::int64_t nvme_gib;
};

// From the vendors' product pages.
constexpr MachineFact kMachineFacts[] = {
    {"BM.GPU.H100.8", 8, "NVIDIA-H100-80GB-HBM3", 80, true, 57'220},
    {"BM.GPU.MI300X.8", 8, "AMD_Instinct_MI300X_OAM", 192, true, 28'610},
    {"Standard_NC64as_T4_v3", 4, "Tesla-T4", 16, false, 0},
    {"Standard_NC96ads_A100_v4", 4, "NVIDIA-A100-80GB-PCIe", 80, false, 3840},
    {"Standard_ND96amsr_A100_v4", 8, "NVIDIA-A100-SXM4-80GB", 80, true, 0},
    {"Standard_ND96asr_v4", 8, "NVIDIA-A100-SXM4-40GB", 40, true, 0},
    {"Standard_ND96isr_H100_v5", 8, "NVIDIA-H100-80GB-HBM3", 80, true, 28'672},
    {"Standard_NV6ads_A10_v5", 1, "NVIDIA-A10-4Q", 4, false, 0},
    {"VM.GPU.A10.2", 2, "NVIDIA-A10", 24, false, 0},
    {"a2-megagpu-16g", 16, "NVIDIA-A100-SXM4-40GB", 40, false, 0},
    {"a3-highgpu-8g", 8, "NVIDIA-H100-80GB-HBM3", 80, true, 6000},
    {"a4x-highgpu-4g", 4, "NVIDIA-GB200", 186, true, 12'000},
    {"g2-standard-24", 2, "NVIDIA-L4", 24, false, 0},
    {"g4dn.metal", 8, "Tesla-T4", 16, true, 1676},
    {"g5.48xlarge", 8, "NVIDIA-A10G", 24, true, 7078},
    {"g6f.large", 1, "NVIDIA-L4-3Q", 3, false, 93},
    {"p3dn.24xlarge", 8, "Tesla-V100-SXM2-32GB", 32, true, 1676},
    {"p4d.24xlarge", 8, "NVIDIA-A100-SXM4-40GB", 40, true, 7450},
    {"p5.48xlarge", 8, "NVIDIA-H100-80GB-HBM3", 80, true, 28'312},
    {"p5e.48xlarge", 8, "NVIDIA-H200", 141, true, 28'312},
    {"p6-b200.48xlarge", 8, "NVIDIA-B200", 180, true, 28'312},
    {"p6e-gb200.36xlarge", 4, "NVIDIA-GB200", 186, true, 0},
};

TEST(FindMachineType, KnowsMachinesByTheirFacts) {
  for (const MachineFact& fact : kMachineFacts) {
    const MachineType* const row = FindMachineType(fact.name);
    ASSERT_NE(row, nullptr) << fact.name;
    EXPECT_EQ(row->gpus, fact.gpus) << fact.name;
    EXPECT_EQ(row->gpu_model, fact.model) << fact.name;
    const double gib =
        static_cast<double>(MachineGpuMemory(row->gpu_model, row->gpu_memory_mib)) / 1024.0;
    EXPECT_LE(gib, fact.gib) << fact.name;
    EXPECT_GE(gib, 0.92 * fact.gib) << fact.name;  // what the driver keeps, GB for GiB
    EXPECT_EQ(row->rdma, fact.rdma) << fact.name;
    EXPECT_EQ(row->nvme_gib, fact.nvme_gib) << fact.name;
  }
}

TEST(FindMachineType, FindsEveryRowByItsName) {
  for (const MachineType& row : MachineTypeCatalogue()) EXPECT_EQ(FindMachineType(row.name), &row);
}

TEST(FindMachineType, MatchesTheWholeNameOnly) {
  for (const std::string_view name :
       {"", "p5", "p5.48xlarg", "p5.48xlarges", "P5.48xlarge", " p5.48xlarge", "n1-standard-8",
        "Standard_D4s_v5", "standard_nd96isr_h100_v5", "BM.Standard3.64", "m7i.large", "~"}) {
    EXPECT_EQ(FindMachineType(name), nullptr) << "\"" << name << "\"";
  }
}

// Models are named as other catalogues look them up.
TEST(FindMachineType, ItsModelsHaveLinksWhereEveryBoardIsWiredAlike) {
  for (const std::string_view name :
       {"BM.GPU.B200.8", "BM.GPU.H200.8", "Standard_ND96asr_v4", "Standard_ND96isr_H100_v5",
        "a2-highgpu-8g", "a3-megagpu-8g", "a4x-highgpu-4g", "p4de.24xlarge", "p5en.48xlarge"}) {
    const MachineType* const row = FindMachineType(name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_TRUE(LinksOfProduct(row->gpu_model, row->gpus).has_value()) << name;
  }
}

TEST(GkeAcceleratorCatalogue, IsSortedAndSaysWhereEveryRowWasRead) {
  const auto rows = GkeAcceleratorCatalogue();
  ASSERT_FALSE(rows.empty());
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_LT(rows[i - 1].value, rows[i].value);
  for (const GkeAccelerator& row : rows) {
    EXPECT_FALSE(row.source.empty()) << row.value;
    EXPECT_GT(MachineGpuMemory(row.gpu_model, row.gpu_memory_mib), 1024) << row.value;
    EXPECT_EQ(FindGkeAccelerator(row.value), &row);
  }
}

// Google's documents name the accelerator of each of these machines.
TEST(FindGkeAccelerator, NamesTheModelThatTheMachineOfThatAcceleratorHas) {
  constexpr struct {
    std::string_view accelerator, machine;
  } kPairs[] = {{"nvidia-a100-80gb", "a2-ultragpu-1g"},
                {"nvidia-b200", "a4-highgpu-8g"},
                {"nvidia-gb200", "a4x-highgpu-4g"},
                {"nvidia-h100-80gb", "a3-highgpu-8g"},
                {"nvidia-h100-mega-80gb", "a3-megagpu-8g"},
                {"nvidia-h200-141gb", "a3-ultragpu-8g"},
                {"nvidia-l4", "g2-standard-4"},
                {"nvidia-tesla-a100", "a2-highgpu-1g"},
                {"nvidia-rtx-pro-6000", "g4-standard-48"}};
  for (const auto& [accelerator, machine] : kPairs) {
    const GkeAccelerator* const row = FindGkeAccelerator(accelerator);
    const MachineType* const type = FindMachineType(machine);
    ASSERT_NE(row, nullptr) << accelerator;
    ASSERT_NE(type, nullptr) << machine;
    EXPECT_EQ(row->gpu_model, type->gpu_model) << accelerator;
    EXPECT_EQ(row->gpu_memory_mib, type->gpu_memory_mib) << accelerator;
  }
}

TEST(FindGkeAccelerator, KnowsThoseThatAreAttachedToMachines) {
  ASSERT_NE(FindGkeAccelerator("nvidia-tesla-t4"), nullptr);
  EXPECT_EQ(FindGkeAccelerator("nvidia-tesla-t4")->gpu_model, "Tesla-T4");
  ASSERT_NE(FindGkeAccelerator("nvidia-tesla-v100"), nullptr);
  EXPECT_EQ(FindGkeAccelerator("nvidia-tesla-v100")->gpu_model, "Tesla-V100-SXM2-16GB");
  for (const std::string_view value :
       {"", "nvidia", "nvidia-l", "nvidia-l40", "tpu-v5-lite", "~"}) {
    EXPECT_EQ(FindGkeAccelerator(value), nullptr) << "\"" << value << "\"";
  }
}

TEST(SpotLabels, AreSortedHaveSourcesAndCoverTheClouds) {
  const auto labels = SpotLabels();
  for (std::size_t i = 1; i < labels.size(); ++i) EXPECT_LT(labels[i - 1].key, labels[i].key);
  for (const SpotLabel& label : labels) EXPECT_FALSE(label.source.empty()) << label.key;
  const auto has = [&](std::string_view key, std::string_view value) {
    return std::ranges::any_of(
        labels, [&](const SpotLabel& label) { return label.key == key && label.value == value; });
  };
  EXPECT_TRUE(has("kubernetes.azure.com/scalesetpriority", "spot"));
  EXPECT_TRUE(has("cloud.google.com/gke-spot", "true"));
  EXPECT_TRUE(has("eks.amazonaws.com/capacityType", "SPOT"));
  EXPECT_TRUE(has("karpenter.sh/capacity-type", "spot"));
  EXPECT_TRUE(has("oci.oraclecloud.com/oke-is-preemptible", "true"));
}

}  // namespace
}  // namespace berth::machine_types_test
