// SPDX-License-Identifier: Apache-2.0
//
// ResourceSlices and ResourceClaims as NVIDIA's driver and kube-scheduler write them, in the shapes
// of Kubernetes 1.34 and of 1.35 on.
#include "server/dialects/dra/dra_json.h"

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::wire::dra_json_test {
namespace {

using dialects::ClaimedDevice;
using dialects::DecodeResourceClaim;
using dialects::DecodeResourceSlice;
using dialects::GpuDevice;
using dialects::GpuIndexIn;
using dialects::ResourceClaim;
using dialects::ResourceSlice;
using test::Json;

constexpr char kUuid[] = "GPU-00000000-0000-0000-0000-000000000001";

Json Text(const std::string& text) { return {{"string", text}}; }

Json WholeGpu(int number) {
  return {{"name", "gpu-" + std::to_string(number)},
          {"attributes",
           {{"type", Text("gpu")},
            {"uuid", Text(kUuid)},
            {"productName", Text("NVIDIA A100-SXM4-40GB")},
            {"driverVersion", {{"version", "580.1.0"}}}}},
          {"capacity", {{"memory", {{"value", "40192Mi"}}}}}};
}

// An instance that begins at that slice and has so many, of GPU 0.
Json Instance(const std::string& name, const std::string& profile, int start, int slices) {
  Json counters = {{"multiprocessors", {{"value", "14"}}}, {"memory", {{"value", "4864Mi"}}}};
  for (int i = start + slices - 1; i >= start; --i) {
    counters["memory-slice-" + std::to_string(i)] = {{"value", "1"}};
  }
  return {{"name", name},
          {"attributes",
           {{"type", Text("mig")}, {"profile", Text(profile)}, {"parentUUID", Text(kUuid)}}},
          {"consumesCounters",
           Json::array({{{"counterSet", "gpu-0-counter-set"}, {"counters", counters}}})}};
}

Json Slice(const Json& devices) {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceSlice"},
          {"metadata", {{"name", "node-a-gpu.nvidia.com-g0"}, {"resourceVersion", "7"}}},
          {"spec",
           {{"driver", "gpu.nvidia.com"},
            {"nodeName", "node-a"},
            {"pool", {{"name", "node-a"}, {"generation", 3}, {"resourceSliceCount", 2}}},
            {"devices", devices}}}};
}

Json Counters() {
  return Json::array(
      {{{"name", "gpu-0-counter-set"}, {"counters", {{"memory-slice-0", {{"value", "1"}}}}}}});
}

Result<ResourceSlice> Decode(const Json& slice) {
  return DecodeResourceSlice(test::Padded(slice.dump()));
}

void ExpectDevice(const GpuDevice& device, const std::string& name, int index,
                  const std::string& profile, int start) {
  EXPECT_EQ(device.name, name);
  EXPECT_EQ(device.uuid, kUuid);
  EXPECT_EQ(device.index, index);
  EXPECT_EQ(device.profile, profile);
  EXPECT_EQ(device.start, start);
}

TEST(DraJson, ASliceSaysWhichGpuADeviceIs) {
  const auto slice = Decode(Slice({WholeGpu(11), Instance("gpu-0-mig-1g5gb-19-6", "1g.5gb", 6, 1),
                                   Instance("gpu-0-mig-3g20gb-9-4", "3g.20gb", 4, 4)}));
  ASSERT_TRUE(slice) << slice.error().message;
  EXPECT_EQ(slice->name, "node-a-gpu.nvidia.com-g0");
  EXPECT_EQ(slice->pool, "node-a");
  EXPECT_EQ(slice->node, "node-a");
  EXPECT_EQ(slice->generation, 3);
  ASSERT_EQ(slice->devices.size(), 3u);
  ExpectDevice(slice->devices[0], "gpu-0-mig-1g5gb-19-6", 0, "1g.5gb", 6);
  ExpectDevice(slice->devices[1], "gpu-0-mig-3g20gb-9-4", 0, "3g.20gb", 4);
  ExpectDevice(slice->devices[2], "gpu-11", 11, "", -1);
}

TEST(DraJson, ReadsMemorySlicesProductAndTaintsOfADevice) {
  Json device = Instance("gpu-0-mig-3g20gb-9-4", "3g.20gb", 4, 4);
  device["attributes"]["productName"] = Text("NVIDIA A100-SXM4-40GB");
  auto read = Decode(Slice(Json::array({device})))->devices.at(0);
  EXPECT_EQ(read.units, 0b1111'0000u);
  EXPECT_EQ(read.product, "NVIDIA A100-SXM4-40GB");
  EXPECT_FALSE(read.tainted);
  device["taints"] = Json::array({{{"key", "a"}, {"effect", "None"}}});
  EXPECT_FALSE(Decode(Slice(Json::array({device})))->devices.at(0).tainted);
  device["taints"].push_back({{"key", "b"}, {"value", "c"}, {"effect", "NoSchedule"}});
  EXPECT_TRUE(Decode(Slice(Json::array({device})))->devices.at(0).tainted);
}

TEST(DraJson, CountersMayBeBesideTheDevicesOrInASliceOfTheirOwn) {
  Json both = Slice(Json::array({Instance("gpu-0-mig-1g5gb-19-6", "1g.5gb", 6, 1)}));
  both["spec"]["sharedCounters"] = Counters();
  EXPECT_EQ(Decode(both)->devices.size(), 1u) << "1.34";
  Json counters_alone = Slice(nullptr);
  counters_alone["spec"]["sharedCounters"] = Counters();
  const auto slice = Decode(counters_alone);
  ASSERT_TRUE(slice) << "1.35: " << slice.error().message;
  EXPECT_TRUE(slice->devices.empty());
}

TEST(DraJson, OldSlicesHaveTheDeviceInABasicOne) {
  Json device = Instance("gpu-0-mig-1g5gb-19-6", "1g.5gb", 6, 1);
  const Json name = device["name"];
  device.erase("name");
  const auto slice = Decode(Slice(Json::array({{{"name", name}, {"basic", device}}})));
  ASSERT_TRUE(slice && slice->devices.size() == 1);
  ExpectDevice(slice->devices[0], "gpu-0-mig-1g5gb-19-6", 0, "1g.5gb", 6);
}

TEST(DraJson, AttributesMayBearTheDriversDomain) {
  Json device = WholeGpu(0);
  device["attributes"] = {{"gpu.nvidia.com/type", Text("gpu")},
                          {"gpu.nvidia.com/uuid", Text(kUuid)},
                          {"other.com/uuid", Text("x")},
                          {"resource.kubernetes.io/pcieRoot", Text("pci0000:15")}};
  ExpectDevice(Decode(Slice(Json::array({device})))->devices.at(0), "gpu-0", 0, "", -1);
}

TEST(DraJson, DevicesOfOtherDriversAreNoneOfOurs) {
  Json other = Slice(Json::array({WholeGpu(0)}));
  other["spec"]["driver"] = "compute-domain.nvidia.com";
  EXPECT_TRUE(Decode(other)->devices.empty());
}

TEST(DraJson, NamesTellTheGpu) {
  EXPECT_EQ(GpuIndexIn("gpu-0"), 0);
  EXPECT_EQ(GpuIndexIn("gpu-12-mig-1g10gb-me-20-0"), 12);
  EXPECT_EQ(GpuIndexIn("gpu-vfio-3"), 3);
  for (const char* name : {"", "gpu", "gpu-", "gpu-x", "gpu-1x", "gpu-64", "GPU-0", "mig-0",
                           "gpu--1", "gpu-99999999999999999999"}) {
    EXPECT_EQ(GpuIndexIn(name), -1) << name;
  }
}

TEST(DraJson, WhatIsNoSliceIsAnError) {
  const auto message = [](const Json& slice) {
    const auto decoded = Decode(slice);
    return decoded ? "" : decoded.error().message;
  };
  Json slice = Slice(Json::array({WholeGpu(0)}));
  slice["kind"] = "Pod";
  EXPECT_EQ(message(slice), "kind: want ResourceSlice, got \"Pod\"");
  slice = Slice(Json::array({WholeGpu(0)}));
  slice["spec"]["pool"].erase("name");
  EXPECT_EQ(message(slice), "spec.pool.name: want a name, got \"\"");
  slice = Slice(Json::array({WholeGpu(0)}));
  slice["spec"].erase("driver");
  EXPECT_EQ(message(slice), "spec.driver: want a name, got \"\"");
  slice = Slice(Json::array({WholeGpu(0)}));
  slice["spec"]["devices"][0].erase("name");
  EXPECT_EQ(message(slice), "spec.devices: want a name of each, got 1 without");
  slice = Slice(Json::array({WholeGpu(0)}));
  slice["metadata"].erase("name");
  EXPECT_EQ(message(slice), "metadata.name: want a name, got \"\"");
  EXPECT_FALSE(Decode(Slice("all")));
  EXPECT_FALSE(DecodeResourceSlice(test::Padded("{")));
  slice = Slice(Json::array({WholeGpu(0)}));
  slice["spec"]["devices"][0]["attributes"]["uuid"] = 7;
  EXPECT_FALSE(Decode(slice));
}

Json AllocatedClaim(const Json& results) {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", {{"name", "c"}, {"namespace", "ns"}, {"uid", "u"}}},
          {"spec", {{"devices", {{"requests", Json::array({{{"name", "r"}}})}}}}},
          {"status",
           {{"allocation", {{"devices", {{"results", results}}}}},
            {"reservedFor", Json::array({{{"resource", "pods"}, {"name", "p"}, {"uid", "x"}},
                                         {{"resource", "pods"}, {"name", "q"}, {"uid", "y"}}})}}}};
}

Json Held(const std::string& device) {
  return {{"request", "r"}, {"driver", "gpu.nvidia.com"}, {"pool", "n1"}, {"device", device}};
}

Result<ResourceClaim> DecodeClaim(const Json& claim) {
  return DecodeResourceClaim(test::Padded(claim.dump()));
}

TEST(DraJson, AClaimHoldsWhatIsAllocatedToItFromTheGpuDriver) {
  Json other = Held("channel-0"), watching = Held("gpu-2");
  other["driver"] = "compute-domain.nvidia.com";
  watching["adminAccess"] = true;
  const auto claim = DecodeClaim(AllocatedClaim({Held("gpu-0"), other, watching, Held("gpu-1")}));
  ASSERT_TRUE(claim) << claim.error().message;
  EXPECT_EQ(claim->namespace_name, "ns");
  EXPECT_EQ(claim->name, "c");
  ASSERT_EQ(claim->devices.size(), 2u);
  EXPECT_EQ(claim->devices[0].pool, "n1");
  EXPECT_EQ(claim->devices[0].device, "gpu-0");
  EXPECT_EQ(claim->devices[1].device, "gpu-1");
}

// A claim as kube-scheduler leaves it, with the configuration for NVIDIA's driver to share the GPU
// among its users.
constexpr const char* kSharedByItsUsers = R"({
  "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
  "metadata": {"name": "shared-gpu", "namespace": "gpu-test5", "uid": "5d0e",
               "finalizers": ["resource.kubernetes.io/delete-protection"]},
  "spec": {"devices": {
    "requests": [{"name": "mps-gpu", "exactly": {"deviceClassName": "gpu.nvidia.com",
                  "allocationMode": "ExactCount", "count": 1}}],
    "config": [{"requests": ["mps-gpu"], "opaque": {"driver": "gpu.nvidia.com", "parameters": {
      "apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig",
      "sharing": {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 50,
                                                   "defaultPinnedDeviceMemoryLimit": "10Gi"}}}}}]}},
  "status": {
    "allocation": {"allocationTimestamp": "2026-08-24T08:20:42Z",
      "devices": {
        "config": [{"source": "FromClaim", "requests": ["mps-gpu"], "opaque": {
          "driver": "gpu.nvidia.com", "parameters": {"apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "GpuConfig", "sharing": {"strategy": "MPS"}}}}],
        "results": [{"request": "mps-gpu", "driver": "gpu.nvidia.com", "pool": "n1",
                     "device": "gpu-1", "adminAccess": null, "tolerations": []}]},
      "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}},
    "reservedFor": [{"resource": "pods", "name": "a", "uid": "1"},
                    {"resource": "pods", "name": "b", "uid": "2"}],
    "devices": [{"driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-1", "data": {}}]}})";

// By capacity (KEP-5075): two parts of one GPU, and all of another.
constexpr const char* kPartsByCapacity = R"({
  "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
  "metadata": {"name": "parts", "namespace": "gpu-share-memory", "uid": "77aa"},
  "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {
    "deviceClassName": "gpu.nvidia.com", "capacity": {"requests": {"memory": "4Gi"}}}}]}},
  "status": {"allocation": {"devices": {"results": [
    {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0",
     "shareID": "04f9a7e2-7c14-4b29-8d8c-8e8a57a4f0e6", "consumedCapacity": {"memory": "4Gi"}},
    {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-0",
     "shareID": "a2d9c8f0-15b4-43a5-9f0f-3b1f33a3f3f1", "consumedCapacity": {"memory": "4Gi"}},
    {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n1", "device": "gpu-3"}]}}}})";

TEST(DraJson, AClaimIsReadWithWhateverItsUsersShareItBy) {
  const auto by_users = DecodeResourceClaim(test::Padded(kSharedByItsUsers));
  ASSERT_TRUE(by_users) << by_users.error().message;
  EXPECT_EQ(by_users->devices, (std::vector<ClaimedDevice>{{"n1", "gpu-1"}}));
  const auto by_capacity = DecodeResourceClaim(test::Padded(kPartsByCapacity));
  ASSERT_TRUE(by_capacity) << by_capacity.error().message;
  EXPECT_EQ(by_capacity->devices,
            (std::vector<ClaimedDevice>{{"n1", "gpu-0", true, "", {{"memory", (8LL << 30) * 1000}}},
                                        {"n1", "gpu-3"}}))
      << "the parts of one device add up";
}

TEST(DraJson, ADeviceSaysWhetherSeveralClaimsMayHaveParts) {
  Json device = WholeGpu(0);
  EXPECT_FALSE(Decode(Slice(Json::array({device})))->devices[0].divisible);
  device["allowMultipleAllocations"] = true;
  device["capacity"]["memory"] = {
      {"value", "81920Mi"},
      {"requestPolicy",
       {{"default", "0"}, {"validRange", {{"min", "0"}, {"max", "81920Mi"}, {"step", "1Mi"}}}}}};
  const auto slice = Decode(Slice(Json::array({device})));
  EXPECT_TRUE(slice->devices[0].divisible);
  const DeviceCapacities& capacities = slice->published->devices[0].capacities();
  const auto memory = std::ranges::find(capacities, "memory", &DeviceCapacity::name);
  ASSERT_NE(memory, capacities.end());
  const std::int64_t mib = (1LL << 20) * 1000;
  EXPECT_EQ(*memory, (DeviceCapacity{.name = "memory",
                                     .there_is = 81920 * mib,
                                     .unasked = 0,
                                     .least = 0,
                                     .most = 81920 * mib,
                                     .step = mib}));
  device["capacity"]["memory"] = {{"value", "1"},
                                  {"requestPolicy", {{"validValues", {"1", 2, "100E"}}}}};
  const auto odd = Decode(Slice(Json::array({device})));
  const DeviceCapacities& read = odd->published->devices[0].capacities();
  const auto values = std::ranges::find(read, "memory", &DeviceCapacity::name);
  EXPECT_EQ(values->values, (std::vector<std::int64_t>{1000, 2000}));
  EXPECT_FALSE(values->is_exact) << "100E in thousandths is beyond 64 bits";
}

TEST(DraJson, AClaimThatIsNotAllocatedHoldsNothing) {
  Json claim = AllocatedClaim(Json::array());
  EXPECT_TRUE(DecodeClaim(claim)->devices.empty());
  claim["status"] = {{"allocation", nullptr}};
  EXPECT_TRUE(DecodeClaim(claim)->devices.empty());
  claim.erase("status");
  EXPECT_TRUE(DecodeClaim(claim)->devices.empty());
}

TEST(DraJson, WhatIsNoClaimIsAnError) {
  Json claim = AllocatedClaim({Held("gpu-0"), Held("")});
  EXPECT_EQ(DecodeClaim(claim).error().message,
            "status.allocation.devices.results[1]: want a pool and a device, got \"n1\" and \"\"");
  claim = AllocatedClaim(Json::array({Held("gpu-0")}));
  claim["kind"] = "ResourceSlice";
  EXPECT_EQ(DecodeClaim(claim).error().message, "kind: want ResourceClaim, got \"ResourceSlice\"");
  EXPECT_FALSE(DecodeClaim(AllocatedClaim("all")));
  EXPECT_FALSE(DecodeResourceClaim(test::Padded("[]")));
}

}  // namespace
}  // namespace berth::wire::dra_json_test
