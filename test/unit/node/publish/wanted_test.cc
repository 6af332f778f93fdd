// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_annotations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <memory>
#include <string>

#include "node/publish/node_publisher.h"

namespace berth::test::wanted_test {
namespace {

using node::NodeFacts;
using node::Wanted;
using node::WhatIsSaid;

WhatIsSaid Says(const NodeFacts& facts) {
  WhatIsSaid says;
  says.facts = std::make_shared<const NodeFacts>(facts);
  return says;
}

NodeFacts WithMig() {
  NodeFacts facts;
  facts.mig = {{0, "1g.10gb", 0, "MIG-a"}};
  facts.annotations = {{"berth.dev/mig", R"({"gpus":[]})"}};
  return facts;
}

TEST(WantedAnnotations, SayWhatIsCarriedOutAndWhichDevicesAreNotWell) {
  WhatIsSaid says;
  says.carries = {"nvidia.com/mig-1g.10gb", "nvidia.com/gpu"};
  EXPECT_TRUE(says.SetUnhealthy("nvidia.com/gpu", {"GPU-b::1", "GPU-b::0", "GPU-a"}));
  EXPECT_FALSE(says.SetUnhealthy("nvidia.com/gpu", {"GPU-a::7", "GPU-b"}));
  EXPECT_TRUE(says.SetUnhealthy("nvidia.com/mig-1g.10gb", {"MIG-c"}));
  const auto wanted = Wanted(says, false);
  EXPECT_EQ(wanted.at("berth.dev/carries-out"), "nvidia.com/gpu,nvidia.com/mig-1g.10gb");
  EXPECT_EQ(wanted.at("berth.dev/gpu-health"), "GPU-a,GPU-b,MIG-c");
  EXPECT_FALSE(wanted.contains("berth.dev/kubelet"));
}

TEST(WantedAnnotations, OfNothingTakeBackWhatThePathWas) {
  const auto wanted = Wanted(WhatIsSaid(), false);
  EXPECT_EQ(wanted.at("berth.dev/carries-out"), std::nullopt);
  EXPECT_EQ(wanted.at("berth.dev/gpu-health"), std::nullopt);
}

TEST(WantedAnnotations, LeaveFactsWhereTheDriverIsAwayOrSomethingFailed) {
  EXPECT_FALSE(Wanted(WhatIsSaid(), false).contains("berth.dev/topology"));
  NodeFacts facts;
  facts.gpus = {{0, "GPU-a", "", {}}};
  facts.annotations = {{"berth.dev/gpu-uuids", "GPU-a"}};
  facts.problems = {"NVML: GPU 1: GPU is lost"};
  const auto wanted = Wanted(Says(facts), false);
  EXPECT_EQ(wanted.at("berth.dev/gpu-uuids"), "GPU-a");
  EXPECT_FALSE(wanted.contains("berth.dev/topology"));
  facts.problems.clear();
  EXPECT_EQ(Wanted(Says(facts), false).at("berth.dev/topology"), std::nullopt);
}

TEST(WantedAnnotations, TakeBackModelsOfGpusThatAreAlikeNow) {
  NodeFacts facts;
  facts.gpus = {{0, "GPU-a", "", {}}};
  facts.annotations = {{"berth.dev/gpu-models", "[]"}};
  EXPECT_EQ(Wanted(Says(facts), false).at("berth.dev/gpu-models"), "[]");
  facts.annotations.clear();
  EXPECT_EQ(Wanted(Says(facts), false).at("berth.dev/gpu-models"), std::nullopt);
}

TEST(WantedAnnotations, GiveMigDevicesToBerthsChoiceWhereItIsCarriedOut) {
  WhatIsSaid says = Says(WithMig());
  EXPECT_EQ(Wanted(says, false).at("berth.dev/mig"), R"({"gpus":[]})");
  says.carries = {"nvidia.com/mig-1g.10gb"};
  EXPECT_EQ(Wanted(says, false).at("berth.dev/mig"), R"({"gpus":[],"allocator":"berth"})");
}

TEST(WantedAnnotations, OfMigStrategySingleHaveNoMigDevices) {
  EXPECT_EQ(Wanted(Says(WithMig()), true).at("berth.dev/mig"), std::nullopt);
}

TEST(WantedAnnotations, AreBounded) {
  WhatIsSaid says;
  std::set<std::string> ids = {std::string(101, 'x'), ""};
  for (int i = 0; i < 10000; ++i) ids.insert("GPU-" + std::to_string(i));
  for (int i = 0; i < 100; ++i) says.carries.insert("nvidia.com/r" + std::to_string(i));
  EXPECT_TRUE(says.SetUnhealthy("nvidia.com/gpu", ids));
  EXPECT_TRUE(says.SetUnhealthy("nvidia.com/other", ids));
  const auto wanted = Wanted(says, false);
  const auto count = [](const std::string& list) {
    return static_cast<std::size_t>(std::count(list.begin(), list.end(), ',')) + 1;
  };
  EXPECT_EQ(count(*wanted.at("berth.dev/gpu-health")), node::kMostUnhealthy);
  EXPECT_EQ(count(*wanted.at("berth.dev/carries-out")), node::kMostCarried);
}

TEST(StatedBoundsOfTheAgent, AreInUse) {
  EXPECT_EQ(node::PublisherOptions().probe_limit, std::chrono::seconds(10));
  EXPECT_EQ(node::kMostFactsBytes, 256U << 10);
  EXPECT_EQ(node::kMostMigDevices, 64U);
  EXPECT_EQ(node::kMostCarried, 64U);
  EXPECT_EQ(node::kMostUnhealthy, 256U);
}

}  // namespace
}  // namespace berth::test::wanted_test
