// SPDX-License-Identifier: Apache-2.0
#include "test/support/worlds.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "bench/replay/time/sim_clock.h"
#include "scoring/admission.h"
#include "server/wire/file/cluster_file.h"
#include "test/support/dialects.h"
#include "test/support/worlds_json.h"

namespace berth::test::worlds_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

TEST(Worlds, TheSameSeedDrawsTheSameWorld) {
  const World first(7), again(7), other(8);
  EXPECT_EQ(KubernetesList(first), KubernetesList(again));
  EXPECT_NE(KubernetesList(first), KubernetesList(other));
}

// The numbers are of 200 worlds; the least is what a test of some hundred worlds can count on.
TEST(Worlds, HaveEveryPropertyInManyOfThem) {
  constexpr int kWorlds = 200;
  std::map<WorldProperty, int> had;
  for (int seed = 1; seed <= kWorlds; ++seed) {
    for (const WorldProperty property : PropertiesOf(World(static_cast<std::uint64_t>(seed)))) {
      ++had[property];
    }
  }
  for (const PropertyWord& word : kWorldProperties) {
    if (word.property == WorldProperty::kAutoscaler) continue;
    EXPECT_GE(had[word.property], kWorlds / 10) << word.name;
    RecordProperty(std::string(word.name), had[word.property]);
  }
}

// Every pod that runs is where Kubernetes lets it be, and no GPU is held twice.
TEST(Worlds, ArePossible) {
  int pods = 0, idle = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const World world(seed);
    ClusterState state;
    world.Populate(state);
    std::map<std::string, const NodeSpec*> nodes;
    for (const NodeSpec& spec : world.nodes()) nodes.emplace(spec.name, &spec);
    for (const World::RunningPod& one : world.pods()) {
      // A kubelet runs static pods whatever the taints are.
      if (one.ended || (one.life.comes_back && one.pod.controller.empty())) continue;
      NodeSpec spec = *nodes.at(one.placement.node);
      std::erase_if(spec.taints, [](const Taint& taint) { return taint.key.find("nvidia") != 0; });
      ASSERT_EQ(Admits(spec, one.pod), Reason::kFits) << one.pod.id.name;
      ++pods;
    }
    const auto snapshot = state.Current();
    ASSERT_EQ(snapshot->size(), world.nodes().size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      const Node& node = snapshot->node(i);
      ASSERT_GE(node.free_cpu_milli(), 0) << node.spec().name;
      ASSERT_GE(node.free_memory_bytes(), 0) << node.spec().name;
      ASSERT_LE(std::ssize(node.pods()), node.spec().most_pods);
      for (const GpuFree& gpu : node.gpus()) {
        ASSERT_GE(gpu.milli, 0) << node.spec().name;
        idle += gpu.idle() ? 1 : 0;
      }
    }
  }
  EXPECT_GT(pods, 200 * 20);
  EXPECT_GT(idle, 200 * 2);
}

