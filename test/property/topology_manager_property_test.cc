// SPDX-License-Identifier: Apache-2.0
//
// What Berth plans on nodes with a Topology Manager against a model of the kubelet that follows its
// source: random machines, GPUs in use, policies, and pods of up to four containers.
#include "cluster/node/topology_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "cluster/node/gpu_division.h"
#include "scoring/devices/device_picker.h"
#include "scoring/groups/group_domains.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/kubelet_model.h"
#include "test/support/random_world.h"
#include "test/support/wirings.h"

namespace berth::test::topology_manager_property_test {
namespace {

constexpr int kGpus = 8;
constexpr std::uint64_t kSeeds = 2'500;

struct World {
  std::vector<int> numa;  // of each GPU
  TopologyPolicy policy = TopologyPolicy::kNone;
  bool by_pod = false;
  GpuMask free = 0;
  std::vector<GpuStep> steps;
  int total = 0;
};

// By the rule of Kubernetes for init containers; there are no sidecars before the last of these.
int TotalOf(const std::vector<GpuStep>& steps) {
  int most = 0, running = 0;
  for (const GpuStep& step : steps) {
    most = std::max(most, running + step.count);
    if (!step.ends_first) running += step.count;
  }
  return most;
}

World AWorld(RandomWorld& random) {
  World world;
  const int nodes = random.Between(2, 4);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    const bool even = random.Chance(70);
    world.numa.push_back(even ? gpu * nodes / kGpus : random.Between(0, nodes - 1));
  }
  if (random.Chance(30)) std::ranges::reverse(world.numa);
  if (random.Chance(20)) {
    for (int& node : world.numa) node *= 3;  // there are NUMA nodes without GPUs
  }
  world.policy = static_cast<TopologyPolicy>(random.Between(1, 3));
  world.by_pod = random.Chance(30);
  for (int gpu = 0; gpu < kGpus; ++gpu) world.free |= random.Chance(60) ? GpuBit(gpu) : 0;
  const int containers = random.Chance(50) ? 1 : random.Between(2, 4);
  for (int i = 0; i < containers; ++i) {
    const int most = containers == 1 ? kGpus : 3;
    world.steps.push_back({random.Between(1, most), i + 1 < containers && random.Chance(40)});
  }
  world.total = TotalOf(world.steps);
  return world;
}

std::string TextOf(const World& world) {
  std::string text(NameOf(world.policy));
  text += world.by_pod ? " pod, NUMA" : " container, NUMA";
  for (const int node : world.numa) text += " " + std::to_string(node);
  text += ", free";
  ForEachGpu(world.free, [&](int gpu) { text += " " + std::to_string(gpu); });
  text += ", steps";
  for (const GpuStep& step : world.steps) {
    text += " " + std::to_string(step.count) + (step.ends_first ? "i" : "");
  }
  return text;
}

ANode NodeOf(const World& world) {
  LinkMatrix matrix = *MakeLinkMatrix(std::vector<std::string>(kGpus, "GPU"), {});
  for (int a = 0; a < kGpus; ++a) {
    for (int b = 0; b < kGpus; ++b) {
      if (a != b) matrix.link(a, b).pcie = LinkType::kNode;
    }
    const auto gpu = static_cast<std::size_t>(a);
    matrix.numa_affinity[gpu] = std::to_string(world.numa[gpu]);
  }
  ANode node = ANode("n").Gpus(kGpus).Linked(LinksOf(matrix)).Kubelet(world.policy, world.by_pod);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    if ((world.free & GpuBit(gpu)) == 0) node.Holding(APod(std::to_string(gpu)).Whole(1), {gpu});
  }
  return node;
}

APod PodOf(const World& world) {
  APod pod("p");
  return world.steps.size() == 1 ? pod.Whole(world.total) : pod.InSteps(world.total, world.steps);
}

KubeletModel ModelOf(const World& world) {
  return {world.numa, std::string(NameOf(world.policy)), world.by_pod};
}

std::vector<KubeletModel::Container> ContainersOf(const World& world) {
  std::vector<KubeletModel::Container> containers;
  for (const GpuStep& step : world.steps) containers.push_back({step.count, step.ends_first});
  return containers;
}

GpuMask UnionOf(const std::vector<GpuMask>& sets) {
  GpuMask all = 0;
  for (const GpuMask set : sets) all |= set;
  return all;
}

bool IsAboutNuma(Reason reason) {
  return reason == Reason::kNumaBusy || reason == Reason::kNumaNever;
}

