// SPDX-License-Identifier: Apache-2.0
//
// The engine whose mix is learned: it decides from the first pod on, follows the mix, and is a
// function of the calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::learning_engine_test {
namespace {

// A cluster that is filled by an engine that learns.
class Learner {
 public:
  explicit Learner(int nodes, bool backwards = false)
      : engine_(Engine::Create({*FindBuiltinProfile("expected-waste"), {4, 20}, mix_}).value()) {
    std::vector<ClusterEvent> events;
    for (int i = 0; i < nodes; ++i) {
      const int n = backwards ? nodes - 1 - i : i;
      const ANode node = ANode("n" + std::to_string(1000 + n)).Gpus(n % 3 == 0 ? 8 : 2).Cpu(96);
      events.emplace_back(NodeUpserted{node.Spec()});
    }
    EXPECT_TRUE(state_.Apply(events).has_value());
  }

  // Where it went; "" when it did not fit.
  std::string Place(const PodRequest& pod) {
    const auto snapshot = state_.Current();
    mix_->Observe(pod.shape);
    engine_->Follow(snapshot);
    const auto best = engine_->Best(snapshot, pod.shape);
    if (best.empty()) return "";
    const auto placement = engine_->PlaceOn(snapshot, pod.shape, best.front());
    EXPECT_TRUE(placement.has_value());
    EXPECT_TRUE(state_.Reserve(pod, *placement, Instant::max()).has_value());
    return placement->node + "/" +
           std::to_string(placement->grants.empty() ? -1 : placement->grants[0].gpu);
  }

  Engine& engine() { return *engine_; }
  LearnedMix& mix() { return *mix_; }
  ClusterState& state() { return state_; }

 private:
  std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{200, 50});
  std::shared_ptr<Engine> engine_;
  ClusterState state_;
};

PodRequest APodOf(Random& random, int number) {
  APod pod("p" + std::to_string(number));
  pod.Cpu(static_cast<std::int64_t>(1 + random.Below(8)));
  const std::uint64_t kind = random.Below(10);
  if (kind < 4) pod.Share(static_cast<int>(100 * (1 + random.Below(9))));
  if (kind >= 4 && kind < 8) pod.Whole(1);
  if (kind == 8) pod.Whole(static_cast<int>(random.Below(2) == 0 ? 4 : 8)).Cpu(32);
  return pod.Request();
}

std::vector<std::string> PlaceAll(Learner& learner, int pods) {
  Random random(5);
  std::vector<std::string> places;
  for (int i = 0; i < pods; ++i) places.push_back(learner.Place(APodOf(random, i)));
  return places;
}

TEST(LearningEngine, DecidesFromTheFirstPodOn) {
  Learner learner(4);
  EXPECT_NE(learner.Place(APod("p").Whole(1).Cpu(1).Request()), "");
}

TEST(LearningEngine, SameEventsSameDecisions) {
  Learner one(40), two(40);
  const auto places = PlaceAll(one, 400);
  EXPECT_EQ(PlaceAll(two, 400), places);
  EXPECT_GT(std::ranges::count_if(places, [](const auto& place) { return !place.empty(); }), 100);
}

TEST(LearningEngine, TheOrderInWhichNodesCameLeavesNoTrace) {
  Learner one(40), two(40, /*backwards=*/true);
  EXPECT_EQ(PlaceAll(one, 400), PlaceAll(two, 400));
}

TEST(LearningEngine, ChangesItsProfileWithTheEpochsOfTheMixAndOnlyThen) {
  Learner learner(30);
  PlaceAll(learner, 100);
  const auto snapshot = learner.state().Current();
  auto profile = learner.engine().profile();
  std::uint64_t epoch = learner.mix().Current().number;
  for (int i = 0; i < 300; ++i) {
    learner.mix().Observe(APod("p").Whole(2).Shape());
    learner.engine().Follow(snapshot);
    EXPECT_EQ(learner.engine().profile() != profile, learner.mix().Current().number != epoch);
    profile = learner.engine().profile();
    epoch = learner.mix().Current().number;
  }
}

// A pod that comes later must not wait for all of it.
TEST(LearningEngine, LaterEpochsAreCalibratedOverThreeCalls) {
  Learner learner(30);
  LearnedMix::Memory many = {2000, {{APod("p").Whole(1).Shape(), 100}}};
  learner.mix().Restore(many);  // from here on an epoch has 50 pods
  const auto snapshot = learner.state().Current();
  const auto follow = [&] {
    const auto before = learner.engine().profile();
    learner.mix().Observe(APod("p").Whole(2).Shape());
    learner.engine().Follow(snapshot);
    return learner.engine().profile() != before;
  };
  for (int i = 0; i < 20; ++i) follow();
  std::uint64_t epoch = learner.mix().Current().number;
  int since_epoch = 10;
  for (int i = 0; i < 300; ++i) {
    const bool changed = follow();
    const bool begins = learner.mix().Current().number != epoch;
    epoch = learner.mix().Current().number;
    since_epoch = begins ? 1 : since_epoch + 1;
    EXPECT_EQ(changed, since_epoch == 3) << "pod " << i;
  }
}

