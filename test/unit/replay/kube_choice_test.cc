// SPDX-License-Identifier: Apache-2.0
#include "bench/rules/kube_choice.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/support/builders.h"

namespace berth::replay::kube_choice_test {
namespace {

using test::ANode;
using test::APod;

// By hand: 8 of 64 cores and 32 of 256 GiB in use with the pod, and 4 and 16.
TEST(KubeChoice, LikesTheEmptiestNodeWhereTheExtenderFindsAllEqual) {
  const ANode used = ANode("a").Cpu(64).Holding(APod("x").Cpu(4).MemoryGib(16), {});
  const RequestShape pod = APod("p").Cpu(4).MemoryGib(16).Shape();
  EXPECT_EQ(KubeChoice::OwnScore(used.Build(), pod), 87 + 100);
  EXPECT_EQ(KubeChoice::OwnScore(ANode("b").Cpu(64).Build(), pod), 93 + 100);
  const auto snapshot = test::SnapshotOf({used, ANode("b").Cpu(64), ANode("c").Cpu(64)});
  const std::vector<NodeIndex> all = {0, 1, 2};
  KubeChoice choice(15, 1);
  std::vector<int> chosen(3);
  for (int i = 0; i < 100; ++i) {
    ++chosen[choice.Choose(*snapshot, pod, all, std::vector<std::uint8_t>{10, 10, 10})];
    EXPECT_EQ(choice.Choose(*snapshot, pod, all, std::vector<std::uint8_t>{10, 9, 9}), 0u);
  }
  EXPECT_EQ(chosen[0], 0);
  EXPECT_GT(chosen[1], 20) << "drawn among equals";
  EXPECT_GT(chosen[2], 20);
}

// By hand, with the pod: 8 of 64 cores, 32 of 256 GiB and 3 of 8 GPUs in use, and 4, 16 and 1.
TEST(KubeChoice, LikesTheFullestNodeWhenItIsToldToPack) {
  constexpr KubeStrategy kPacks = KubeStrategy::kMostAllocated;
  const ANode used =
      ANode("a").Cpu(64).Gpus(8).Holding(APod("x").Cpu(4).MemoryGib(16).Whole(2), {0, 1});
  const ANode idle = ANode("b").Cpu(64).Gpus(8);
  const RequestShape pod = APod("p").Cpu(4).MemoryGib(16).Whole(1).Shape();
  EXPECT_EQ(KubeChoice::OwnScore(used.Build(), pod, kPacks), (12 + 12 + 5 * 37) / 7 + 100);
  EXPECT_EQ(KubeChoice::OwnScore(idle.Build(), pod, kPacks), (6 + 6 + 5 * 12) / 7 + 100);
  const RequestShape cpu_only = APod("q").Cpu(4).MemoryGib(16).Shape();
  EXPECT_EQ(KubeChoice::OwnScore(used.Build(), cpu_only, kPacks), 12 + 100);
  const auto snapshot = test::SnapshotOf({used, idle});
  KubeChoice choice(0, 1, kPacks);
  EXPECT_EQ(
      choice.Choose(*snapshot, pod, std::vector<NodeIndex>{0, 1}, std::vector<std::uint8_t>{0, 0}),
      0u);
}

}  // namespace
}  // namespace berth::replay::kube_choice_test
