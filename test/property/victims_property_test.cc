// SPDX-License-Identifier: Apache-2.0
//
// The victims that are chosen against all sets that could have been.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "scoring/registry.h"
#include "scoring/victims.h"
#include "test/support/random_world.h"

namespace berth {
namespace {

using test::ANode;
using test::APod;
using test::RandomWorld;

constexpr std::uint64_t kSeeds = 3000;
constexpr int kPreemptor = 3;  // its priority

const WallTime kNow = SimClock().Wall();

// Highest priority, pods, sum of priorities, work lost, GPU compute set free.
using Cost = std::tuple<int, int, std::int64_t, std::int64_t, std::int64_t>;

struct World {
  explicit World(std::uint64_t seed) : random(seed) {
    ANode a_node = ANode("n").Gpus(random.Between(1, 4)).Cpu(scarce ? 16 : 1000);
    if (scarce) a_node.DiskGib(16);
    const int gpus = static_cast<int>(a_node.Spec().gpus.size());
    const int count = random.Between(1, 7);
    for (int i = 0; i < count; ++i) {
      APod pod("v" + std::to_string(i));
      pod.Priority(random.Between(0, 4));
      pod.Cpu(random.Between(0, 4));
      pod.DiskGib(random.Between(0, 4));
      if (random.Chance(40)) pod.Labelled({{"app", "web"}});
      if (random.Chance(60)) pod.Checkpointed(kNow - std::chrono::minutes(random.Between(-5, 90)));
      const int gpu = random.Between(0, gpus - 1);
      if (random.Chance(60)) {
        a_node.Holding(pod.Share(random.Between(1, 4) * 100), {gpu});
      } else if (gpu + 1 < gpus && random.Chance(50)) {
        a_node.Holding(pod.Whole(2), {gpu, gpu + 1});
      } else {
        a_node.Holding(pod.Whole(1), unattributed ? std::vector<int>{} : std::vector<int>{gpu});
      }
    }
    node.emplace(a_node.Build());
    preemptor.Priority(kPreemptor).Cpu(random.Between(0, 8));
    preemptor.DiskGib(random.Between(0, 8));
    random.Chance(50) ? preemptor.Whole(random.Between(1, gpus))
                      : preemptor.Share(random.Between(1, 10) * 100);
    budgets = {{"default", "b", LabelSelector{{"app", LabelOperator::kIn, {"web"}}},
                random.Between(0, 2)}};
    if (random.Chance(30)) budgets.clear();
  }

  // What it costs to evict these pods; none if that is not allowed or not enough.
  [[nodiscard]] std::optional<Cost> CostOf(const std::vector<const PodRecord*>& set) const {
    Cost cost{std::numeric_limits<int>::min(), 0, 0, 0, 0};
    int covered = 0;
    for (const PodRecord* pod : set) {
      if (pod->pod.priority >= kPreemptor) return std::nullopt;
      std::get<0>(cost) = std::max(std::get<0>(cost), pod->pod.priority);
      std::get<1>(cost) += 1;
      std::get<2>(cost) += pod->pod.priority;
      for (const DeviceGrant& grant : pod->placement.grants) {
        std::get<3>(cost) += grant.milli * MinutesLost(pod->pod);
        std::get<4>(cost) += grant.milli;
      }
      covered += pod->pod.labels != nullptr ? 1 : 0;
    }
    if (!budgets.empty() && covered > budgets[0].disruptions_allowed) return std::nullopt;
    const Node left = node->Without(
        [&set](const PodRecord& pod) { return std::ranges::find(set, &pod) != set.end(); });
    if (FirstObjection(left, preemptor.Shape()) != Reason::kFits) return std::nullopt;
    return cost;
  }

  static std::int64_t MinutesLost(const PodRequest& pod) {
    if (!pod.checkpointed) return kMostLost.count();
    return std::max<std::int64_t>(
        std::chrono::floor<std::chrono::minutes>(kNow - *pod.checkpointed).count(), 0);
  }

  [[nodiscard]] std::optional<Cost> Cheapest() const {
    std::optional<Cost> best;
    for (unsigned mask = 0; mask < 1U << node->pods().size(); ++mask) {
      std::vector<const PodRecord*> set;
      for (std::size_t i = 0; i < node->pods().size(); ++i) {
        if ((mask >> i & 1U) != 0) set.push_back(node->pods()[i].get());
      }
      const auto cost = CostOf(set);
      if (cost && (!best || *cost < *best)) best = cost;
    }
    return best;
  }

  RandomWorld random;
  const bool scarce = random.Chance(30);  // CPU and disk may be short
  const bool unattributed = random.Chance(20);
  std::optional<Node> node;
  APod preemptor{"p"};
  std::vector<PodDisruptionBudget> budgets;
};

TEST(VictimsProperty, AreAllowedAndSufficeAndAreTheBestSetWhereOnlyGpusAreShort) {
  int chosen = 0, vetoed = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const World world(seed);
    const EvictionLimits limits{world.budgets, {}, kNow};
    const auto added = AddedVictims(*world.node, world.preemptor.Request(), {}, limits);
    const auto best = world.Cheapest();
    (added ? chosen : vetoed) += 1;
    if (added) {
      std::vector<const PodRecord*> set;
      for (const std::string& uid : *added) set.push_back(world.node->FindPod(uid));
      ASSERT_EQ(std::ranges::count(set, nullptr), 0);
      const auto cost = world.CostOf(set);
      ASSERT_TRUE(cost) << "not allowed, or not enough";
      if (!world.scarce && !world.unattributed) {
        ASSERT_EQ(*cost, *best);
      }
    } else if (!world.scarce && !world.unattributed) {
      ASSERT_FALSE(best) << "there was a set";
    }
  }
  EXPECT_GT(chosen, 500);
  EXPECT_GT(vetoed, 500);
}

}  // namespace
}  // namespace berth