// What parts of GPUs are worth is no matter of one decision: it is made anew every 100 pods.
TEST(LearningEngine, FollowsWhatPartsOfGpusAreWorth) {
  const auto mix = std::make_shared<const RequestMix>(
      RequestMix{{APod("a").Share(300).Shape(), 0.5}, {APod("b").Share(700).Shape(), 0.5}});
  std::vector<ANode> nodes = {ANode("cut").Gpus(1).Holding(APod("y").Share(300), {0}),
                              ANode("whole").Gpus(1)};
  for (int i = 0; i < 100; ++i) nodes.push_back(ANode("x" + std::to_string(i)).Gpus(1));
  const auto empty = SnapshotOf(nodes);
  for (std::size_t i = 2; i < nodes.size(); ++i) {
    nodes[i] = nodes[i].Holding(APod("x").Share(700), {0});  // .3 left of each
  }
  const auto filled = SnapshotOf(nodes);
  const std::vector<NodeIndex> two = {0, 1};  // sorted by name
  const auto difference = [&](Engine& of) {
    const auto ranks = of.TableFor(filled, APod("p").Share(300).Shape()).Ranks(two);
    return ranks[0] - ranks[1];
  };
  const Background at_once = [](const std::function<void()>& job) {
    job();
    return true;
  };
  for (const Background& background : {Background(), at_once}) {
    const auto engine =
        Engine::Create({*FindBuiltinProfile("expected-waste"), {}, nullptr, mix, background},
                       *empty)
            .value();
    const auto before = difference(*engine->Apart());
    for (int pod = 1; pod < 100; ++pod) engine->Follow(filled);
    EXPECT_EQ(difference(*engine->Apart()), before);
    engine->Follow(filled);
    const auto after = difference(*engine->Apart());
    EXPECT_NE(after, before) << "there are enough parts of .3 now, so .7 is not cut";
    // With a background nodes wait to be scored.
    if (!background) {
      EXPECT_EQ(after, difference(*engine)) << "explain says what is done";
    }
  }
}

TEST(LearningEngine, AProfileThatDoesNotLookAtTheMixStays) {
  const auto mix = std::make_shared<LearnedMix>(LearningParameters{});
  const auto engine = Engine::Create({*FindBuiltinProfile("best-fit"), {}, mix}).value();
  const auto snapshot = SnapshotOf({ANode("a").Gpus(1)});
  const auto profile = engine->profile();
  for (int i = 0; i < 100; ++i) {
    mix->Observe(APod("p").Whole(1).Shape());
    engine->Follow(snapshot);
  }
  EXPECT_EQ(engine->profile(), profile);
}

TEST(LearningEngine, AFixedMixIsCalibratedOnceTheNodesAreKnown) {
  const auto mix = std::make_shared<const RequestMix>(RequestMix{
      {APod("a").Whole(8).Cpu(8).Shape(), 0.5}, {APod("b").Share(100).Cpu(1).Shape(), 0.5}});
  const auto engine =
      Engine::Create({*FindBuiltinProfile("expected-waste"), {4, 20}, nullptr, mix}).value();
  const auto before = engine->profile();
  const auto snapshot = SnapshotOf({ANode("a").Gpus(8)});
  for (int i = 0; i < 12; ++i) engine->Follow(snapshot);
  const auto after = engine->profile();
  EXPECT_NE(after, before);
  for (int i = 0; i < 12; ++i) engine->Follow(snapshot);
  EXPECT_EQ(engine->profile(), after);
}

TEST(LearningEngine, WhatPrioritizePrefersIsWhatBestNames) {
  Learner learner(40);
  PlaceAll(learner, 200);
  const auto snapshot = learner.state().Current();
  std::vector<NodeIndex> all(snapshot->size());
  std::iota(all.begin(), all.end(), NodeIndex{0});
  Random random(9);
  for (int i = 0; i < 50; ++i) {
    const RequestShape shape = APodOf(random, i).shape;
    const auto priorities = learner.engine().Prioritize(snapshot, shape, all);
    std::vector<NodeIndex> top;
    for (const NodeIndex node : all) {
      if (priorities[node] == 10) top.push_back(node);
    }
    EXPECT_EQ(learner.engine().Best(snapshot, shape), top);
  }
}

// A background that does its jobs when the test says so.
class Jobs {
 public:
  [[nodiscard]] Background port() {
    return [this](std::function<void()> job) {
      if (is_full) return false;
      jobs_.push_back(std::move(job));
      return true;
    };
  }
  void RunAll() {
    for (const auto& job : std::exchange(jobs_, {})) job();
  }
  [[nodiscard]] std::size_t waiting() const { return jobs_.size(); }

