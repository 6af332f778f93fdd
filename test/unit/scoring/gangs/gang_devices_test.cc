// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_devices.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::test::gang_devices_test {
namespace {

constexpr char kDriver[] = "gpu.nvidia.com";

// GPUs of two NUMA nodes.
NodeDevices ANodeOf(const std::string& name, int gpus, bool divisible) {
  auto slice = std::make_shared<PublishedSlice>();
  slice->name = slice->pool = name;
  slice->driver = kDriver;
  slice->slices_in_pool = 1;
  for (int i = 0; i < gpus; ++i) {
    PublishedDevice device{.name = "gpu-" + std::to_string(i),
                           .seen = cel::Device(kDriver),
                           .taints = {},
                           .consumes = {}};
    device.seen.SetAttribute("numaNode", std::int64_t{i % 2});
    device.divisible = divisible;
    device.capacity = std::make_shared<const DeviceCapacities>(
        DeviceCapacities{{.name = "memory", .there_is = 80}});
    slice->devices.push_back(std::move(device));
  }
  return {GatherPools({slice}), {}};
}

std::shared_ptr<const DeviceClaim> Ask(std::int64_t count, bool one_numa,
                                       const std::string& selector = "true") {
  DeviceWant want{.name = {},
                  .device_class = "gpu",
                  .selectors = {selector},
                  .count = count,
                  .tolerations = {},
                  .tolerations_json = {}};
  DeviceClaim claim{{{"r", {want}}}};
  if (one_numa) claim.constraints.push_back({false, "gpu.nvidia.com/numaNode", {}});
  return std::make_shared<const DeviceClaim>(std::move(claim));
}

std::shared_ptr<const DeviceClaim> AskMemory(std::int64_t memory) {
  DeviceClaim claim = *Ask(1, false);
  claim.requests[0].wants[0].capacity = {{"memory", memory}};
  return std::make_shared<const DeviceClaim>(std::move(claim));
}

std::optional<DeviceClass> FindClass(std::string_view name) {
  DeviceClass gpu;
  gpu.name = name;
  gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
  return gpu;
}

class GangDevicesTest : public testing::Test {
 protected:
  Result<GangDevices> Make(const std::vector<GangDevices::Claims>& kinds) {
    std::vector<ANode> nodes;
    DeviceOffers::ByNode offers;
    for (const auto& [name, gpus] : gpus_) {
      nodes.emplace_back(name);
      if (gpus == 0) continue;
      NodeDevices devices = ANodeOf(name, gpus, divisible_);
      if (used_ > 0) devices.parts[{name, "gpu-0"}] = {{"memory", used_}};
      offers[name] = std::make_shared<const NodeDevices>(std::move(devices));
    }
    return GangDevices::Make(kinds, FindClass, offers, *SnapshotOf(nodes));
  }
  std::map<std::string, int> gpus_ = {{"n0", 4}, {"n1", 4}, {"n2", 0}};
  bool divisible_ = false;
  std::int64_t used_ = 0;  // of the memory of the first GPU of each node
};

TEST_F(GangDevicesTest, MembersOfSeveralKindsShareANode) {
  auto devices = Make({{Ask(2, true)}, {Ask(1, false)}});
  ASSERT_TRUE(devices) << devices.error().message;
  EXPECT_EQ(devices->Room(0, 0, 9), 2);
  EXPECT_EQ(devices->Room(0, 1, 9), 4);
  EXPECT_EQ(devices->Room(0, 1, 3), 3);
  EXPECT_EQ(devices->Room(2, 1, 9), 0) << "it has no devices";
  EXPECT_TRUE(devices->Has(0, std::vector{1, 2}));
  EXPECT_FALSE(devices->Has(0, std::vector{2, 1}));
  EXPECT_TRUE(devices->Alike(0, 1));
  EXPECT_FALSE(devices->Alike(0, 2));
  EXPECT_FALSE(devices->ran_out());
}

TEST_F(GangDevicesTest, ClaimsForWhichNoDeviceIsKnownAreNotForUs) {
  const auto devices = Make({{Ask(1, false, "device.driver == 'nic'")}});
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().message, "Berth knows no device that suits it");
  EXPECT_FALSE(Make({{Ask(1, false, "device.attributes['x'].y == 1")}}))
      << "a selector that fails on a device gives up the pod";
}

TEST_F(GangDevicesTest, MembersGetPartsOfOneDevice) {
  divisible_ = true;
  gpus_ = {{"n0", 2}, {"n1", 1}, {"n2", 0}};
  auto devices = Make({{AskMemory(30)}, {AskMemory(50)}, {Ask(1, false)}});
  ASSERT_TRUE(devices) << devices.error().message;
  EXPECT_EQ(devices->Room(0, 0, 9), 4) << "two on each";
  EXPECT_EQ(devices->Room(1, 0, 9), 2);
  EXPECT_TRUE(devices->Has(0, std::vector{2, 2, 0})) << "one of each on each";
  EXPECT_FALSE(devices->Has(0, std::vector{3, 2, 0}));
  EXPECT_TRUE(devices->Has(0, std::vector{2, 0, 1}));
  EXPECT_FALSE(devices->Has(0, std::vector{3, 0, 1})) << "who says no part gets all of it";
  used_ = 30;
  devices = Make({{AskMemory(30)}, {AskMemory(60)}});
  EXPECT_EQ(devices->Room(0, 0, 9), 3);
  EXPECT_EQ(devices->Room(0, 1, 9), 1) << "of the other one";
  EXPECT_FALSE(devices->Alike(0, 1));
}

TEST_F(GangDevicesTest, ASearchWithoutEndIsGivenUp) {
  // 21 of one NUMA node, where each has 20: there are millions of ways to find that out.
  gpus_ = {{"n0", 40}};
  auto devices = Make({{Ask(21, true)}, {Ask(1, false)}});
  ASSERT_TRUE(devices) << devices.error().message;
  for (int members = 1; members <= 6; ++members) {
    EXPECT_FALSE(devices->Has(0, std::vector{1, members}));
  }
  EXPECT_TRUE(devices->ran_out());
  EXPECT_FALSE(devices->Has(0, std::vector{0, 1})) << "nothing is left to search with";
}

TEST_F(GangDevicesTest, DevicesThatTakeTooLongToCompareAreLeftToKubeScheduler) {
  // No node stands for another here, and one claim compares its devices in many ways.
  for (int node = 0; node < 2'000; ++node) gpus_["m" + std::to_string(node)] = 16;
  DeviceClaim claim = *Ask(2, false);
  for (int i = 0; i < 200; ++i) {
    claim.constraints.push_back({false, "gpu.nvidia.com/a" + std::to_string(i), {}});
  }
  const auto devices = Make({{std::make_shared<const DeviceClaim>(std::move(claim))}});
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().message, "too many devices may suit its claims");
}

}  // namespace
}  // namespace berth::test::gang_devices_test
