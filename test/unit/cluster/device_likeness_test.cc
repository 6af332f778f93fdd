// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_offers.h"

#include <functional>
#include <memory>

#include <gtest/gtest.h>

namespace berth::test::device_likeness_test {
namespace {

using Change = std::function<void(PublishedSlice&)>;

// A pool of two devices, changed.
Digest Of(const Change& change = [](PublishedSlice&) {}) {
  auto slice = std::make_shared<PublishedSlice>();
  slice->name = "slice";
  slice->driver = "d";
  slice->pool = "pool";
  slice->slices_in_pool = 1;
  slice->counters = {{"s", "c", 1000}};
  for (const char* const name : {"gpu-0", "gpu-1"}) {
    PublishedDevice device{.name = name, .seen = cel::Device("d"), .taints = {}, .consumes = {}};
    device.seen.SetAttribute("uuid", std::string("GPU-") + name);
    device.seen.SetAttribute("parentUUID", std::string("GPU-parent"));
    device.seen.SetAttribute("model", std::string("H100"));
    device.seen.SetAttribute("numaNode", std::int64_t{0});
    device.seen.SetAttribute("driverVersion", *cel::Version::Parse("580.1.2-rc.1"));
    device.seen.SetAttribute("lanes", std::vector<std::int64_t>{1, 2});
    device.seen.SetCapacity("memory", *cel::Amount::Parse("80Gi"));
    slice->devices.push_back(std::move(device));
  }
  change(*slice);
  const DevicePools pools = GatherPools({slice});
  EXPECT_EQ(pools.front().likeness, LikenessOf(pools.front()));
  return pools.front().likeness;
}

Change Sets(const std::string& id, const cel::AttributeValue& value) {
  return [=](PublishedSlice& slice) { slice.devices[1].seen.SetAttribute(id, value); };
}

TEST(DeviceLikeness, NamesOfThePoolAndTheNodeAndWhatIsADevicesOwnDoNotMatter) {
  EXPECT_EQ(Of(), Of([](PublishedSlice& slice) {
              slice.name = "other";
              slice.pool = "other";
              slice.node = "other";
              slice.generation = 7;
            }));
  EXPECT_EQ(Of(), Of(Sets("uuid", std::string("GPU-x"))));
}

TEST(DeviceLikeness, WhichDevicesHaveTheSameMatters) {
  EXPECT_NE(Of(), Of(Sets("uuid", std::string("GPU-gpu-0"))));
  EXPECT_NE(Of(), Of(Sets("parentUUID", std::string("GPU-another"))));
  EXPECT_NE(Of(), Of(Sets("pciBusID", std::string("0000:01:00.0")))) << "the other has none";
}

TEST(DeviceLikeness, EverythingElseMatters) {
  const std::vector<Change> changes = {
      Sets("model", std::string("A100")),
      Sets("numaNode", std::int64_t{1}),
      Sets("numaNode", std::string("0")),
      Sets("other.domain/numaNode", std::int64_t{0}),
      Sets("driverVersion", *cel::Version::Parse("580.1.2-rc.2")),
      Sets("lanes", std::vector<std::int64_t>{1, 3}),
      Sets("new", true),
      [](PublishedSlice& s) { s.devices[1].name = "gpu-2"; },
      [](PublishedSlice& s) { s.devices.pop_back(); },
      [](PublishedSlice& s) { std::swap(s.devices[0], s.devices[1]); },
      [](PublishedSlice& s) {
        s.devices[1].taints = {{"k", "v", TaintEffect::kNoExecute}};
      },
      [](PublishedSlice& s) { s.devices[1].divisible = true; },
      [](PublishedSlice& s) { s.devices[1].binds = true; },
      [](PublishedSlice& s) { s.slices_in_pool = 2; },
      [](PublishedSlice& s) { s.in_part = true; },
      [](PublishedSlice& s) { s.counters[0].milli = 2000; },
      [](PublishedSlice& s) {
        s.devices[1].seen.SetCapacity("memory", *cel::Amount::Parse("81Gi"));
      },
      [](PublishedSlice& s) {
        s.devices[1].consumes =
            std::make_shared<const ConsumedCounters>(ConsumedCounters{{"s", "c", 500}});
      }};
  std::vector<Digest> seen = {Of()};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Digest changed = Of(changes[i]);
    for (const Digest& other : seen) EXPECT_NE(changed, other) << "change " << i;
    seen.push_back(changed);
  }
}

}  // namespace
}  // namespace berth::test::device_likeness_test
