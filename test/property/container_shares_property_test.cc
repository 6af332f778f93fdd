// SPDX-License-Identifier: Apache-2.0
//
// Pods whose containers may have their parts of different GPUs, against all assignments of
// containers to GPUs: the pod fits exactly where there is one, no GPU is given more than it has,
// and every container gets what it asks for.
#include "scoring/devices/container_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "scoring/devices/device_picker.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::container_shares_property_test {
namespace {

constexpr std::int64_t kMib = 40'000;

struct World {
  std::vector<GpuSpec> specs;
  std::vector<GpuFree> free;
  std::vector<GpuStep> steps;
  // Some containers say how much compute they need. That of the others follows their memory on GPUs
  // that they have for themselves, and is nothing beside the former: which of them come first
  // decides, so that a way may not be found.
  bool is_mixed = false;
};

World Draw(Random& random) {
  World world;
  const auto gpus = 1 + random.Below(4), containers = 2 + random.Below(3);
  for (std::uint64_t i = 0; i < gpus; ++i) {
    GpuSpec gpu{.uuid = "GPU-" + std::to_string(i),
                .memory_mib = random.Below(4) == 0 ? 2 * kMib : kMib,
                .healthy = random.Below(8) != 0,
                .most_users = random.Below(4) == 0 ? 1 : 10};
    const int used = random.Below(3) == 0 ? 0 : static_cast<int>(random.Below(90)) * 10;
    GpuFree free{kMilliPerGpu - used, used > 0 ? 1 : 0, gpu.memory_mib};
    if (used > 0) free.memory_mib -= gpu.memory_mib * static_cast<int>(random.Below(90)) / 100;
    world.specs.push_back(gpu);
    world.free.push_back(free);
  }
  const auto words = random.Below(4);
  world.is_mixed = random.Below(8) == 0 && (words == 1 || words == 2);
  for (std::uint64_t i = 0; i < containers; ++i) {
    if (i > 0 && random.Below(3) == 0) {  // as the one before it
      world.steps.push_back(world.steps.back());
      continue;
    }
    GpuShare share{.count = random.Below(4) == 0 ? 2 : 1};
    if (words < 2) share.memory_mib = 1000 * (1 + static_cast<std::int64_t>(random.Below(35)));
    if (words == 2) share.memory_milli = 10 * (1 + static_cast<int>(random.Below(80)));
    if (words == 3) share.milli = 10 * (1 + static_cast<int>(random.Below(80)));
    if (words == 1 || words == 2) share.milli = 10 * (1 + static_cast<int>(random.Below(60)));
    if (world.is_mixed && random.Below(2) == 0) share.milli = 0;
    const bool ends_first = random.Below(5) == 0 && (i == 0 || world.steps.back().ends_first);
    world.steps.push_back({share.count, ends_first, share});
  }
  return world;
}

Node NodeOf(const World& world) {
  NodeSpec spec = ANode("n").Named("hami").Spec();
  spec.gpus = world.specs;
  Node node(std::make_shared<const NodeSpec>(std::move(spec)));
  for (std::size_t i = 0; i < world.free.size(); ++i) {
    const GpuFree& free = world.free[i];
    if (free.users == 0) continue;
    const int milli = kMilliPerGpu - free.milli;
    const std::int64_t mib = world.specs[i].memory_mib - free.memory_mib;
    const APod held = APod("held" + std::to_string(i)).Share(milli, mib);
    node.Put(held.BoundOn("n", {static_cast<int>(i)}));
  }
  return node;
}

// What these containers take of the GPU at most at a time, in thousandths and MiB.
std::pair<std::int64_t, std::int64_t> Taken(const World& world, const GpuSpec& gpu, unsigned set) {
  std::int64_t milli = 0, mib = 0, part = 0, most_milli = 0, most_mib = 0, most_part = 0;
  for (std::size_t i = 0; i < world.steps.size(); ++i) {
    if ((set >> i & 1) == 0) continue;
    const GpuStep& step = world.steps[i];
    most_milli = std::max<std::int64_t>(most_milli, milli + step.share.milli);
    most_mib = std::max(most_mib, mib + step.share.memory_mib);
    most_part = std::max<std::int64_t>(most_part, part + step.share.memory_milli);
    if (step.ends_first) continue;
    milli += step.share.milli;
    mib += step.share.memory_mib;
    part += step.share.memory_milli;
  }
  if (most_part > 0) {
    return {most_milli > 0 ? most_milli : most_part, gpu.memory_mib * most_part / 1000};
  }
  if (most_mib == 0) return {most_milli, gpu.memory_mib * most_milli / 1000};
  if (most_milli > 0) return {most_milli, most_mib};
  return {std::max<std::int64_t>(most_mib * 1000 / gpu.memory_mib, 1), most_mib};
}

// Whether some assignment of the containers from `at` on is within what is free.
bool AnyWay(const World& world, const std::vector<GpuFree>& free, bool emptied,
            std::vector<unsigned>& sets, std::size_t at) {
  if (at == world.steps.size()) {
    for (std::size_t gpu = 0; gpu < sets.size(); ++gpu) {
      if (sets[gpu] == 0) continue;
      const auto [milli, mib] = Taken(world, world.specs[gpu], sets[gpu]);
      const bool has_place = emptied || free[gpu].users < world.specs[gpu].most_users;
      if (!world.specs[gpu].healthy || !has_place) return false;
      if (milli > free[gpu].milli || mib > free[gpu].memory_mib) return false;
    }
    return true;
  }
  for (unsigned gpus = 0; gpus < 1U << sets.size(); ++gpus) {
    if (std::popcount(gpus) != world.steps[at].count) continue;
    std::vector<unsigned> with = sets;
    for (std::size_t gpu = 0; gpu < with.size(); ++gpu) with[gpu] |= (gpus >> gpu & 1) << at;
    if (AnyWay(world, free, emptied, with, at + 1)) return true;
  }
  return false;
}

bool AnyWay(const World& world, bool emptied) {
  std::vector<GpuFree> free = world.free;
  if (emptied) {
    for (std::size_t i = 0; i < free.size(); ++i) {
      free[i] = {.memory_mib = world.specs[i].memory_mib};
    }
  }
  std::vector<unsigned> sets(world.specs.size());
  return AnyWay(world, free, emptied, sets, 0);
}

// As HAMi's scheduler does it: each container takes the fullest GPUs with room, without looking
// back.
bool FirstWay(const World& world) {
  std::vector<unsigned> sets(world.specs.size());
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sets.size(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return world.free[i].milli; });
  for (std::size_t at = 0; at < world.steps.size(); ++at) {
    int more = world.steps[at].count;
    for (const std::size_t gpu : order) {
      const GpuFree& free = world.free[gpu];
      const auto [milli, mib] = Taken(world, world.specs[gpu], sets[gpu] | 1U << at);
      const bool fits = world.specs[gpu].healthy && free.users < world.specs[gpu].most_users &&
                        milli <= free.milli && mib <= free.memory_mib;
      if (more == 0 || !fits) continue;
      sets[gpu] |= 1U << at;
      --more;
    }
    if (more > 0) return false;
  }
  return true;
}

