// SPDX-License-Identifier: Apache-2.0
//
// What a snapshot says of a state can be loaded, and is then said again in the same words: for
// random states, with amounts as large as pods and nodes can name.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "scoring/waste/request_mix.h"
#include "server/wire/file/cluster_file.h"
#include "test/support/dialects.h"
#include "test/support/random_world.h"

namespace berth::wire::cluster_file_property_test {
namespace {

using test::RandomWorld;

constexpr std::uint64_t kSeeds = 300;
constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

// As pod_rules caps what a pod asks for.
std::int64_t AnAmount(RandomWorld& world) {
  return world.OneOf<std::int64_t>({0, 1, std::int64_t{1} << 40, std::int64_t{1} << 60, kEnd / 4});
}

PodRequest APodOf(RandomWorld& world, int number) {
  PodRequest pod = world.APodNumbered(number);
  if (number == 0) pod.shape.memory_bytes = AnAmount(world);  // of one: nodes add them up
  if (number == 1) pod.shape.cpu_milli = AnAmount(world);
  if (number == 2) pod.shape.ephemeral_bytes = AnAmount(world);
  if (world.Chance(10)) pod.shape.gpus = GpuShare{1, AnAmount(world)};
  pod.priority = world.OneOf<int>({0, 7, std::numeric_limits<int>::min()});
  if (world.Chance(20))
    pod.gang.id = {world.Chance(50) ? "labels" : "", "ns", "gang \"x\" \xc3\xa9"};
  if (world.Chance(20)) pod.labels = std::make_shared<const Labels>(Labels{{"a", ""}, {"b", "\n"}});
  return pod;
}

void Fill(RandomWorld& world, ClusterState& state, LearnedMix& mix) {
  std::vector<ClusterEvent> events;
  for (int i = 0; i < 6; ++i) {
    NodeSpec spec = world.ANodeNamed("n" + std::to_string(i));
    if (world.Chance(20)) spec.memory_bytes = std::int64_t{1} << 60;  // the most that is valid
    if (world.Chance(20)) spec.cpu_milli = 1'000'000'000'000;
    if (world.Chance(20)) spec.ephemeral_bytes = std::int64_t{1} << 60;
    if (world.Chance(20)) spec.taints.push_back({"k", "v", TaintEffect::kNoExecute});
    events.emplace_back(NodeUpserted{std::move(spec)});
  }
  for (int i = 0; i < 20; ++i) {
    const PodRequest pod = APodOf(world, i);
    mix.Observe(pod.shape);
    const std::string node = "n" + std::to_string(world.Between(0, 7));  // some are not known
    events.emplace_back(PodBound{pod, world.AForeignPlacement(pod.shape, node)});
  }
  const Status applied = state.Apply(events);
  ASSERT_TRUE(applied) << applied.error().message;
}

TEST(ClusterFileProperty, WhatIsWrittenIsReadAndWrittenAgainAlike) {
  const NodeRules rules(DefaultConfig(), test::AllDialects());
  for (std::uint64_t seed = 1; seed <= kSeeds && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld world(seed);
    ClusterState state, again;
    LearnedMix mix({world.OneOf<int>({1, 10, 8000}), 50}), same({10, 50});
    Fill(world, state, mix);
    const std::string text = EncodeCluster(state.Everything(), mix.Remember());
    const auto file = DecodeCluster(text, rules);
    ASSERT_TRUE(file) << file.error().message;
    const Status applied = again.Apply(file->events);
    ASSERT_TRUE(applied) << applied.error().message;
    ASSERT_TRUE(file->learned);
    same.Restore(*file->learned);
    EXPECT_EQ(EncodeCluster(again.Everything()), EncodeCluster(state.Everything()));
    EXPECT_EQ(same.Remember().classes.size(), file->learned->classes.size());
  }
}

// With a half-life of one pod the first class is 2^-1100 of a pod in the end, which is 0.
TEST(ClusterFileProperty, AMixThatHasForgottenAClassCanBeRead) {
  LearnedMix mix({1, 50});
  RequestShape shape;
  shape.memory_bytes = std::int64_t{1} << 60;
  mix.Observe(shape);
  for (shape.cpu_milli = 1; shape.cpu_milli < 1200; ++shape.cpu_milli) mix.Observe(shape);
  const std::string text = EncodeCluster(ClusterState().Everything(), mix.Remember());
  const auto file = DecodeCluster(text, NodeRules(DefaultConfig(), test::AllDialects()));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_LT(file->learned->classes.size(), 100U);
}

TEST(ClusterFileProperty, AFileOf200000ModelsIsRefusedWithTheReason) {
  std::string text = R"({"version": 1, "nodes": [)";
  for (int i = 0; i < 200'000; ++i) {
    const std::string number = std::to_string(i);
    text.append(i == 0 ? "" : ",").append(R"({"name": "n)").append(number);
    text.append(R"(", "gpu_model": "m)").append(number).append(R"(", "gpus": 1})");
  }
  const auto file = DecodeCluster(text + "]}", NodeRules(DefaultConfig(), test::AllDialects()));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message, "nodes[1000].gpu_model: want at most 1000 GPU models, got more");
}

}  // namespace
}  // namespace berth::wire::cluster_file_property_test
