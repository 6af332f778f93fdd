// SPDX-License-Identifier: Apache-2.0
//
// ChooseDomains against all there is to choose from, on small random trees.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "topology/domains/domain_tree.h"

namespace berth::domain_choice_property_test {
namespace {

constexpr std::uint64_t kSeeds = 2000;
constexpr std::size_t kLevels = 2;

struct World {
  std::size_t nodes;
  std::vector<std::string> text;  // the values' characters
  DomainTree tree;
  std::vector<int> room;
};

// Up to eight nodes in two zones of two racks. gaps: in percent.
World AWorld(Random& random, std::uint64_t gaps) {
  const std::size_t nodes = 1 + random.Below(8);
  std::vector<std::string> text(nodes * kLevels);
  for (std::string& value : text) {
    if (random.Below(100) >= gaps) value = random.Below(2) == 0 ? "a" : "b";
  }
  const std::vector<std::string_view> values(text.begin(), text.end());
  DomainTree tree(nodes, kLevels, values);
  std::vector<int> room(nodes);
  for (int& fits : room) fits = static_cast<int>(random.Below(5));
  return {nodes, text, std::move(tree), room};
}

// The fewest of the amounts whose sum reaches the goal.
std::size_t Fewest(std::vector<std::int64_t> amounts, std::int64_t goal) {
  std::size_t fewest = amounts.size() + 1;
  for (std::size_t set = 0; set < (std::size_t{1} << amounts.size()); ++set) {
    std::int64_t sum = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < amounts.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      sum += amounts[i];
      ++count;
    }
    if (sum >= goal) fewest = std::min(fewest, count);
  }
  return fewest;
}

std::vector<std::int64_t> UsedPerVertex(const World& world, const DomainChoice& choice) {
  const std::vector<int> pods(choice.pods.begin(), choice.pods.end());
  return world.tree.SumUp(pods);
}

void ExpectRespectsRoom(const World& world, const DomainWish& wish, const DomainChoice& choice) {
  EXPECT_EQ(std::accumulate(choice.pods.begin(), choice.pods.end(), std::int64_t{0}), wish.pods);
  for (std::size_t node = 0; node < world.nodes; ++node) {
    EXPECT_GE(choice.pods[node], 0);
    EXPECT_LE(choice.pods[node], world.room[node]);
  }
  const std::vector<std::int64_t> used = UsedPerVertex(world, choice);
  EXPECT_EQ(used[choice.domain], wish.pods);
  const auto [first, last] = world.tree.Level(wish.slice_level.value_or(kLevels));
  for (TopologyDomain vertex = first; vertex < last; ++vertex) {
    EXPECT_EQ(used[vertex] % wish.slice_size, 0);
  }
}

// Whole packs that fit a vertex.
std::vector<std::int64_t> PacksPerVertex(const World& world, const DomainWish& wish) {
  const std::vector<std::int64_t> pods = world.tree.SumUp(world.room);
  std::vector<std::int64_t> packs(world.tree.size(), 0);
  const auto [first, last] = world.tree.Level(wish.slice_level.value_or(kLevels));
  for (TopologyDomain vertex = first; vertex < last; ++vertex) {
    if (!world.tree.named(vertex)) continue;
    TopologyDomain above = vertex;
    packs[above] += pods[vertex] / wish.slice_size;
    while (above != DomainTree::kCluster) {
      above = world.tree.parent(above);
      packs[above] += pods[vertex] / wish.slice_size;
    }
  }
  return packs;
}

DomainWish AWish(Random& random) {
  DomainWish wish;
  wish.slice_size = 1 + static_cast<std::int64_t>(random.Below(3));
  wish.pods = wish.slice_size * (1 + static_cast<std::int64_t>(random.Below(6)));
  wish.level = random.Below(kLevels);
  wish.slice_level = wish.level + random.Below(kLevels + 1 - wish.level);
  return wish;
}

TEST(DomainChoiceProperty, RequiredFitsExactlyWhereSomeDomainOfTheLevelHasRoom) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const World world = AWorld(random, 20);
    const DomainWish wish = AWish(random);
    const std::vector<std::int64_t> packs = PacksPerVertex(world, wish);
    std::int64_t tightest = -1;
    const auto [first, last] = world.tree.Level(wish.level);
    for (TopologyDomain domain = first; domain < last; ++domain) {
      if (!world.tree.named(domain) || packs[domain] * wish.slice_size < wish.pods) continue;
      if (tightest < 0 || packs[domain] < tightest) tightest = packs[domain];
    }
    const auto choice = ChooseDomains(world.tree, world.room, wish);
    ASSERT_EQ(choice.has_value(), tightest >= 0);
    if (!choice) continue;
    ExpectRespectsRoom(world, wish, *choice);
    EXPECT_EQ(packs[choice->domain], tightest);
  }
}

TEST(DomainChoiceProperty, PreferredAndUnconstrainedGroupsFitWhereverThereIsRoom) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const World world = AWorld(random, 20);
    DomainWish wish = AWish(random);
    const std::int64_t all = PacksPerVertex(world, wish)[DomainTree::kCluster];
    for (const DomainMode mode : {DomainMode::kPreferred, DomainMode::kUnconstrained}) {
      wish.mode = mode;
      const auto choice = ChooseDomains(world.tree, world.room, wish);
      ASSERT_EQ(choice.has_value(), all * wish.slice_size >= wish.pods);
      if (choice) ExpectRespectsRoom(world, wish, *choice);
    }
  }
}

// From the level above the chosen domain down, every step uses as few domains as it could. Where
// all nodes have every value, that is: nodes that lack one are taken last.
TEST(DomainChoiceProperty, EveryLevelUsesTheFewestDomainsWithinThoseAbove) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const World world = AWorld(random, 0);
    DomainWish wish = AWish(random);
    wish.mode = DomainMode::kPreferred;
    wish.slice_size = 1;
    wish.slice_level.reset();
    const auto choice = ChooseDomains(world.tree, world.room, wish);
    if (!choice) continue;
    const std::vector<std::int64_t> used = UsedPerVertex(world, *choice);
    const std::vector<std::int64_t> room = world.tree.SumUp(world.room);
    for (std::size_t level = 0; level <= kLevels; ++level) {
      const auto [first, last] = world.tree.Level(level);
      std::vector<std::int64_t> amounts;
      std::size_t taken = 0;
      for (TopologyDomain vertex = first; vertex < last; ++vertex) {
        const TopologyDomain above = world.tree.parent(vertex);
        if (above != DomainTree::kCluster && used[above] == 0) continue;
        amounts.push_back(room[vertex]);
        taken += used[vertex] > 0 ? 1U : 0U;
      }
      EXPECT_EQ(taken, Fewest(amounts, wish.pods)) << "level " << level;
    }
  }
}

}  // namespace
}  // namespace berth::domain_choice_property_test