DeviceRule RuleOf(int round) {
  return std::array{DeviceRule::kFirst, DeviceRule::kRandom, DeviceRule::kTightest,
                    DeviceRule::kBestScore}[static_cast<std::size_t>(round) % 4];
}

TEST(ContainerShares, FitExactlyWhereSomeAssignmentOfContainersToGpusDoes) {
  Random random(49);
  int fit = 0, apart = 0, busy = 0, never = 0, looked_back = 0;
  for (int round = 0; round < 20'000 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const World world = Draw(random);
    const Node node = NodeOf(world);
    const APod pod = APod("p").InParts(world.steps);
    const Reason reason = FirstObjection(node, pod.Shape());
    const bool any_way = AnyWay(world, false);
    if (reason != Reason::kFits && any_way && world.is_mixed) continue;
    ASSERT_EQ(reason == Reason::kFits, any_way) << CodeOf(reason);
    if (reason != Reason::kFits) {
      if (world.is_mixed) continue;
      const bool could = AnyWay(world, true);
      const bool none = node.healthy_gpus() == 0;
      ASSERT_EQ(VerdictOf(reason) == Verdict::kUnschedulable, could && !none) << CodeOf(reason);
      ++(could ? busy : never);
      continue;
    }
    ++fit;
    looked_back += FirstWay(world) ? 0 : 1;
    const auto choices = DeviceChoices(node, pod.Shape(), RuleOf(round));
    ASSERT_FALSE(choices.empty());
    const Placement placement = PlacementFor(node, pod.Shape(), choices.back());
    ASSERT_TRUE(node.CanTake(placement)) << node.CanTake(placement).error().message;
    std::map<int, std::int64_t> given;
    const auto divided = GrantsByContainer(pod.Request(), placement);
    ASSERT_EQ(divided.size(), world.steps.size());
    for (std::size_t i = 0; i < divided.size(); ++i) {
      const GpuShare& asked = world.steps[i].share;
      ASSERT_EQ(std::ssize(divided[i].second), asked.count);
      for (const DeviceGrant& part : divided[i].second) {
        if (asked.memory_mib > 0) {
          ASSERT_EQ(part.memory_mib, asked.memory_mib);
        }
        if (!world.steps[i].ends_first) given[part.gpu] += part.memory_mib;
      }
    }
    for (const DeviceGrant& grant : placement.grants) {
      ASSERT_LE(given[grant.gpu], grant.memory_mib) << "parts add up to the grant";
      const auto [milli, mib] = Taken(world, world.specs[static_cast<std::size_t>(grant.gpu)],
                                      grant.containers == 0 ? ~0U : grant.containers);
      ASSERT_EQ(grant.milli, milli);
      ASSERT_EQ(grant.memory_mib, mib);
    }
    const bool is_apart =
        std::ranges::any_of(placement.grants, [](const auto& grant) { return grant.containers; });
    apart += is_apart ? 1 : 0;
    RequestShape together = pod.Shape();
    together.gpu_steps.clear();
    const bool may = pod.Shape().may_stay_together() && Fits(node, together);
    ASSERT_EQ(is_apart, !may) << "of one set of GPUs where one has room";
    if (may) {
      ASSERT_EQ(
          placement.grants,
          PlacementFor(node, together, DeviceChoices(node, together, RuleOf(round)).back()).grants);
    }
  }
  EXPECT_GT(fit, 3000);
  EXPECT_GT(apart, 1000);
  EXPECT_GT(busy, 1000);
  EXPECT_GT(never, 1000);
  EXPECT_GT(looked_back, 10) << "where HAMi's scheduler gives up";
}

}  // namespace
}  // namespace berth::test::container_shares_property_test
