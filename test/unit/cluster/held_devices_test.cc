// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/held_devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "test/support/random_world.h"

namespace berth::held_devices_test {
namespace {

PodRecord RecordOf(int number, const std::string& node, std::vector<DeviceGrant> grants) {
  PodRecord record;
  record.pod.id = {"u" + std::to_string(number), "ns", "p" + std::to_string(number)};
  record.placement = {node, 0, 0, std::move(grants)};
  return record;
}

// What is said of a GPU against the records that are there.
void ExpectSums(const HeldOnNode& there, const std::vector<const PodRecord*>& records, int gpu) {
  std::int64_t milli = 0, memory_mib = 0;
  int largest = 0;
  std::size_t parts = 0;
  for (const PodRecord* record : records) {
    for (const DeviceGrant& grant : record->placement.grants) {
      if (grant.gpu != gpu) continue;
      milli += grant.milli;
      memory_mib += grant.memory_mib;
      largest = std::max(largest, grant.milli);
      ++parts;
    }
  }
  ASSERT_EQ(there.PartsOf(gpu).size(), parts) << gpu;
  const HeldGpu* const held = there.Find(gpu);
  ASSERT_EQ(held != nullptr, parts > 0) << gpu;
  if (held == nullptr) return;
  EXPECT_EQ(held->milli, milli) << gpu;
  EXPECT_EQ(held->memory_mib, memory_mib) << gpu;
  EXPECT_EQ(there.PartsOf(gpu).front().milli, largest) << gpu;
}

// Pods come and go in any order; several name the same GPU, and one a GPU twice.
TEST(HeldDevices, SaysOfEachGpuWhatThePodsThatAreThereHold) {
  constexpr int kGpus = 8;
  test::RandomWorld world(7);
  std::deque<PodRecord> all;
  std::vector<const PodRecord*> there;
  HeldDevices held;
  for (int step = 0; step < 2000; ++step) {
    if (there.empty() || world.Chance(there.size() < 40 ? 60 : 40)) {
      std::vector<DeviceGrant> grants;
      for (int i = world.Between(0, 3); i > 0; --i) {
        grants.push_back(
            {world.Between(-1, kGpus - 1), 100 * world.Between(1, 10), 1000 * world.Between(0, 3)});
      }
      there.push_back(&all.emplace_back(RecordOf(step, "n", std::move(grants))));
      held.Add(*there.back(), nullptr);
    } else {
      const auto leaves = there.begin() + world.Between(0, static_cast<int>(there.size()) - 1);
      held.Remove(**leaves, nullptr);
      held.Remove(**leaves, nullptr);  // it is not there any more
      there.erase(leaves);
    }
    for (int gpu = 0; gpu < kGpus; ++gpu) ExpectSums(held.On("n"), there, gpu);
  }
  for (const PodRecord* record : there) held.Remove(*record, nullptr);
  EXPECT_TRUE(held.On("n").empty());
}

TEST(HeldDevices, TellsTheLargestPartFirstAndEqualOnesByUid) {
  HeldDevices held;
  const PodRecord small = RecordOf(1, "n", {{0, 300, 10}, {2, 1000, 0}});
  const PodRecord large = RecordOf(2, "n", {{0, 700, 10}});
  const PodRecord later = RecordOf(3, "n", {{0, 700, 10}});
  for (const PodRecord* record : {&later, &small, &large}) held.Add(*record, nullptr);
  std::string uids;
  for (const HeldPart& part : held.On("n").PartsOf(0)) uids += part.pod->pod.id.uid;
  EXPECT_EQ(uids, "u2u3u1");
  EXPECT_TRUE(held.On("n").PartsOf(1).empty());
  EXPECT_TRUE(held.On("elsewhere").empty());
}

}  // namespace
}  // namespace berth::held_devices_test
