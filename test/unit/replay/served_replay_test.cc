// SPDX-License-Identifier: Apache-2.0
//
// What is replayed is what is served: the replay's placer and an Extender are asked about the same
// pods on the same random clusters, with taints, selectors, priorities, groups and a short list.
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/engine_placer.h"
#include "bench/replay/time/sim_clock.h"
#include "scoring/registry.h"
#include "server/extender/extender.h"
#include "server/extender/ports/embedded_cluster.h"
#include "test/support/random_world.h"

namespace berth::replay::served_replay_test {
namespace {

using test::RandomWorld;

constexpr int kNodes = 12, kPods = 30;
const TopologyLevels kLevels = {{"zone", {"zone"}}, {"rack", {"rack"}}};

class SilentSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
};

std::vector<NodeSpec> SomeNodes(RandomWorld& world) {
  std::vector<NodeSpec> nodes;
  for (int i = 0; i < kNodes; ++i) {
    NodeSpec node = world.ANodeNamed("n" + std::to_string(10 + i));
    const std::string zone = world.OneOf<std::string>({"z1", "z2"});
    if (world.Chance(80)) node.labels = {{"rack", zone + world.OneOf<std::string>({"a", "b"})}};
    if (world.Chance(90)) node.labels.emplace_back("zone", zone);
    if (world.Chance(25)) node.taints.push_back({"dedicated", "ml", TaintEffect::kNoSchedule});
    nodes.push_back(std::move(node));
  }
  return nodes;
}

PodRequest SomePod(RandomWorld& world, int number) {
  PodRequest pod = world.APodNumbered(number);
  pod.priority = world.OneOf<int>({0, 0, 100});
  NodeConstraints constraints;
  if (world.Chance(50))
    constraints.tolerations.push_back({"dedicated", TolerationOperator::kExists, "", {}});
  if (world.Chance(20)) constraints.selector = {{"zone", LabelOperator::kIn, {"z1"}}};
  if (world.Chance(60)) {
    pod.constraints = std::make_shared<const NodeConstraints>(std::move(constraints));
  }
  if (world.Chance(40)) {
    pod.gang.id = {"", "ns", "g" + std::to_string(world.Between(1, 3))};
    pod.gang.total = world.OneOf<std::optional<int>>({std::nullopt, 2, 4});
    if (world.Chance(50)) pod.domain.required = static_cast<std::size_t>(world.Between(0, 1));
    if (world.Chance(30)) pod.domain.preferred = 1;
  }
  return pod;
}

TEST(ServedReplay, AnswersAsTheExtenderDoes) {
  int placed = 0, refused = 0, passed_over = 0, outside = 0, not_admitted = 0;
  for (std::uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    RandomWorld world(seed);
    const std::vector<NodeSpec> nodes = SomeNodes(world);
    const ProfileSpec& spec = *FindBuiltinProfile(
        world.OneOf<std::string>({"best-fit", "fragmentation-gradient", "first-fit"}));
    const RequestMix mix = world.AMix();
    Engine served(BuildProfile(spec, mix).value()), replayed(BuildProfile(spec, mix).value());
    const auto nodes_to_score = static_cast<std::size_t>(world.OneOf<int>({0, 1, 2, 5}));

    EnginePlacer placer(replayed, nodes, seed, nullptr, {nodes_to_score, kLevels});
    ClusterState state;
    std::vector<ClusterEvent> events;
    for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
    ASSERT_TRUE(state.Apply(events));
    EmbeddedCluster cluster;
    SilentSink sink;
    SimClock clock;
    NodeDomains domains(kLevels);
    Extender extender(
        {.state = state, .binder = cluster, .sink = sink, .clock = clock, .domains = &domains},
        {std::shared_ptr<Engine>(&served, [](Engine*) {}), std::chrono::seconds(30),
         nodes_to_score});

    std::vector<NodeIndex> all(kNodes);
    std::iota(all.begin(), all.end(), NodeIndex{0});
    std::vector<PodRequest> pods;
    for (int i = 0; i < kPods; ++i) {
      // Now and then one that found no place comes again.
      const bool again = !pods.empty() && world.Chance(20);
      const PodRequest pod = again ? pods.back() : SomePod(world, i);
      SCOPED_TRACE("seed " + std::to_string(seed) + " pod " + std::to_string(i));
      const Extender::Moment now = extender.Now();
      const auto& snapshot = now.snapshot;
      const std::vector<Reason> reasons = extender.Filter(now, pod, all).reasons;
      EXPECT_EQ(placer.Look(pod).reasons, reasons);
      passed_over += static_cast<int>(std::ranges::count(reasons, Reason::kBetterElsewhere));
      outside += static_cast<int>(std::ranges::count(reasons, Reason::kOutsideDomain));
      not_admitted += static_cast<int>(std::ranges::count(reasons, Reason::kTaintNotTolerated));
      std::vector<NodeIndex> fitting;
      for (const NodeIndex node : all) {
        if (reasons[node] == Reason::kFits) fitting.push_back(node);
      }
      const auto node = placer.Put(pod);
      ASSERT_TRUE(node);
      ASSERT_EQ(node->has_value(), !fitting.empty());
      if (fitting.empty()) {
        ++refused;
        pods.push_back(pod);
        continue;
      }
      const auto priorities = extender.Prioritize(now, pod, fitting);
      const auto best = std::ranges::max_element(priorities) - priorities.begin();
      ASSERT_EQ(**node, fitting[static_cast<std::size_t>(best)]);
      std::optional<Status> bound;
      ASSERT_TRUE(extender.Bind({pod.id.namespace_name, pod.id.name, pod.id.uid,
                                 std::string(snapshot->names().name(**node))},
                                [&bound](Status status) { bound = std::move(status); }));
      ASSERT_TRUE(bound && *bound) << bound->error().message;
      EXPECT_EQ(placer.state().FindPod(pod.id.uid)->placement,
                state.FindPod(pod.id.uid)->placement);
      EXPECT_EQ(*placer.state().Current(), *state.Current());
      if (again) pods.pop_back();
      ++placed;
    }
  }
  for (const int count : {placed, refused, passed_over, outside, not_admitted}) {
    EXPECT_GT(count, 100);
  }
}

}  // namespace
}  // namespace berth::replay::served_replay_test
