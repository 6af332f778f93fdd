// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_offers.h"

#include <gtest/gtest.h>

namespace berth::test::shared_devices_test {
namespace {

PublishedSlice ASlice(const std::string& uuid) {
  PublishedSlice slice;
  PublishedDevice device{.name = "gpu-0", .seen = cel::Device("d"), .taints = {}, .consumes = {}};
  device.seen.SetAttribute("uuid", uuid);
  device.seen.SetAttribute("model", std::string("H100"));
  device.seen.SetAttribute("numa", std::int64_t{1});
  device.seen.SetCapacity("memory", *cel::Amount::Parse("80Gi"));
  device.consumes = std::make_shared<const ConsumedCounters>(ConsumedCounters{{"s", "c", 1000}});
  slice.devices.push_back(std::move(device));
  return slice;
}

const void* At(const PublishedSlice& slice, const std::string& id) {
  return slice.devices[0].seen.attribute("d", id);
}

TEST(SharedDevices, WhatIsAlikeIsKeptOnceAndTheRestIsAsItWas) {
  SharedDevices shared;
  PublishedSlice a = ASlice("GPU-a"), b = ASlice("GPU-b");
  shared.Share(a);
  shared.Share(b);
  EXPECT_EQ(At(a, "model"), At(b, "model"));
  EXPECT_EQ(At(a, "numa"), At(b, "numa"));
  EXPECT_NE(At(a, "uuid"), At(b, "uuid"));
  EXPECT_EQ(a.devices[0].consumes, b.devices[0].consumes);
  EXPECT_EQ(*b.devices[0].seen.attribute("d", "uuid"), cel::AttributeValue(std::string("GPU-b")));
}

TEST(SharedDevices, AmountsThatAreWrittenInOtherWaysAreOne) {
  SharedDevices shared;
  PublishedSlice a = ASlice("a"), b = ASlice("b");
  b.devices[0].seen.SetCapacity("memory", *cel::Amount::Parse("81920Mi"));
  shared.Share(a);
  shared.Share(b);
  EXPECT_EQ(b.devices[0].seen.capacity()[0].entries[0], a.devices[0].seen.capacity()[0].entries[0]);
}

TEST(SharedDevices, ADeviceThatChangesLeavesTheOthers) {
  SharedDevices shared;
  PublishedSlice a = ASlice("a"), b = ASlice("b");
  shared.Share(a);
  shared.Share(b);
  b.devices[0].seen.SetAttribute("model", std::string("A100"));
  EXPECT_EQ(*a.devices[0].seen.attribute("d", "model"), cel::AttributeValue(std::string("H100")));
}

TEST(SharedDevices, ValuesThatNoDeviceHasAnyMoreAreForgotten) {
  cel::SharedValues shared;
  for (int i = 0; i < 10'000; ++i) {
    cel::Device device("d");
    device.SetAttribute("uuid", "GPU-" + std::to_string(i));
    shared.Share(device);
  }
  EXPECT_LE(shared.size(), 1100u);
}

}  // namespace
}  // namespace berth::test::shared_devices_test