  bool is_full = false;

 private:
  std::vector<std::function<void()>> jobs_;
};

class EngineWithABackground : public testing::Test {
 protected:
  void Arrive(const RequestShape& shape) {
    mix_->Observe(shape);
    engine_->Follow(snapshot_);
  }
  void Filter(const RequestShape& shape) {
    std::vector<NodeIndex> all(snapshot_->size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    EXPECT_EQ(engine_->Filter(snapshot_, shape, all), std::vector<Reason>(all.size()));
  }

  static std::shared_ptr<const Snapshot> Machines(int count) {
    ClusterState state;
    std::vector<ClusterEvent> events;
    for (int i = 0; i < count; ++i) {
      // No two are alike, so that every one is a state to compute.
      const ANode node = ANode("n" + std::to_string(1000 + i)).Gpus(8).Cpu(96 + i);
      events.emplace_back(NodeUpserted{node.Spec()});
    }
    EXPECT_TRUE(state.Apply(events).has_value());
    return state.Current();
  }

  const RequestShape one_ = APod("p").Whole(1).Cpu(4).Shape(),
                     two_ = APod("p").Whole(2).Cpu(4).Shape();
  Jobs jobs_;
  const std::shared_ptr<const Snapshot> snapshot_ = Machines(100);
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters{});
  const std::shared_ptr<Engine> engine_ =
      Engine::Create({*FindBuiltinProfile("expected-waste"), {4, 20}, mix_, nullptr, jobs_.port()},
                     *snapshot_)
          .value();
};

TEST_F(EngineWithABackground, MakesTheNextEpochThereAndDecidesByTheLastOneMeanwhile) {
  const auto before = engine_->profile();
  Arrive(one_);
  Arrive(two_);
  Arrive(two_);
  EXPECT_EQ(engine_->profile(), before);
  EXPECT_EQ(jobs_.waiting(), 1U) << "of several epochs the newest will do";
  jobs_.RunAll();
  EXPECT_NE(engine_->profile(), before);
  const auto after = engine_->profile();
  engine_->Follow(snapshot_);
  EXPECT_EQ(jobs_.waiting(), 0U) << "nothing is new";
  EXPECT_EQ(engine_->profile(), after);
}

TEST_F(EngineWithABackground, LaterEpochsAreCalibratedAtOnce) {
  mix_->Restore({2000, {{one_, 100}}});
  const auto before = engine_->profile();
  engine_->Follow(snapshot_);
  jobs_.RunAll();
  EXPECT_NE(engine_->profile(), before);
}

TEST_F(EngineWithABackground, NoDecisionAfterAnEpochScoresMoreThanChanged) {
  Filter(one_);
  Filter(two_);
  jobs_.RunAll();
  Arrive(one_);
  jobs_.RunAll();
  const Scorer& scorer = *engine_->profile()->scorers.front().scorer;
  const std::uint64_t computed = scorer.computed();
  EXPECT_GT(computed, 100U) << "every machine is a state of its own";
  Filter(one_);
  Filter(two_);
  EXPECT_EQ(scorer.computed(), computed);
  EXPECT_EQ(jobs_.waiting(), 0U);
}

TEST_F(EngineWithABackground, ADecisionOnANewTableScoresLittleAndTheRestIsDoneLater) {
  Arrive(one_);
  jobs_.RunAll();
  const std::uint64_t before = engine_->profile()->scorers.front().scorer->computed();
  Filter(two_);
  const Scorer& now = *engine_->profile()->scorers.front().scorer;
  EXPECT_LE(now.computed() - before, 12U);
  EXPECT_EQ(jobs_.waiting(), 1U);
  Filter(two_);
  EXPECT_EQ(jobs_.waiting(), 1U) << "once is enough";
  jobs_.RunAll();
  EXPECT_GT(now.computed() - before, 100U);
  Filter(two_);
  EXPECT_EQ(jobs_.waiting(), 0U);
}

TEST_F(EngineWithABackground, WithoutRoomThereTheNextPodTriesAgain) {
  const auto before = engine_->profile();
  jobs_.is_full = true;
  Arrive(one_);
  EXPECT_EQ(jobs_.waiting(), 0U);
  jobs_.is_full = false;
  Arrive(one_);
  jobs_.RunAll();
  EXPECT_NE(engine_->profile(), before);
}

TEST_F(EngineWithABackground, AJobThatOutlivesTheEngineDoesNothing) {
  Jobs jobs;
  {
    const auto engine =
        Engine::Create({*FindBuiltinProfile("expected-waste"), {4, 20}, mix_, nullptr, jobs.port()},
                       *snapshot_)
            .value();
    mix_->Observe(one_);
    engine->Follow(snapshot_);
  }
  EXPECT_EQ(jobs.waiting(), 1U);
  jobs.RunAll();
}

}  // namespace
}  // namespace berth::test::learning_engine_test
