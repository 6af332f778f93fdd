// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/template_node.h"

#include <string>

#include <gtest/gtest.h>

#include "server/why/plan_request.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::template_node_test {
namespace {

NodeSpec Template(const char* type, const Config& config = DefaultConfig()) {
  auto node = TemplateNode(type, NodeRules(config, test::AllDialects()));
  EXPECT_TRUE(node) << node.error().message;
  return node ? *std::move(node) : NodeSpec();
}

std::string LabelOf(const NodeSpec& node, std::string_view key) {
  const std::string* const value = FindLabel(node.labels, key);
  return value == nullptr ? "" : *value;
}

// As a node of that type without an agent would be read.
TEST(TemplateNodes, HaveTheGpusOfTheTypeAndTheLinksOfTheirModel) {
  const NodeSpec h100 = Template("Standard_ND96isr_H100_v5");
  EXPECT_EQ(h100.gpus.size(), 8u);
  EXPECT_EQ(h100.gpu_model, "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(h100.gpu_resource, "nvidia.com/gpu");
  EXPECT_GT(h100.gpus.at(0).memory_mib, 80'000);
  EXPECT_TRUE(h100.links.known());
  EXPECT_TRUE(h100.ready);
  EXPECT_TRUE(h100.taints.empty());
  EXPECT_FALSE(h100.mig.known());
  EXPECT_EQ(h100.ephemeral_bytes, std::nullopt) << "the type does not tell it";
  EXPECT_TRUE(h100.shares_need_uuids) << "nobody is known to carry out shares there";
}

TEST(TemplateNodes, HaveTheLabelsByWhichPodsChooseMachines) {
  const NodeSpec h100 = Template("Standard_ND96isr_H100_v5");
  EXPECT_EQ(LabelOf(h100, "node.kubernetes.io/instance-type"), "Standard_ND96isr_H100_v5");
  EXPECT_EQ(LabelOf(h100, "kubernetes.io/os"), "linux");
  EXPECT_EQ(LabelOf(h100, "nvidia.com/gpu.product"), "NVIDIA-H100-80GB-HBM3");
  Config config = DefaultConfig();
  config.node_labels.gpu_model = "accelerator";
  const NodeSpec own = Template("Standard_ND96isr_H100_v5", config);
  EXPECT_EQ(LabelOf(own, "accelerator"), "NVIDIA-H100-80GB-HBM3");
  EXPECT_EQ(LabelOf(own, "nvidia.com/gpu.product"), "");
}

TEST(TemplateNodes, OfAnotherVendorHaveItsResourceAndLabel) {
  const NodeSpec amd = Template("Standard_ND96isr_MI300X_v5");
  EXPECT_EQ(amd.gpus.size(), 8u);
  EXPECT_EQ(amd.gpu_resource, "amd.com/gpu");
  EXPECT_EQ(LabelOf(amd, "amd.com/gpu.product-name"), amd.gpu_model);
}

TEST(TemplateNodes, OfATypeOfOnesOwnAreWhatTheConfigurationSays) {
  Config config = DefaultConfig();
  config.machine_types = {
      {.name = "HQ_4", .gpus = 4, .gpu_model = "NVIDIA-L40S", .gpu_memory_mib = 46'000},
      {.name = "bare", .gpus = 2}};
  const NodeSpec own = Template("HQ_4", config);
  EXPECT_EQ(own.gpus.size(), 4u);
  EXPECT_EQ(own.gpus.at(0).memory_mib, 46'000) << "of the type, not of the model";
  const NodeSpec bare = Template("bare", config);
  EXPECT_EQ(bare.gpus.size(), 2u);
  EXPECT_EQ(bare.gpu_model, "");
}

TEST(TemplateNodes, EveryMachineOfTheCatalogueHasOne) {
  const NodeRules rules(DefaultConfig(), test::AllDialects());
  for (const MachineType& type : MachineTypeCatalogue()) {
    const auto node = TemplateNode(type.name, rules);
    ASSERT_TRUE(node) << type.name << ": " << node.error().message;
    EXPECT_EQ(node->gpus.size(), static_cast<std::size_t>(type.gpus)) << type.name;
    EXPECT_EQ(node->gpu_model, type.gpu_model) << type.name;
    EXPECT_EQ(node->gpus.at(0).memory_mib, GpuMemoryMibOf(type)) << type.name;
  }
}

std::string ErrorIn(const std::string& body, const Config& config = DefaultConfig()) {
  const auto dialects = test::AllDialects();
  const auto plan =
      DecodePlan(body, PodRules(dialects, config.resources), NodeRules(config, dialects));
  EXPECT_FALSE(plan) << body;
  return plan ? "" : plan.error().message;
}

TEST(TemplateNodes, AreAskedForByType) {
  const auto dialects = test::AllDialects();
  const auto plan = DecodePlan(R"({"grow":2,"machine_types":["p5.48xlarge","g5.xlarge"]})",
                               PodRules(dialects, DefaultConfig().resources),
                               NodeRules(DefaultConfig(), dialects));
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->at_zero.size(), 2u);
  EXPECT_EQ(plan->at_zero[1].gpu_model, "NVIDIA-A10G");
}

TEST(TemplateNodes, WhatIsNoTypeIsRefusedWithThoseThatAreNear) {
  EXPECT_EQ(
      ErrorIn(R"({"grow":1,"machine_types":["p5.48xlarge","ND96isr_H100_v5"]})"),
      "machine_types[1]: want a machine type that is known, got \"ND96isr_H100_v5\"; nearest: "
      "Standard_ND96isr_H100_v5, Standard_ND96isr_H200_v5, BM.GPU.H100.8");
  EXPECT_EQ(ErrorIn(R"({"grow":1,"machine_types":[8]})"),
            "machine_types[0]: want the name of a machine type");
  EXPECT_TRUE(
      ErrorIn(R"({"grow":1,"machine_types":""})").starts_with("machine_types: want a list"));
  EXPECT_LT(
      ErrorIn(R"({"grow":1,"machine_types":[")" + std::string(1 << 20, 'x') + R"("]})").size(),
      400u);
}

TEST(TemplateNodes, AreThereForGrowthAlone) {
  EXPECT_EQ(ErrorIn(R"({"pods":[],"machine_types":["p5.48xlarge"]})"),
            "machine_types: want grow beside it, got none");
}

TEST(TemplateNodes, AreNotWithoutNumber) {
  std::string body = R"({"grow":1,"machine_types":["p5.48xlarge")";
  for (std::size_t i = 0; i < kMostMachineTypes; ++i) body += R"(,"p5.48xlarge")";
  EXPECT_EQ(ErrorIn(body + "]}"), "machine_types: want at most 100 types, got more");
}

TEST(TemplateNodes, GpusThatTheConfigurationIgnoresAreNone) {
  Config config = DefaultConfig();
  config.resources = {{"amd.com/gpu", ResourceMeaning::kIgnored, "gpu"}};
  EXPECT_EQ(ErrorIn(R"({"grow":1,"machine_types":["Standard_ND96isr_MI300X_v5"]})", config),
            "machine_types[0]: want a machine type whose GPUs count, got "
            "\"Standard_ND96isr_MI300X_v5\": the configuration has no GPUs by amd.com/gpu");
}

}  // namespace
}  // namespace berth::wire::template_node_test
