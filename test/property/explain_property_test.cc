// SPDX-License-Identifier: Apache-2.0
//
// What an explanation promises is true, in random clusters: whatever is said to let a pod in does
// so, if nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scoring/explain/explain_pod.h"
#include "scoring/explain/needs.h"
#include "scoring/registry.h"
#include "test/support/random_world.h"

namespace berth::test::explain_property_test {
namespace {

constexpr std::uint64_t kSeeds = 1500;

bool FitsIn(const Node& node, const RequestShape& shape) {
  return FirstObjection(node, shape) == Reason::kFits;
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
    EXPECT_TRUE(FitsIn(without(way.pods), pod.shape));
    for (std::size_t i = 0; i < way.pods.size(); ++i) {
      std::vector<std::string> fewer = way.pods;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(FitsIn(without(fewer), pod.shape)) << way.pods[i] << " need not end";
    }
    return;
  }
  if (way.code == "size") {
    const int size = NumberIn(way.text);
    const RequestShape smaller = Resized(pod.shape, way.text, size);
    if (smaller != pod.shape) {
      EXPECT_TRUE(FitsIn(node, smaller));
      EXPECT_FALSE(FitsIn(node, Resized(pod.shape, way.text, size + 1)));
    }
    return;
  }
  const auto need =
      std::ranges::find_if(kNeeds, [&way](Need each) { return CodeOf(each) == way.code; });
  if (need == kNeeds.end()) return;
  const auto without = Without(pod, *need);
  ASSERT_TRUE(without.has_value()) << way.code;
  EXPECT_TRUE(FitsIn(node, without->shape));
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
  EXPECT_GT(ways, 1000) << "hardly any pod was kept out";
}

}  // namespace
}  // namespace berth::test::explain_property_test
