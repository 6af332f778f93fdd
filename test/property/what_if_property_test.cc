// SPDX-License-Identifier: Apache-2.0
//
// A plan says what would be decided: in random clusters each pod gets the node and the devices that
// it gets from the engine when the pods come one after the other.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scoring/explain/other_limits.h"
#include "scoring/explain/what_if.h"
#include "scoring/judgement.h"
#include "scoring/registry.h"
#include "scoring/victims.h"
#include "scoring/waste/request_mix.h"
#include "test/support/random_world.h"
#include "test/support/worlds.h"

namespace berth::test::what_if_property_test {
namespace {

constexpr std::uint64_t kSeeds = 400;

// The highest first; among equals as they were.
std::vector<NodeIndex> BySchedulersScore(const Snapshot& snapshot, const PodRequest& pod,
                                         std::vector<NodeIndex> nodes) {
  std::ranges::stable_sort(nodes, std::greater<>(), [&](NodeIndex node) {
    return SchedulerScore(snapshot.node(node), pod);
  });
  return nodes;
}

// Of the nodes that admit the pod and have all that kube-scheduler counts beside, the best.
std::vector<NodeIndex> BestWithAll(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                                   const PodRequest& pod) {
  std::vector<NodeIndex> all, equal;
  for (NodeIndex i = 0; i < snapshot->size(); ++i) {
    if (LackOf(snapshot->node(i), pod).empty()) all.push_back(i);
  }
  const Judgement judged = Judge(engine, snapshot, {.pod = pod, .candidates = all});
  if (judged.fitting.empty()) return {};
  const auto priorities = Priorities(engine, snapshot, pod, judged.fitting, judged.pull);
  const std::uint8_t highest = *std::ranges::max_element(priorities);
  for (std::size_t i = 0; i < priorities.size(); ++i) {
    if (priorities[i] == highest) equal.push_back(judged.fitting[i]);
  }
  return equal;
}

TEST(WhatIfProperty, EveryPodGoesWhereTheEngineWouldPlaceIt) {
  std::int64_t placed = 0, refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    ClusterState state;
    std::optional<World> people;
    if (seed % 3 == 0) people.emplace(seed);
    people ? people->Populate(state) : random.Populate(state, 6, 8);
    const std::string profile = random.OneOf<std::string>(
        {"best-fit", "fragmentation-gradient", "expected-waste", "spreading"});
    Engine engine(BuildProfile(*FindBuiltinProfile(profile), random.AMix()).value());
    std::vector<PodRequest> pods;
    for (int i = 0; i < 10; ++i) {
      pods.push_back(people ? people->APod() : random.APodNumbered(100 + i));
    }
    std::ranges::stable_sort(pods, std::greater<>(), &PodRequest::priority);
    const auto before = state.Current();
    const Snapshot copy = *before;
    const auto told = WhatIf(engine, {.snapshot = before, .pods = pods});
    ASSERT_TRUE(told);
    EXPECT_TRUE(copy.IsSame(*before));
    for (std::size_t i = 0; i < pods.size(); ++i) {
      SCOPED_TRACE("pod " + std::to_string(i));
      const auto equal = people ? BestWithAll(engine, state.Current(), pods[i])
                                : engine.Best(state.Current(), pods[i].shape);
      const auto best = BySchedulersScore(*state.Current(), pods[i], equal);
      const std::optional<Placement>& planned = told->pods[i].placement;
      ASSERT_EQ(planned.has_value(), !best.empty());
      if (!planned) {
        EXPECT_FALSE(told->whys[told->pods[i].why].text.empty());
        ++refused;
        continue;
      }
      const auto decided = engine.PlaceOn(state.Current(), pods[i].shape, best.front());
      ASSERT_TRUE(decided);
      ASSERT_EQ(*planned, *decided) << planned->node << ", not " << decided->node;
      ASSERT_TRUE(state.Reserve(pods[i], *decided, Instant::max()));
      ++placed;
    }
    EXPECT_EQ(*told->nodes.snapshot, *state.Current());
  }
  EXPECT_GT(placed, 1000);
  EXPECT_GT(refused, 500);
}

// What a cluster in service has: an engine that follows a mix which hears of each pod as it comes.
class Service {
 public:
  // has_background: what an epoch needs is there at once, as with a thread that is quick.
  Service(const std::string& profile, bool has_background, const Snapshot& snapshot) {
    Engine::Learning learning{*FindBuiltinProfile(profile), {}, mix_};
    learning.waste.fills = 4;
    if (has_background) {
      learning.background = [](const std::function<void()>& job) {
        job();
        return true;
      };
    }
    engine_ = Engine::Create(std::move(learning), snapshot).value();
  }

