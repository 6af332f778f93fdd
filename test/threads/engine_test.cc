// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/engine.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/fake_scorers.h"

namespace berth::test::engine_test {
namespace {

using Priorities = std::vector<std::uint8_t>;
using Indices = std::vector<NodeIndex>;

// Scores by cores: a and c are the best that fit, b is next; d fits a CPU pod only, e is not ready.
std::shared_ptr<const Snapshot> FiveNodes() {
  return SnapshotOf({ANode("a").Cpu(80).Gpus(2), ANode("b").Cpu(60).Gpus(2),
                     ANode("c").Cpu(80).Gpus(2), ANode("d").Cpu(100),
                     ANode("e").Cpu(100).Gpus(2).NotReady()});
}
const Indices kAll = {0, 1, 2, 3, 4};

TEST(Engine, FiltersWithAReasonPerCandidateInTheOrderAsked) {
  Engine engine(ProfileOf(CoresOf));
  const RequestShape shape = APod("p").Whole(1).Shape();
  EXPECT_EQ(engine.Filter(FiveNodes(), shape, kAll),
            (std::vector<Reason>{Reason::kFits, Reason::kFits, Reason::kFits, Reason::kNoGpu,
                                 Reason::kNodeNotReady}));
  EXPECT_EQ(engine.Filter(FiveNodes(), shape, Indices{4, 0}),
            (std::vector<Reason>{Reason::kNodeNotReady, Reason::kFits}));
  EXPECT_TRUE(engine.Filter(FiveNodes(), shape, {}).empty());
}

TEST(Engine, RanksOnlyCandidatesThatFit) {
  Engine engine(ProfileOf(CoresOf));
  const RequestShape shape = APod("p").Whole(1).Shape();
  EXPECT_EQ(engine.Prioritize(FiveNodes(), shape, kAll), (Priorities{10, 9, 10, 0, 0}));
  EXPECT_EQ(engine.Prioritize(FiveNodes(), shape, Indices{4, 1, 3}), (Priorities{0, 10, 0}));
  EXPECT_EQ(engine.Prioritize(FiveNodes(), shape, Indices{3, 4}), (Priorities{0, 0}));
  EXPECT_TRUE(engine.Prioritize(FiveNodes(), shape, {}).empty());
}

TEST(Engine, APullCountsByTheWeightOfDomainLocality) {
  const RequestShape shape = APod("p").Whole(1).Shape();
  const std::vector<int> to_b = {0, 100, 0, 100, 100}, alike = {50, 50, 50, 50, 50};
  Engine without(ProfileOf(CoresOf));
  EXPECT_EQ(without.Prioritize(FiveNodes(), shape, kAll, to_b), (Priorities{10, 9, 10, 0, 0}));
  Profile weighed = ProfileOf(CoresOf);
  weighed.locality_weight = 1;
  Engine with(std::move(weighed));
  EXPECT_EQ(with.Prioritize(FiveNodes(), shape, kAll, to_b), (Priorities{9, 10, 9, 0, 0}));
  EXPECT_EQ(with.Prioritize(FiveNodes(), shape, kAll, alike), (Priorities{10, 9, 10, 0, 0}));
  EXPECT_EQ(with.Prioritize(FiveNodes(), shape, kAll), (Priorities{10, 9, 10, 0, 0}));
  EXPECT_EQ(with.Prioritize(FiveNodes(), shape, Indices{4, 1, 2}, std::vector<int>{100, 0, 10}),
            (Priorities{0, 9, 10}));
}

TEST(Engine, NamesAllTheBestOrTheFirstOfThem) {
  const RequestShape shape = APod("p").Whole(1).Shape();
  Engine equal(ProfileOf(CoresOf));
  EXPECT_EQ(equal.Best(FiveNodes(), shape), (Indices{0, 2}));
  Engine first(ProfileOf(CoresOf, DeviceRule::kTightest, TieRule::kFirst));
  EXPECT_EQ(first.Best(FiveNodes(), shape), Indices{0});
  EXPECT_EQ(first.Prioritize(FiveNodes(), shape, Indices{2, 1, 0}), (Priorities{9, 8, 10}))
      << "first by name, not by the order asked";
  EXPECT_TRUE(first.Best(FiveNodes(), APod("p").Whole(3).Shape()).empty());
  EXPECT_TRUE(first.Best(SnapshotOf({}), shape).empty());
}

TEST(Engine, PlacesWhereItFilteredOrSaysWhyNot) {
  Engine engine(ProfileOf(CoresOf));
  const APod pod = APod("p").Whole(2).Cpu(4).MemoryGib(1);
  const auto placed = engine.PlaceOn(FiveNodes(), pod.Shape(), 1);
  ASSERT_TRUE(placed.has_value());
  EXPECT_EQ(*placed, (Placement{"b", 4000, kGib, {{0, 1000, 16'000}, {1, 1000, 16'000}}}));
  EXPECT_EQ(engine.PlaceOn(FiveNodes(), pod.Shape(), 3).error(), Reason::kNoGpu);
  EXPECT_EQ(engine.PlaceOn(FiveNodes(), pod.Shape(), 4).error(), Reason::kNodeNotReady);
}

TEST(Engine, AnswersForTheSnapshotThatItIsGiven) {
  Engine engine(ProfileOf(CoresOf));
  const RequestShape shape = APod("p").Whole(1).Shape();
  const auto idle = SnapshotOf({ANode("a").Gpus(1)});
  const auto busy = std::make_shared<const Snapshot>(idle->With(
      0,
      std::make_shared<const Node>(ANode("a").Gpus(1).Holding(APod("x").Whole(1), {0}).Build())));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(engine.Best(idle, shape), Indices{0});
    EXPECT_TRUE(engine.Best(busy, shape).empty());
  }
}

TEST(Engine, DecidesByTheProfileThatAShapeNames) {
  Engine::Learning learning{*FindBuiltinProfile("best-fit"), {}, nullptr};
  learning.fixed = std::make_shared<const RequestMix>();
  learning.others = {*FindBuiltinProfile("spreading")};
  const auto engine = Engine::Create(std::move(learning)).value();
  const auto snapshot = SnapshotOf(
      {ANode("full").Gpus(4).Holding(APod("x").Whole(3), {0, 1, 2}), ANode("idle").Gpus(4)});
  const auto best_by = [&](const std::string& profile) {
    RequestShape shape = APod("p").Whole(1).Cpu(1).Shape();
    shape.nodes.profile = profile;
    EXPECT_EQ(engine->profile(shape)->name, profile == "spreading" ? profile : "best-fit");
    return engine->Best(snapshot, shape);
  };
  EXPECT_EQ(best_by(""), Indices{0});
  EXPECT_EQ(best_by("spreading"), Indices{1});
  EXPECT_EQ(best_by("gone"), Indices{0}) << "a profile that was taken away";
  EXPECT_EQ(engine->Apart()->profile()->name, "best-fit");
  RequestShape spread = APod("p").Whole(1).Shape();
  spread.nodes.profile = "spreading";
  EXPECT_EQ(engine->Apart()->profile(spread)->name, "spreading");
}

TEST(Engine, ForgetsTheShapeThatWasNotUsedForLongest) {
  int evaluations = 0;
  const auto count = [&evaluations](const Node&, const DeviceChoice&) { return ++evaluations % 2; };
  Engine engine(ProfileOf(count));
  const auto snapshot = SnapshotOf({ANode("a")});
  const auto evaluated = [&](std::size_t i) {
    const int before = evaluations;
    EXPECT_EQ(engine.Best(snapshot, APod("p").CpuMilli(static_cast<int>(i)).Shape()), Indices{0});
    return evaluations - before;
  };
  for (std::size_t i = 0; i < ProfileTables::kMaxShapes; ++i) EXPECT_EQ(evaluated(i), 1) << i;
  EXPECT_EQ(evaluated(0), 0) << "all are still known";
  EXPECT_EQ(evaluated(ProfileTables::kMaxShapes), 1) << "one more: shape 1 goes";
  EXPECT_EQ(evaluated(0), 0) << "0 was used after 1";
  EXPECT_EQ(evaluated(2), 0);
  EXPECT_EQ(evaluated(1), 1) << "1 is evaluated anew; shape 3 goes";
  EXPECT_EQ(evaluated(4), 0);
  EXPECT_EQ(evaluated(3), 1);
}

TEST(Engine, AnswersThreadsAsItAnswersOne) {
  constexpr int kThreads = 4, kRounds = 50, kShapes = 3;
  ClusterState state;
  std::vector<ClusterEvent> events;
  for (int i = 0; i < 20; ++i) {
    events.emplace_back(NodeUpserted{ANode("n" + std::to_string(i)).Gpus(i % 5).Spec()});
  }
  ASSERT_TRUE(state.Apply(events).has_value());
  const ProfileSpec& spec = *FindBuiltinProfile("gpu-packing");
  Engine shared(BuildProfile(spec, {}).value());
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Engine own(BuildProfile(spec, {}).value());
      for (int round = 0; round < kRounds; ++round) {
        const APod pod = APod(std::to_string(t) + "-" + std::to_string(round))
                             .Share(100 + 100 * (round % kShapes));
        const auto snapshot = state.Current();
        const Indices best = shared.Best(snapshot, pod.Shape());
        ASSERT_EQ(best, own.Best(snapshot, pod.Shape())) << pod.Request().id.name;
        if (best.empty()) continue;
        const auto placement = shared.PlaceOn(snapshot, pod.Shape(), best[0]);
        ASSERT_TRUE(placement.has_value());
        // Another thread may have been faster: then it is a conflict, never an over-grant.
        if (!state.Reserve(pod.Request(), *placement, Instant::max())) continue;
        if (round % 2 == 0) state.Forget(pod.Request().id.uid);
      }
    });
  }
  threads.clear();
  const auto last = state.Current();
  for (NodeIndex i = 0; i < last->size(); ++i) {
    for (const GpuFree& gpu : last->node(i).gpus()) EXPECT_GE(gpu.milli, 0);
  }
}

}  // namespace
}  // namespace berth::test::engine_test
