// SPDX-License-Identifier: Apache-2.0
#include "scoring/groups/group_domains.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "scoring/devices/device_picker.h"
#include "scoring/registry.h"
#include "test/support/random_world.h"

namespace berth::test::pod_room_test {
namespace {

TEST(PodRoom, TheScarcestDecides) {
  const Node node = ANode("n").Gpus(8).Cpu(10).MemoryGib(64).Build();
  EXPECT_EQ(PodsThatFit(node, APod("p").Whole(1).Shape()), 8);
  EXPECT_EQ(PodsThatFit(node, APod("p").Whole(3).Shape()), 2);
  EXPECT_EQ(PodsThatFit(node, APod("p").Whole(1).Cpu(4).Shape()), 2);
  EXPECT_EQ(PodsThatFit(node, APod("p").Whole(1).MemoryGib(20).Shape()), 3);
  EXPECT_EQ(PodsThatFit(node, APod("p").Whole(1).DiskGib(900).Shape()), 8);
  EXPECT_EQ(PodsThatFit(ANode("n").Gpus(8).DiskGib(1000).Build(),
                        APod("p").Whole(1).DiskGib(300).Shape()),
            3);
  EXPECT_EQ(PodsThatFit(node, APod("p").Share(300).Shape()), 24);
  EXPECT_EQ(PodsThatFit(node, APod("p").Share(300, 9000).Shape()), 8);
  EXPECT_EQ(PodsThatFit(node, APod("p").Shares(2, 300).Shape()), 12);
  EXPECT_EQ(PodsThatFit(node, APod("p").Shares(3, 600).Shape()), 2);
  EXPECT_EQ(PodsThatFit(node, APod("p").Whole(9).Shape()), 0);
  EXPECT_EQ(PodsThatFit(node, APod("p").Shape()), kMostPods);
}

// Placed one after the other as many fit as were told.
TEST(PodRoom, IsHowManyCanBePlacedOneAfterTheOther) {
  constexpr int kEnough = 200;  // for pods that ask for next to nothing
  int several = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    RandomWorld world(seed);
    Node node(std::make_shared<const NodeSpec>(world.ANodeNamed("n")));
    for (int i = 0; i < 3; ++i) {
      const PodRequest other = world.APodNumbered(1000 + i);
      node.Put(std::make_shared<const PodRecord>(
          PodRecord{other, world.AForeignPlacement(other.shape, "n"), PodState::kBound, {}}));
    }
    if (node.unattributed() > 0) continue;  // what is only assumed gives way
    PodRequest pod = world.APodNumbered(0);
    const int told = PodsThatFit(node, pod.shape);
    int placed = 0;
    while (placed < kEnough && FirstObjection(node, pod.shape) == Reason::kFits) {
      const auto choices = DeviceChoices(node, pod.shape, DeviceRule::kTightest);
      pod.id.uid = "p" + std::to_string(placed++);
      node.Put(std::make_shared<const PodRecord>(
          PodRecord{pod, PlacementFor(node, pod.shape, choices.front()), PodState::kBound, {}}));
    }
    EXPECT_EQ(std::min(told, kEnough), placed) << "seed " << seed;
    several += placed > 1 && placed < kEnough ? 1 : 0;
  }
  EXPECT_GT(several, 100);
}

}  // namespace
}  // namespace berth::test::pod_room_test