TEST(Worlds, AreReadFromTheirJsonAsTheyAre) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const World world(seed);
    const wire::NodeRules node_rules(DefaultConfig(), AllDialects());
    const wire::PodRules pod_rules(AllDialects(), DefaultConfig());
    const auto read = wire::DecodeCluster(KubernetesList(world).dump(), node_rules, &pod_rules);
    ASSERT_TRUE(read) << read.error().message;
    ClusterState state;
    ASSERT_TRUE(state.Apply(read->events));
    std::map<std::string, const World::RunningPod*> drawn;
    for (const auto& one : world.pods()) drawn.emplace(one.pod.id.uid, &one);
    const auto snapshot = state.Current();
    ASSERT_EQ(snapshot->size(), world.nodes().size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      const NodeSpec &there = snapshot->node(i).spec(), &spec = world.nodes()[i];
      SCOPED_TRACE(spec.name);
      EXPECT_EQ(there.gpu_model, spec.gpu_model);
      EXPECT_EQ(there.taints, spec.taints);
      EXPECT_EQ(there.labels, spec.labels);
      EXPECT_EQ(there.others, spec.others);
      EXPECT_EQ(there.most_pods, spec.most_pods);
      EXPECT_EQ(there.ready, spec.ready);
      EXPECT_EQ(there.gpus.size(), spec.gpus.size());
      EXPECT_EQ(snapshot->node(i).healthy_gpus(), world.NodeOf(spec).healthy_gpus());
      for (const auto& record : snapshot->node(i).pods()) {
        const PodRequest &pod = record->pod, &as_drawn = drawn.at(pod.id.uid)->pod;
        SCOPED_TRACE(pod.id.name);
        EXPECT_EQ(pod.refusal, "");
        EXPECT_EQ(pod.shape, as_drawn.shape);
        EXPECT_EQ(pod.own_to_scheduler, as_drawn.own_to_scheduler);
        EXPECT_EQ(pod.priority, as_drawn.priority);
        EXPECT_EQ(pod.mobility, as_drawn.mobility);
        EXPECT_EQ(pod.keep, as_drawn.keep);
        EXPECT_EQ(pod.controller,
                  pod.mobility == Mobility::kComesBack && as_drawn.controller.empty()
                      ? "node"
                      : as_drawn.controller);
        EXPECT_EQ(pod.gang.id, as_drawn.gang.id);
        EXPECT_EQ(pod.gang.total, as_drawn.gang.total);
        EXPECT_EQ(pod.scheduler, as_drawn.scheduler);
        EXPECT_EQ(pod.deadline_seconds, as_drawn.deadline_seconds);
        EXPECT_EQ(pod.expected_seconds, as_drawn.expected_seconds);
        EXPECT_EQ(pod.checkpointed, as_drawn.checkpointed);
        EXPECT_EQ(record->placement.grants, drawn.at(pod.id.uid)->placement.grants);
        EXPECT_EQ(record->leaving, drawn.at(pod.id.uid)->life.ends.has_value());
      }
    }
    ASSERT_EQ(read->waiting.size(), world.waiting().size());
    for (std::size_t i = 0; i < read->waiting.size(); ++i) {
      const PodRequest &pod = *read->waiting[i].pod, &as_drawn = world.waiting()[i];
      EXPECT_EQ(pod.constraints == nullptr ? NodeConstraints() : *pod.constraints,
                as_drawn.constraints == nullptr ? NodeConstraints() : *as_drawn.constraints);
      EXPECT_EQ(pod.others == nullptr, as_drawn.others == nullptr);
      EXPECT_EQ(pod.series == 0, as_drawn.series == 0);
    }
    if (HasFailure()) return;
  }
}

TEST(Worlds, AnAutoscalerTakesIdleNodesAndBringsOthersInThreeSteps) {
  int taken = 0, brought = 0, bare = 0, starting = 0, whole = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    World world(seed, {.held_percent = 50});
    ClusterState state;
    world.Populate(state);
    Autoscaler scaler(world);
    std::string kept;
    scaler.stays = [&kept](const std::string& node) { return node == kept; };
    SimClock clock;
    for (int step = 0; step < 60; ++step) {
      const auto before = state.Current();
      const auto events = scaler.Look(*before, world.waiting(), clock.Now());
      for (const ClusterEvent& event : events) {
        if (const auto* const node = std::get_if<NodeUpserted>(&event)) {
          const bool tainted = node->spec.taints.size() > 0 &&
                               node->spec.taints.back().key.starts_with("node.cilium");
          ++(node->spec.gpus.empty() ? bare : tainted ? starting : whole);
        }
        if (const auto* const gone = std::get_if<NodeRemoved>(&event)) {
          ASSERT_NE(gone->name, kept);
          ASSERT_TRUE(std::ranges::all_of(before->node(before->names().Find(gone->name)).pods(),
                                          [](const auto& pod) { return pod->life.comes_back; }));
        }
      }
      ASSERT_TRUE(state.Apply(events));
      clock.Advance(seconds(30));
    }
    taken += scaler.taken();
    brought += scaler.brought();
  }
  EXPECT_GT(taken, 10);
  EXPECT_GT(brought, 10);
  EXPECT_EQ(bare, brought);
  EXPECT_GE(starting, brought - 20);
  EXPECT_GE(whole, brought - 40);
}

// A test with brute force can say how small a world is to be.
TEST(Worlds, MayBeSmall) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const World world(seed, {.nodes = 1, .cpu_nodes = 0, .gpus = 4, .most_held = 5});
    ASSERT_EQ(world.nodes().size(), 1U);
    int with_gpus = 0;
    for (const auto& one : world.pods()) with_gpus += !one.ended && one.pod.shape.wants_gpu();
    ASSERT_LE(with_gpus, 5);
    ASSERT_LE(world.nodes()[0].gpus.size(), 4U);
  }
}

}  // namespace
}  // namespace berth::test::worlds_test
