// SPDX-License-Identifier: Apache-2.0
#include "server/kube/device_claims.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::kube {
namespace {

using wire::GpuDevice;
using wire::ResourceClaim;
using wire::ResourceSlice;

ResourceClaim Claim(const std::string& name, std::vector<wire::ClaimedDevice> devices) {
  return {"ns", name, std::move(devices)};
}
ResourceSlice Slice(const std::string& name, const std::string& pool, const std::string& node,
                    std::vector<GpuDevice> devices, std::int64_t generation = 1) {
  return {"", name, pool, node, generation, std::move(devices)};
}

class DeviceClaimsTest : public testing::Test {
 protected:
  DeviceClaimsTest() {
    for (const char* name : {"n1", "n2"}) {
      const ClusterEvent event = NodeUpserted{test::ANode(name).Gpus(4).Spec()};
      EXPECT_TRUE(state_.Apply(std::span(&event, 1)));
    }
  }
  GpuMask On(const std::string& node) {
    const auto snapshot = state_.Current();
    return snapshot->node(snapshot->names().Find(node)).claimed();
  }
  DeviceClaims::Claims& claims() { return all_.claims(); }
  DeviceClaims::Slices& slices() { return all_.slices(); }

  ClusterState state_;
  std::vector<std::string> told_;
  DeviceClaims all_{state_,
                    [this](std::string_view, std::string_view object, const std::string& why) {
                      told_.push_back(std::string(object) + ": " + why);
                    }};
};

TEST_F(DeviceClaimsTest, WithoutSlicesNamesTell) {
  claims().Put(Claim("a", {{"n1", "gpu-0"}, {"n1", "gpu-2-mig-1g5gb-19-6"}}));
  EXPECT_EQ(On("n1"), 0b0101u);
  EXPECT_EQ(On("n2"), 0u);
  claims().Put(Claim("a", {{"n1", "gpu-1"}}));
  EXPECT_EQ(On("n1"), 0b0010u);
  claims().Remove("ns", "a");
  EXPECT_EQ(On("n1"), 0u);
}

TEST_F(DeviceClaimsTest, AGpuIsHeldUntilTheLastClaimOfItIsGone) {
  claims().Put(Claim("a", {{"n1", "gpu-0-mig-1g5gb-19-6"}}));
  claims().Put(Claim("b", {{"n1", "gpu-0-mig-1g5gb-19-5"}}));
  claims().Remove("ns", "a");
  EXPECT_EQ(On("n1"), 0b0001u);
  claims().Put(Claim("b", {}));
  EXPECT_EQ(On("n1"), 0u);
}

TEST_F(DeviceClaimsTest, ASliceSaysNodeAndGpuWheneverItComes) {
  claims().Put(Claim("a", {{"pool-7", "x"}}));
  EXPECT_EQ(all_.unknown(), 1u);
  EXPECT_EQ(told_,
            std::vector<std::string>{"ns/a: device x of pool pool-7: want a ResourceSlice "
                                     "that says its GPU, or a name like gpu-0, got neither"});
  slices().Put(Slice("s", "pool-7", "n2", {{"x", "", 3, "", -1}}));
  EXPECT_EQ(On("n2"), 0b1000u);
  EXPECT_EQ(all_.unknown(), 0u);
  slices().Put(Slice("s", "pool-7", "n1", {{"x", "", 3, "", -1}}));
  EXPECT_EQ(On("n2"), 0u);
  EXPECT_EQ(On("n1"), 0b1000u) << "the pool has moved";
  slices().Remove("", "s");
  EXPECT_EQ(On("n1"), 0u);
  EXPECT_EQ(all_.unknown(), 1u);
}

TEST_F(DeviceClaimsTest, TheNewestGenerationOfAPoolCounts) {
  slices().Put(Slice("new", "n1", "n1", {{"d", "", 2, "", -1}}, 5));
  slices().Put(Slice("old", "n1", "n1", {{"d", "", 1, "", -1}}, 4));
  claims().Put(Claim("a", {{"n1", "d"}}));
  EXPECT_EQ(On("n1"), 0b0100u);
}

TEST_F(DeviceClaimsTest, WhatIsKnownOfAnInstanceComesAlong) {
  slices().Put(Slice("s", "n1", "n1", {{"gpu-0-mig-1g5gb-19-6", "GPU-x", 0, "1g.5gb", 6}}));
  claims().Put(Claim("a", {{"n1", "gpu-0-mig-1g5gb-19-6"}}));
  const auto snapshot = state_.Current();
  EXPECT_EQ(*snapshot->node(0).claims(),
            (std::vector<ClaimedGpu>{{"ns/a", "gpu-0-mig-1g5gb-19-6", "GPU-x", 0, "1g.5gb", 6}}));
}

TEST_F(DeviceClaimsTest, PoolsOfOneNodeAddUp) {
  slices().Put(Slice("s1", "p1", "n1", {{"d", "", 0, "", -1}}));
  slices().Put(Slice("s2", "p2", "n1", {{"d", "", 1, "", -1}}));
  claims().Put(Claim("a", {{"p1", "d"}}));
  claims().Put(Claim("b", {{"p2", "d"}, {"n2", "gpu-0"}}));
  EXPECT_EQ(On("n1"), 0b0011u);
  EXPECT_EQ(On("n2"), 0b0001u);
  claims().Remove("ns", "b");
  EXPECT_EQ(On("n1"), 0b0001u);
  EXPECT_EQ(On("n2"), 0u);
}

TEST_F(DeviceClaimsTest, AListReplacesEverythingAtOnce) {
  claims().Put(Claim("a", {{"n1", "gpu-0"}}));
  claims().Put(Claim("b", {{"n2", "gpu-0"}}));
  slices().Put(Slice("s", "n1", "n1", {{"gpu-0", "", 3, "", -1}}));
  EXPECT_EQ(On("n1"), 0b1000u);
  slices().Reset({});
  EXPECT_EQ(On("n1"), 0b0001u);
  claims().Reset({Claim("c", {{"n1", "gpu-1"}})});
  EXPECT_EQ(On("n1"), 0b0010u);
  EXPECT_EQ(On("n2"), 0u);
  claims().Reset({});
  EXPECT_EQ(On("n1"), 0u);
}

}  // namespace
}  // namespace berth::kube