  // As the verbs do it, one after the other; nothing: it fits nowhere.
  std::optional<Placement> Serve(ClusterState& state, const PodRequest& pod) {
    const auto snapshot = state.Current();
    mix_->Observe(WithCompute(pod.shape, *snapshot));
    engine_->Follow(snapshot);
    std::vector<NodeIndex> all(snapshot->size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    const Judgement judged = Judge(*engine_, snapshot, {.pod = pod, .candidates = all});
    if (judged.fitting.empty()) return std::nullopt;
    const auto priorities = engine_->Prioritize(snapshot, pod.shape, judged.fitting);
    std::vector<NodeIndex> equal;
    const std::uint8_t highest = *std::ranges::max_element(priorities);
    for (std::size_t i = 0; i < priorities.size(); ++i) {
      if (priorities[i] == highest) equal.push_back(judged.fitting[i]);
    }
    const NodeIndex best = BySchedulersScore(*snapshot, pod, equal).front();
    const auto placed = engine_->PlaceOn(snapshot, pod.shape, best);
    EXPECT_TRUE(placed.has_value());
    if (!placed || !state.Reserve(pod, *placed, Instant::max())) return std::nullopt;
    return *placed;
  }

  [[nodiscard]] const Engine& engine() const { return *engine_; }
  [[nodiscard]] const LearnedMix& mix() const { return *mix_; }

 private:
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{});
  std::shared_ptr<Engine> engine_;
};

std::string TextOf(const std::optional<Placement>& placement) {
  if (!placement) return "nowhere";
  std::string text = placement->node;
  for (const DeviceGrant& grant : placement->grants) text += " " + std::to_string(grant.gpu);
  return text;
}

TEST(WhatIfProperty, TheMixLearnsOfAPlanAsOfPodsThatCome) {
  constexpr std::uint64_t kWorlds = 40;
  std::int64_t placed = 0, refused = 0, epochs = 0;
  for (std::uint64_t seed = 1; seed <= kWorlds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomWorld random(seed);
    ClusterState state;
    const int nodes = random.Between(6, 40);
    random.Populate(state, nodes, nodes);
    const std::string profile = random.OneOf<std::string>({"expected-waste", "power-saving"});
    Service service(profile, random.Chance(50), *state.Current());
    const int before = random.OneOf<int>({0, 0, 5, 40});
    for (int i = 0; i < before; ++i) (void)service.Serve(state, random.APodNumbered(i + 1000));
    std::vector<PodRequest> pods;
    for (int i = 0; i < 40; ++i) {
      pods.push_back(random.APodNumbered(5000 + i));
      pods.back().priority = random.Between(0, 1);
    }
    const LearnedMix::Epoch epoch = service.mix().Current();
    const auto told =
        WhatIf(service.engine(), {.snapshot = state.Current(), .pods = pods}, &service.mix());
    ASSERT_TRUE(told);
    EXPECT_EQ(service.mix().Current().number, epoch.number) << "the plan leaves the mix alone";
    for (const int priority : {1, 0}) {
      for (std::size_t i = 0; i < pods.size(); ++i) {
        if (pods[i].priority != priority) continue;
        SCOPED_TRACE("pod " + std::to_string(i));
        const auto served = service.Serve(state, pods[i]);
        (served ? placed : refused) += 1;
        ASSERT_EQ(TextOf(told->pods[i].placement), TextOf(served));
        ASSERT_EQ(told->pods[i].placement, served);
      }
    }
    epochs += static_cast<std::int64_t>(service.mix().Current().number - epoch.number);
  }
  EXPECT_GT(placed, 500);
  EXPECT_GT(refused, 200);
  EXPECT_GT(epochs, 200);
}

}  // namespace
}  // namespace berth::test::what_if_property_test
