// SPDX-License-Identifier: Apache-2.0
//
// Nodes of clouds on which no agent publishes what their GPUs are: the machine type tells.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/wire/node/node_json.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::machine_nodes_test {
namespace {

NodeSpec Read(const Json& labels, const std::string& resource, const char* count,
              const Config& config = DefaultConfig()) {
  Json node = {{"metadata", {{"name", "n"}, {"labels", labels}}}};
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list] = {{"cpu", "96"}, {"memory", "900Gi"}, {resource, count}};
  }
  return ReadNode(node, config).spec;
}

Json OfType(const char* type) { return {{"node.kubernetes.io/instance-type", type}}; }

// AKS without GPU Feature Discovery: the device plugin alone.
TEST(MachineNodes, HaveModelMemoryAndLinksOfTheirType) {
  const NodeSpec h100 = Read(OfType("Standard_ND96isr_H100_v5"), "nvidia.com/gpu", "8");
  EXPECT_EQ(h100.gpu_model, "NVIDIA-H100-80GB-HBM3");
  ASSERT_EQ(h100.gpus.size(), 8U);
  EXPECT_NEAR(static_cast<double>(h100.gpus[0].memory_mib), 81'559, 500) << "as its driver says";
  EXPECT_TRUE(h100.links.known()) << "NVLink, by the product";
  const NodeSpec t4 = Read(OfType("Standard_NC64as_T4_v3"), "nvidia.com/gpu", "4");
  EXPECT_EQ(t4.gpu_model, "Tesla-T4");
  EXPECT_GT(t4.gpus.at(0).memory_mib, 14'000);
}

TEST(MachineNodes, SayMoreThemselvesIfTheyDo) {
  Json labels = OfType("Standard_ND96isr_H100_v5");
  labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-SHARED";
  labels["nvidia.com/gpu.memory"] = "81000";
  const NodeSpec said = Read(labels, "nvidia.com/gpu", "8");
  EXPECT_EQ(said.gpu_model, "NVIDIA-H100-80GB-HBM3-SHARED");
}

// AKS cuts the GPUs of a pool by --gpu-instance-profile; without GFD nobody says so.
TEST(MachineNodes, WithAnotherNumberOfGpusThanTheirTypeAreNotWhatItSays) {
  const NodeSpec cut = Read(OfType("Standard_ND96asr_v4"), "nvidia.com/gpu", "56");
  EXPECT_EQ(cut.gpu_model, "");
  EXPECT_EQ(cut.places, (GpuPlaces{56, false, 8})) << "nobody says how they are kept apart";
  EXPECT_EQ(Read(OfType("Standard_D8s_v5"), "nvidia.com/gpu", "1").gpu_model, "");
}

TEST(MachineNodes, OfGkeAreKnownByTheAcceleratorThatIsAttached) {
  const Json labels = {{"node.kubernetes.io/instance-type", "n1-standard-8"},
                       {"cloud.google.com/gke-accelerator", "nvidia-tesla-t4"},
                       {"cloud.google.com/gke-accelerator-count", "2"}};
  EXPECT_EQ(Read(labels, "nvidia.com/gpu", "2").gpu_model, "Tesla-T4");
  EXPECT_EQ(Read(labels, "nvidia.com/gpu", "8").gpu_model, "") << "each has four users";
}

Config WithTypes(std::vector<MachineTypeSpec> types) {
  Config config = DefaultConfig();
  config.machine_types = std::move(types);
  return config;
}

TEST(MachineNodes, OfATypeOfOnesOwnAreWhatTheConfigurationSays) {
  const Config config = WithTypes(
      {{.name = "hq-l40s", .gpus = 4, .gpu_model = "NVIDIA-L40S", .gpu_memory_mib = 46'000}});
  const NodeSpec own = Read(OfType("hq-l40s"), "nvidia.com/gpu", "4", config);
  EXPECT_EQ(own.gpu_model, "NVIDIA-L40S");
  ASSERT_EQ(own.gpus.size(), 4U);
  EXPECT_EQ(own.gpus[0].memory_mib, 46'000);
  EXPECT_EQ(Read(OfType("hq-l40s"), "nvidia.com/gpu", "2", config).gpu_model, "")
      << "its GPUs are shared, or cut";
  EXPECT_EQ(Read(OfType("hq-l40s"), "nvidia.com/gpu", "4").gpu_model, "");
}

TEST(MachineNodes, OfATypeOfOnesOwnSayMoreThemselvesIfTheyDo) {
  const Config config = WithTypes(
      {{.name = "hq-l40s", .gpus = 4, .gpu_model = "NVIDIA-L40S", .gpu_memory_mib = 46'000}});
  Json labels = OfType("hq-l40s");
  labels["nvidia.com/gpu.product"] = "NVIDIA-L4";
  labels["nvidia.com/gpu.memory"] = "23034";
  const NodeSpec said = Read(labels, "nvidia.com/gpu", "4", config);
  EXPECT_EQ(said.gpu_model, "NVIDIA-L4");
  EXPECT_EQ(said.gpus.at(0).memory_mib, 23'034);
}

TEST(MachineNodes, OfACataloguedTypeKeepWhatTheConfigurationDoesNotSay) {
  NodeSpec before = Read(OfType("Standard_ND96isr_H100_v5"), "nvidia.com/gpu", "8");
  const NodeSpec priced =
      Read(OfType("Standard_ND96isr_H100_v5"), "nvidia.com/gpu", "8",
           WithTypes({{.name = "Standard_ND96isr_H100_v5", .price_per_hour = 98.3}}));
  before.gpu_price = 98.3 / 8;
  EXPECT_EQ(priced, before);
  const NodeSpec renamed =
      Read(OfType("Standard_NC64as_T4_v3"), "nvidia.com/gpu", "4",
           WithTypes({{.name = "Standard_NC64as_T4_v3", .gpu_model = "NVIDIA-T4"}}));
  EXPECT_EQ(renamed.gpu_model, "NVIDIA-T4");
  EXPECT_EQ(renamed.gpus.at(0).memory_mib,
            Read(OfType("Standard_NC64as_T4_v3"), "nvidia.com/gpu", "4").gpus.at(0).memory_mib);
}

TEST(MachineNodes, OfAnotherVendorHaveItsModel) {
  const NodeSpec amd = Read(OfType("Standard_ND96isr_MI300X_v5"), "amd.com/gpu", "8");
  EXPECT_NE(amd.gpu_model.find("MI300X"), std::string::npos) << amd.gpu_model;
  EXPECT_GT(amd.gpus.at(0).memory_mib, 190'000);
}

}  // namespace
}  // namespace berth::test::machine_nodes_test
