// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_claims.h"

#include <bit>

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::dialects::device_claims_test {
namespace {

using dialects::GpuDevice;
using dialects::ResourceClaim;
using dialects::ResourceSlice;

ResourceClaim Claim(const std::string& name, std::vector<dialects::ClaimedDevice> devices) {
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

  // The offered GPU of the node at that position.
  OfferedGpu Offered(const std::string& node, std::size_t position = 0) {
    const auto offers = offers_.Current();
    const auto gpus = offers->find(node);
    EXPECT_TRUE(gpus != offers->end() && gpus->second->size() > position);
    return gpus == offers->end() ? OfferedGpu() : gpus->second->at(position);
  }

  NodeMig Mig(const std::string& node) {
    const auto snapshot = state_.Current();
    return snapshot->node(snapshot->names().Find(node)).spec().mig;
  }
  MigUse Use(const std::string& node) {
    const auto snapshot = state_.Current();
    return snapshot->node(snapshot->names().Find(node)).mig();
  }

  ClusterState state_;
  MigOffers offers_;
  DeviceClasses classes_;
  DeviceOffers devices_;
  OpenClaims open_;
  std::vector<std::string> told_;
  DeviceClaims all_{{state_, offers_, classes_, devices_, open_},
                    true,
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

// An A100-40GB that is cut when a claim is allocated, by some of its devices.
GpuDevice Instance(int gpu, const std::string& profile, int start, int units,
                   const std::string& uuid = "") {
  GpuDevice device{"gpu-" + std::to_string(gpu) + "-mig-" + profile + "-" + std::to_string(start),
                   uuid, gpu, profile, start};
  device.units = static_cast<MigUnits>(((1U << units) - 1) << start);
  device.product = "NVIDIA A100-SXM4-40GB";
  return device;
}
std::vector<GpuDevice> Instances(int gpu, const std::string& uuid = "") {
  return {Instance(gpu, "1g.5gb", 0, 1, uuid), Instance(gpu, "1g.5gb", 6, 1, uuid),
          Instance(gpu, "3g.20gb", 0, 4, uuid), Instance(gpu, "3g.20gb", 4, 4, uuid)};
}

TEST_F(DeviceClaimsTest, KnowsWhatSlicesOfferAndWhatClaimsHold) {
  slices().Put(Slice("s", "n1", "n1", Instances(2, "GPU-x")));
  EXPECT_EQ(Offered("n1").product->name(), "A100-40GB");
  EXPECT_EQ(std::popcount(Offered("n1").Free()), 4);
  claims().Put(Claim("a", {{"n1", "gpu-2-mig-3g.20gb-4"}}));
  const OfferedGpu gpu = Offered("n1");
  EXPECT_EQ(gpu.product->UnitsOf(gpu.taken), 0b1111'0000u);
  EXPECT_EQ(gpu.product->UnitsOf(gpu.Free()), 0b0000'1111u);
  EXPECT_EQ(On("n1"), 0b0100u) << "to pods that Berth gives GPUs it is taken whole";
  claims().Put(Claim("a", {}));
  EXPECT_EQ(Offered("n1").taken, 0u);
  slices().Remove("", "s");
  EXPECT_TRUE(offers_.Current()->empty());
}

TEST_F(DeviceClaimsTest, NothingIsFreeOnAGpuHeldWholeOrByAnUnknownDevice) {
  slices().Put(Slice("s", "n1", "n1", Instances(0)));
  for (const char* device : {"gpu-0", "gpu-0-mig-of-an-older-slice"}) {
    claims().Put(Claim("a", {{"n1", device}}));
    EXPECT_EQ(Offered("n1").Free(), 0u) << device;
    claims().Remove("ns", "a");
    EXPECT_NE(Offered("n1").Free(), 0u);
  }
}

TEST_F(DeviceClaimsTest, OnlyTheNewestGenerationOfAPoolIsOffered) {
  slices().Put(Slice("old", "n1", "n1", Instances(0), 4));
  slices().Put(Slice("new", "n1", "n1", Instances(1), 5));
  EXPECT_EQ(Offered("n1").index, 1);
  EXPECT_EQ(offers_.Current()->at("n1")->size(), 1u);
}

TEST_F(DeviceClaimsTest, AGpuOfNoKnownProductIsToldAndNotOffered) {
  std::vector<GpuDevice> devices = Instances(0);
  devices.push_back(Instance(1, "1g.5gb", 0, 2));  // it has one unit on every product
  slices().Put(Slice("s", "n1", "n1", devices));
  EXPECT_EQ(offers_.Current()->at("n1")->size(), 1u);
  EXPECT_EQ(all_.unknown_pools(), 1u);
  EXPECT_EQ(told_, std::vector<std::string>{
                       "n1: GPU of gpu-1-mig-1g.5gb-0 (\"NVIDIA A100-SXM4-40GB\"): want the MIG "
                       "devices of a GPU product that is known, got 1 that none has"});
  slices().Remove("", "s");
  EXPECT_EQ(all_.unknown_pools(), 0u);
}

TEST_F(DeviceClaimsTest, ATaintedDeviceTellsTheProductAndIsNotOffered) {
  std::vector<GpuDevice> devices = Instances(0);
  devices[1].tainted = true;
  slices().Put(Slice("s", "n1", "n1", devices));
  EXPECT_EQ(std::popcount(Offered("n1").Free()), 3);
}

TEST_F(DeviceClaimsTest, InstancesThatAreThereForGoodAreNotOffered) {
  slices().Put(Slice("s", "n1", "n1", {{"gpu-0-mig-x", "", 0, "1g.5gb", -1}}));
  EXPECT_TRUE(offers_.Current()->empty());
  EXPECT_EQ(all_.unknown_pools(), 0u);
}

TEST_F(DeviceClaimsTest, ClaimsOfOneDeviceAreTold) {
  slices().Put(Slice("s", "n1", "n1", Instances(0)));
  claims().Put(Claim("a", {{"n1", "gpu-0-mig-1g.5gb-6"}}));
  EXPECT_EQ(all_.overlapping(), 0u);
  claims().Put(Claim("b", {{"n1", "gpu-0-mig-3g.20gb-4"}}));
  EXPECT_EQ(all_.overlapping(), 1u);
  EXPECT_EQ(told_, std::vector<std::string>{"ns/b: device gpu-0-mig-3g.20gb-4 of node n1: another "
                                            "claim has a part of it"});
  claims().Remove("ns", "a");
  EXPECT_EQ(all_.overlapping(), 0u);
}

TEST_F(DeviceClaimsTest, AWholeGpuInTwoClaimsIsTold) {
  slices().Put(Slice("s", "n1", "n1", {{"gpu-0", "GPU-x", 0, "", -1}}));
  claims().Put(Claim("a", {{"n1", "gpu-0"}}));
  claims().Put(Claim("b", {{"n1", "gpu-1"}}));
  claims().Put(Claim("c", {{"n2", "gpu-0"}}));
  EXPECT_EQ(all_.overlapping(), 0u);
  claims().Put(Claim("b", {{"n1", "gpu-0"}}));
  EXPECT_EQ(all_.overlapping(), 1u);
  EXPECT_EQ(all_.collisions(),
            (std::vector<DeviceClaims::Collision>{{"n1", "ns/a", "gpu-0", "ns/b", "gpu-0"}}));
  claims().Remove("ns", "a");
  EXPECT_EQ(all_.overlapping(), 0u);
  EXPECT_TRUE(all_.collisions().empty());
}

TEST_F(DeviceClaimsTest, PartsBeyondWhatADeviceHasAreToldOfTheLastAndTheLargest) {
  auto published = std::make_shared<PublishedSlice>();
  published->name = published->pool = published->node = "n1";
  published->driver = kGpuDriver;
  published->slices_in_pool = 1;
  PublishedDevice device{
      .name = "gpu-0", .seen = cel::Device("gpu.nvidia.com"), .taints = {}, .consumes = {}};
  device.divisible = true;
  device.capacity = std::make_shared<const DeviceCapacities>(
      DeviceCapacities{{.name = "gpu.nvidia.com/memory", .there_is = 80}});
  published->devices.push_back(device);
  ResourceSlice slice = Slice("n1", "n1", "n1", {{"gpu-0", "GPU-x", 0, "", -1}});
  slice.published = std::move(published);
  slices().Put(slice);
  const auto has = [this](const std::string& name, std::int64_t milli) {
    claims().Put(Claim(name, {{"n1", "gpu-0", true, "", {{"gpu.nvidia.com/memory", milli}}}}));
  };
  has("a", 30);
  has("b", 40);
  has("c", 10);
  EXPECT_EQ(all_.overlapping(), 0u) << "all of it, and no more";
  has("d", 20);
  has("e", 20);
  using Collisions = std::vector<DeviceClaims::Collision>;
  EXPECT_EQ(all_.collisions(), (Collisions{{"n1", "ns/b", "gpu-0", "ns/d", "gpu-0", "memory"},
                                           {"n1", "ns/b", "gpu-0", "ns/e", "gpu-0", "memory"}}));
  EXPECT_EQ(told_.back(),
            "ns/e: device gpu-0 of node n1: claims have more of its memory than there is");
  claims().Remove("ns", "b");
  EXPECT_EQ(all_.overlapping(), 0u);
  has("a", 81);
  claims().Remove("ns", "c");
  EXPECT_EQ(all_.overlapping(), 2u) << "a alone has more than there is";
}

TEST_F(DeviceClaimsTest, WhatClaimsHaveOfASharedDeviceIsKnownOnTheNode) {
  slices().Put(Slice("s", "n1", "n1", {{"gpu-0", "GPU-x", 0, "", -1}}));
  claims().Put(Claim("a", {{"n1", "gpu-0", true, "", {{"memory", 5000}}}}));
  const auto held = state_.Current()->node(0).claims();
  ASSERT_TRUE(held != nullptr && held->size() == 1);
  EXPECT_TRUE(held->front().shared);
  EXPECT_EQ(held->front().parts, (OtherResources{{"memory", 5000}}));
}

TEST_F(DeviceClaimsTest, ADeviceOfWhichClaimsHavePartsIsHeldUntilTheLastIsGone) {
  slices().Put(Slice("s", "n1", "n1", Instances(0)));
  claims().Put(Claim("a", {{"n1", "gpu-0", true}}));
  claims().Put(Claim("b", {{"n1", "gpu-0", true}}));
  EXPECT_EQ(On("n1"), 0b0001u);
  EXPECT_EQ(Offered("n1").Free(), 0u);
  EXPECT_EQ(all_.overlapping(), 0u) << "they share it";
  claims().Remove("ns", "a");
  EXPECT_EQ(On("n1"), 0b0001u);
  EXPECT_EQ(Offered("n1").Free(), 0u);
  claims().Put(Claim("b", {}));
  EXPECT_EQ(On("n1"), 0u);
  EXPECT_NE(Offered("n1").Free(), 0u);
}

TEST_F(DeviceClaimsTest, WhoHasAllOfADeviceBesideThoseWithPartsIsTold) {
  slices().Put(Slice("s", "n1", "n1", Instances(0)));
  claims().Put(Claim("a", {{"n1", "gpu-0", true}}));
  claims().Put(Claim("b", {{"n1", "gpu-0", true}}));
  claims().Put(Claim("c", {{"n1", "gpu-0-mig-1g.5gb-6"}}));
  EXPECT_EQ(all_.overlapping(), 1u);
  claims().Remove("ns", "c");
  EXPECT_EQ(all_.overlapping(), 0u);
}

TEST_F(DeviceClaimsTest, ADeviceThatMayBeHadInPartsIsNotOfferedWhole) {
  std::vector<GpuDevice> devices = Instances(0);
  devices[1].divisible = true;
  slices().Put(Slice("s", "n1", "n1", devices));
  EXPECT_EQ(std::popcount(Offered("n1").Free()), 3);
}

DeviceClass ClassOf(const std::string& profile) {
  return {"", "of-" + profile, "nvidia.com/mig-" + profile, "", test::ProfileOf(profile)};
}

// A rule's status is written all the time.
TEST_F(DeviceClaimsTest, AWriteOfATaintRuleThatTaintsNothingElsePublishesNothing) {
  slices().Put(Slice("s", "n1", "n1", Instances(0)));
  all_.classes().Reset({ClassOf("1g.5gb")});
  ASSERT_TRUE(Mig("n1").known());
  dialects::DeviceTaintRule rule;
  rule.name = "r";
  rule.selects = true;
  rule.taint = Taint{"broken", "", TaintEffect::kNoExecute};
  all_.taint_rules().Put(rule);
  const auto before = state_.Current();
  all_.taint_rules().Put(rule);
  all_.taint_rules().Reset({rule});
  rule.name = "of-another-pool";
  rule.pool = "n2";
  all_.taint_rules().Put(rule);
  all_.taint_rules().Remove("", "of-another-pool");
  EXPECT_EQ(state_.Current(), before);
}

TEST_F(DeviceClaimsTest, WhatResourcesStandForIsTheNodesWhicheverComesFirst) {
  slices().Put(Slice("s", "n1", "n1", Instances(2)));
  EXPECT_FALSE(Mig("n1").known()) << "no resource stands for it";
  all_.classes().Reset({ClassOf("3g.20gb")});
  ASSERT_TRUE(Mig("n1").known());
  EXPECT_TRUE(Mig("n1")->by_claims());
  EXPECT_EQ(std::popcount(Mig("n1")->Free(0, 0)), 2);
  all_.classes().Put(ClassOf("1g.5gb"));
  EXPECT_EQ(std::popcount(Mig("n1")->Free(0, 0)), 4);
  slices().Put(Slice("t", "n2", "n2", Instances(0)));
  EXPECT_EQ(std::popcount(Mig("n2")->Free(0, 0)), 4);
  slices().Remove("", "s");
  EXPECT_FALSE(Mig("n1").known());
  all_.classes().Remove("", "of-3g.20gb");
  EXPECT_EQ(std::popcount(Mig("n2")->Free(0, 0)), 2);
  all_.classes().Reset({});
  EXPECT_FALSE(Mig("n2").known());
}

TEST_F(DeviceClaimsTest, TheClaimThatIsMadeForAPodHoldsItsDevicesOnce) {
  slices().Put(Slice("s", "n1", "n1", Instances(0)));
  all_.classes().Put(ClassOf("3g.20gb"));
  const test::APod pod = test::APod("p").Mig("3g.20gb");
  const ClusterEvent bound = PodBound{pod.Request(), pod.On("n1")};
  ASSERT_TRUE(state_.Apply(std::span(&bound, 1)));
  EXPECT_EQ(Use("n1").taken()[0], 0u);
  claims().Put(Claim("p-extended-resources-x", {{"n1", "gpu-0-mig-3g.20gb-4"}}));
  EXPECT_EQ(std::popcount(Use("n1").taken()[0]), 1);
  claims().Remove("ns", "p-extended-resources-x");
  EXPECT_EQ(Use("n1").taken()[0], 0u);
}

TEST_F(DeviceClaimsTest, DevicesBeyondTheBoundAreNotKept) {
  const auto slice_of = [](const std::string& node) {
    auto published = std::make_shared<PublishedSlice>();
    published->name = published->pool = published->node = node;
    published->driver = kGpuDriver;
    published->slices_in_pool = 1;
    for (const std::string type : {"gpu", "mig"}) {
      PublishedDevice device{
          .name = type, .seen = cel::Device(published->driver), .taints = {}, .consumes = {}};
      device.seen.SetAttribute("type", type);
      published->devices.push_back(std::move(device));
    }
    ResourceSlice slice = Slice(node, node, node, {});
    slice.published = std::move(published);
    return slice;
  };
  const std::size_t one = OwnBytes(*slice_of("n1").published);
  std::vector<std::string> told;
  ClusterState state;
  MigOffers offers;
  DeviceClasses classes;
  DeviceOffers devices;
  OpenClaims open;
  DeviceClaims small(
      {state, offers, classes, devices, open}, true,
      [&told](std::string_view, std::string_view object, const std::string&) {
        told.emplace_back(object);
      },
      one);
  small.slices().Put(slice_of("n1"));
  small.slices().Put(slice_of("n2"));
  EXPECT_TRUE(devices.Current()->contains("n1"));
  EXPECT_FALSE(devices.Current()->contains("n2")) << "nothing is chosen there";
  EXPECT_TRUE(devices.in_part());
  EXPECT_EQ(told, std::vector<std::string>{"n2"});
  EXPECT_EQ(small.unknown_pools(), 1u);
  small.slices().Remove("", "n1");
  small.slices().Put(slice_of("n2"));
  EXPECT_TRUE(devices.Current()->contains("n2"));
  EXPECT_FALSE(devices.in_part());
  EXPECT_EQ(small.unknown_pools(), 0u);
}

}  // namespace
}  // namespace berth::dialects::device_claims_test