TEST(TopologyManagerProperty, WhatIsPlannedIsWhatTheKubeletGives) {
  int planned = 0, in_several = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    const World world = AWorld(random);
    SCOPED_TRACE(TextOf(world));
    const Node node = NodeOf(world).Build();
    const APod pod = PodOf(world);
    const auto choices = DeviceChoices(node, pod.Shape(), DeviceRule::kBestScore);
    ASSERT_EQ(FirstObjection(node, pod.Shape()) == Reason::kFits, !choices.empty());
    if (choices.empty() || !KubeletLimits(node.spec(), pod.Shape())) continue;
    const auto sets = DivideGpus(node.spec(), pod.Shape(), choices.front().gpus);
    ASSERT_TRUE(sets);
    ++planned;
    in_several += sets->size() > 1 ? 1 : 0;
    const auto given =
        ModelOf(world).Admit(ContainersOf(world), world.total, world.free,
                             [&](std::size_t container, GpuMask, GpuMask, int) {
                               return sets->size() == 1 ? choices.front().gpus : (*sets)[container];
                             });
    ASSERT_TRUE(given);
    EXPECT_EQ(UnionOf(*given), choices.front().gpus);
    if (sets->size() == given->size()) {
      EXPECT_EQ(*given, *sets);
    }
  }
  EXPECT_GT(planned, 500);
  EXPECT_GT(in_several, 100);
}

TEST(TopologyManagerProperty, WhatIsRefusedTheKubeletWouldRefuse) {
  int refused = 0, for_ever = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    const World world = AWorld(random);
    SCOPED_TRACE(TextOf(world));
    const Node node = NodeOf(world).Build();
    const Reason reason = FirstObjection(node, PodOf(world).Shape());
    // With several containers and sets of NUMA nodes the plugin's choice for the first decides what
    // is left for the others.
    const bool follows =
        world.steps.size() == 1 || world.by_pod || world.policy == TopologyPolicy::kSingleNumaNode;
    if (!IsAboutNuma(reason) || !follows) continue;
    ++refused;
    for_ever += reason == Reason::kNumaNever ? 1 : 0;
    const GpuMask free = reason == Reason::kNumaNever ? AllGpus(kGpus) : world.free;
    const auto given =
        ModelOf(world).Admit(ContainersOf(world), world.total, free,
                             [](std::size_t, GpuMask, GpuMask, int) { return GpuMask{0}; });
    EXPECT_FALSE(given);
    EXPECT_EQ(PodsThatFit(node, PodOf(world).Shape()), 0);
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(for_ever, 25);
}

TEST(TopologyManagerProperty, BestEffortRefusesNothing) {
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    World world = AWorld(random);
    world.policy = TopologyPolicy::kBestEffort;
    const Reason reason = FirstObjection(NodeOf(world).Build(), PodOf(world).Shape());
    EXPECT_FALSE(IsAboutNuma(reason));
    EXPECT_EQ(reason == Reason::kFits, std::popcount(world.free) >= world.total);
  }
}

// Without an agent the plugin takes any of those that it is offered. How many are left of each NUMA
// node is as planned all the same.
TEST(TopologyManagerProperty, WithoutAnAgentTheBooksAreRightByNumaNode) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    World world = AWorld(random);
    world.policy = TopologyPolicy::kSingleNumaNode;
    world.by_pod = false;
    SCOPED_TRACE(TextOf(world));
    const Node node = NodeOf(world).Build();
    const auto choices = DeviceChoices(node, PodOf(world).Shape(), DeviceRule::kBestScore);
    if (choices.empty() || !KubeletLimits(node.spec(), PodOf(world).Shape())) continue;
    ++compared;
    const auto given =
        ModelOf(world).Admit(ContainersOf(world), world.total, world.free,
                             [&](std::size_t, GpuMask available, GpuMask must, int size) {
                               GpuMask set = must;
                               while (std::popcount(set) < size) {
                                 const GpuMask gpu = GpuBit(random.Between(0, kGpus - 1));
                                 set |= gpu & available;
                               }
                               return set;
                             });
    ASSERT_TRUE(given);
    const GpuMask got = UnionOf(*given), planned = choices.front().gpus;
    for (const GpuMask numa_node : node.spec().links.numa_nodes()) {
      EXPECT_EQ(std::popcount(got & numa_node), std::popcount(planned & numa_node));
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace berth::test::topology_manager_property_test
