// SPDX-License-Identifier: Apache-2.0
//
// What an explanation promises is true, in random clusters: whatever is said to let a pod in does
// so, if nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "scoring/admission.h"
#include "scoring/explain/explain_pod.h"
#include "scoring/explain/needs.h"
#include "scoring/explain/other_limits.h"
#include "scoring/registry.h"
#include "test/support/drawn.h"
#include "test/support/random_world.h"
#include "test/support/worlds.h"

namespace berth::test::explain_property_test {
namespace {

constexpr std::uint64_t kSeeds = Drawn(1500);

bool FitsIn(const Node& node, const PodRequest& pod) {
  return FirstObjection(node, pod.shape) == Reason::kFits &&
         Admits(node.spec(), pod) == Reason::kFits;
}

// The first number of the text: "with 3 GPUs instead of 4".
int NumberIn(std::string_view text) {
  int number = 0;
  const std::size_t at = text.find_first_of("0123456789");
  if (at != std::string_view::npos) {
    std::from_chars(text.data() + at, text.data() + text.size(), number);
  }
  return number;
}

// The ask of that size, of whole GPUs, of as many shares or of a share of compute alone; as it was
// for others.
RequestShape Resized(const RequestShape& shape, std::string_view text, int size) {
  RequestShape other = shape;
  if (std::holds_alternative<WholeGpus>(shape.gpus)) {
    other.gpus = WholeGpus{size};
    if (size == 1) other.links = {};
  } else if (const auto* const share = std::get_if<GpuShare>(&shape.gpus)) {
    GpuShare smaller = *share;
    (text.starts_with("with shares of") ? smaller.count : smaller.milli) = size;
    if (smaller.count != share->count || share->memory_mib == 0) other.gpus = smaller;
  }
  return other;
}

void CheckWay(const Node& node, const PodRequest& pod, const WayIn& way) {
  SCOPED_TRACE(way.code + ": " + way.text);
  if (way.code == "pods_end") {
    const auto without = [&](const std::vector<std::string>& names) {
      return node.Without([&names](const PodRecord& record) {
        return std::ranges::find(names, record.pod.id.full_name()) != names.end();
      });
    };
    EXPECT_TRUE(FitsIn(without(way.pods), pod));
    for (std::size_t i = 0; i < way.pods.size(); ++i) {
      std::vector<std::string> fewer = way.pods;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(FitsIn(without(fewer), pod)) << way.pods[i] << " need not end";
    }
    return;
  }
  if (way.code == "size") {
    const int size = NumberIn(way.text);
    PodRequest smaller = pod;
    smaller.shape = Resized(pod.shape, way.text, size);
    if (smaller.shape != pod.shape) {
      EXPECT_TRUE(FitsIn(node, smaller));
      smaller.shape = Resized(pod.shape, way.text, size + 1);
      EXPECT_FALSE(FitsIn(node, smaller));
    }
    return;
  }
  const auto need =
      std::ranges::find_if(kNeeds, [&way](Need each) { return CodeOf(each) == way.code; });
  if (need == kNeeds.end()) return;
  const auto without = Without(pod, *need);
  ASSERT_TRUE(without.has_value()) << way.code;
  EXPECT_TRUE(FitsIn(node, *without));
}

TEST(ExplainProperty, WhateverIsSaidToLetAPodInDoesSo) {
  int ways = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    ClusterState state;
    random.Populate(state, 4, 12);
    Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
    PodRequest pod = random.APodNumbered(100);
    pod.priority = random.Between(0, 1);
    const auto snapshot = state.Current();
    const PodExplanation told = ExplainPod(engine, {.snapshot = snapshot, .pod = pod});
    std::int64_t refused = 0;
    for (const ReasonCount& count : told.counts) refused += count.nodes;
    EXPECT_EQ(refused + static_cast<std::int64_t>(told.fitting), 4) << "every node counts once";
    EXPECT_EQ(told.fitting > 0, !engine.Best(snapshot, pod.shape).empty());
    if (!told.best.empty()) {
      EXPECT_EQ(told.best[0].node, engine.Best(snapshot, pod.shape).front());
    }
    for (const NearNodeFacts& near : told.nearest) {
      SCOPED_TRACE(near.facts.name);
      EXPECT_FALSE(near.near.lack.empty());
      for (const WayIn& way : near.near.ways) {
        CheckWay(snapshot->node(near.near.node), pod, way);
        ++ways;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(ways, Drawn(1000)) << "hardly any pod was kept out";
}

// Whether kube-scheduler, may evict the pods of that outlook, and the pod fits without them.
void CheckOutlook(const Snapshot& snapshot, const PodRequest& pod,
                  const PreemptionOutlook& outlook) {
  if (!outlook.helps || outlook.under_way) return;
  const Node& node = snapshot.node(snapshot.names().Find(outlook.node));
  const auto goes = [&outlook](const PodRecord& held) {
    return std::ranges::find(outlook.victims, held.pod.id.full_name()) != outlook.victims.end();
  };
  std::size_t found = 0;
  for (const auto& held : node.pods()) {
    if (!goes(*held)) continue;
    ++found;
    EXPECT_LT(held->pod.priority, pod.priority) << held->pod.id.name;
  }
  EXPECT_EQ(found, outlook.victims.size()) << "on " << outlook.node;
  EXPECT_TRUE(FitsIn(node.Without(goes), pod)) << "on " << outlook.node;
  EXPECT_TRUE(node.spec().ready);
}

TEST(ExplainProperty, WhatIsSaidOfClustersAsPeopleHaveThemIsSo) {
  int ways = 0, outlooks = 0, fit = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds / 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    const auto snapshot = world.Snapshot();
    Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
    PodRequest pod = world.APod();
    if (world.random().Chance(30)) pod.priority = 500;
    std::vector<NodeIndex> all(snapshot->size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    const auto reasons = ReasonsAnew(*snapshot, {.pod = pod, .candidates = all});
    const PodExplanation told = ExplainPod(
        engine, {.snapshot = snapshot, .pod = pod, .limits = {world.budgets(), {}, World::Now()}});
    std::int64_t refused = 0, lacking = 0;
    for (const ReasonCount& count : told.counts) refused += count.nodes;
    for (const NodeIndex node : all) {
      const bool lacks = !LackOf(snapshot->node(node), pod).empty();
      lacking += reasons[node] == Reason::kFits && lacks ? 1 : 0;
    }
    const auto fitting = static_cast<std::int64_t>(told.fitting);
    EXPECT_EQ(refused + fitting + lacking, std::ssize(all));
    EXPECT_EQ(std::ranges::count(reasons, Reason::kFits), fitting + lacking);
    for (const ScoredNode& best : told.best) {
      EXPECT_EQ(reasons[best.node], Reason::kFits) << best.node;
    }
    for (const NearNodeFacts& near : told.nearest) {
      SCOPED_TRACE(near.facts.name);
      for (const WayIn& way : near.near.ways) {
        CheckWay(snapshot->node(near.near.node), pod, way);
        ++ways;
      }
    }
    if (told.preemption) CheckOutlook(*snapshot, pod, *told.preemption);
    outlooks += told.preemption && told.preemption->helps ? 1 : 0;
    fit += told.fitting > 0 ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(ways, Drawn(300));
  EXPECT_GT(outlooks, Drawn(20));
  EXPECT_GT(fit, Drawn(100));
}

}  // namespace
}  // namespace berth::test::explain_property_test
