// SPDX-License-Identifier: Apache-2.0
//
// The four verbs in domain terms: what filter, prioritize and bind say of one pod agrees.
#include "server/extender/extender.h"
#include "scoring/reason.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "test/support/bind_now.h"
#include "test/support/wire_fixture.h"
#include "test/support/wirings.h"

namespace berth::test::extender_test {
namespace {

// Keeps what was recorded, as values.
class Journal final : public DecisionSink {
 public:
  struct Entry {
    Verb verb;
    std::string uid;
    std::size_t candidates, fitting;
    Reason first_reason;
    std::string node;   // of a successful bind
    std::string error;  // of a failed one
    std::string shortage;
    std::optional<double> link_quality;
  };
  void Record(const Decision& decision) override {
    entries.push_back({decision.verb, decision.pod->uid, decision.candidates, decision.fitting,
                       decision.first_reason,
                       decision.placement == nullptr ? "" : decision.placement->node,
                       decision.error == nullptr ? "" : decision.error->message,
                       std::string(decision.shortage), decision.link_quality});
    if (on_record) on_record();
  }
  std::vector<Entry> entries;
  std::function<void()> on_record;
};

// Runs a script every time it is asked for the time.
class ScriptedClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override {
    if (on_now) on_now();
    return now;
  }
  [[nodiscard]] WallTime Wall() const override { return WallTime() + now.time_since_epoch(); }
  std::function<void()> on_now;
  Instant now{};
};

class ExtenderTest : public testing::Test {
 protected:
  void Start(const std::vector<NodeSpec>& nodes, ScriptedBinder::Script script = {},
             const std::string& profile = "best-fit") {
    binder_ = std::make_unique<ScriptedBinder>(std::move(script));
    std::vector<ClusterEvent> events;
    for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
    ASSERT_TRUE(state_.Apply(events));
    extender_ =
        std::make_unique<Extender>(Extender::Parts{state_, *binder_, journal_, clock_},
                                   Extender::Policy{EngineOf(profile), std::chrono::seconds(30)});
  }

  static PodRequest Pod(const std::string& uid, GpuAsk gpus) {
    PodRequest pod;
    pod.id = {uid, "ns", "pod-" + uid};
    pod.shape.cpu_milli = 100;
    pod.shape.gpus = gpus;
    return pod;
  }

  std::vector<Reason> Filter(const PodRequest& pod) {
    const Extender::Moment now = extender_->Now();
    return extender_->Filter(now, pod, Everybody(*now.snapshot)).reasons;
  }
  std::vector<std::uint8_t> Prioritize(const PodRequest& pod) {
    const Extender::Moment now = extender_->Now();
    return extender_->Prioritize(now, pod, Everybody(*now.snapshot));
  }
  Status Bind(const std::string& uid, const std::string& node) {
    return BindNow(*extender_, {"ns", "pod-" + uid, uid, node});
  }
  static std::vector<NodeIndex> Everybody(const Snapshot& snapshot) {
    std::vector<NodeIndex> all;
    for (NodeIndex i = 0; i < snapshot.size(); ++i) all.push_back(i);
    return all;
  }
  [[nodiscard]] std::int64_t FreeMilli(std::string_view node) const {
    const auto snapshot = state_.Current();
    return snapshot->node(snapshot->names().Find(node)).free_gpu_milli();
  }

  ClusterState state_;
  ScriptedClock clock_;
  Journal journal_;
  std::unique_ptr<ScriptedBinder> binder_;
  std::unique_ptr<Extender> extender_;
};

// kube-scheduler asks about the pod, and takes the best node.
TEST_F(ExtenderTest, APodThatComesBackFromTheSameNodeIsSentElsewhereForSomeMinutes) {
  Start({MachineWith("n0", 1), MachineWith("n1", 8)});
  const PodRequest pod = Pod("p", WholeGpus{1});
  const auto chosen = [&] {
    const std::vector<Reason> reasons = Filter(pod);
    std::vector<NodeIndex> fitting;
    for (const NodeIndex node : Everybody(*state_.Current())) {
      if (reasons[node] == Reason::kFits) fitting.push_back(node);
    }
    const auto scores = extender_->Prioritize(extender_->Now(), pod, fitting);
    const auto best = std::ranges::max_element(scores) - scores.begin();
    clock_.now += std::chrono::seconds(5);
    return fitting[static_cast<std::size_t>(best)];
  };
  EXPECT_EQ(chosen(), 0U);
  EXPECT_EQ(chosen(), 0U) << "once may happen";
  EXPECT_EQ(extender_->NotBound(pod.id), "");
  EXPECT_EQ(chosen(), 1U);
  EXPECT_EQ(extender_->NotBound(pod.id),
            "kube-scheduler asked about pod-p 3 times and did not bind it to n0");
  EXPECT_EQ(chosen(), 1U);
  clock_.now += std::chrono::minutes(5);
  EXPECT_EQ(chosen(), 0U) << "it may be well again";
}

TEST_F(ExtenderTest, APodIsNotKeptFromTheOnlyNodeThatFits) {
  Start({MachineWith("n0", 1)});
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(Filter(Pod("p", WholeGpus{1})), std::vector{Reason::kFits});
    clock_.now += std::chrono::seconds(5);
  }
}

TEST_F(ExtenderTest, ABindThatComesAndFailsKeepsAPodFromNoNode) {
  Start({MachineWith("n0", 1), MachineWith("n1", 8)},
        [](const PodRequest&, const Placement&) -> Status { return Fail(Errc::kConflict, "no"); });
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(Filter(Pod("p", WholeGpus{1}))[0], Reason::kFits);
    (void)Prioritize(Pod("p", WholeGpus{1}));
    clock_.now += std::chrono::seconds(5);
    EXPECT_FALSE(Bind("p", "n0"));
  }
}

TEST_F(ExtenderTest, WhatPassedTheFilterCanBeBoundAndWhatDidNotCannot) {
  for (const char* profile : {"fragmentation-gradient", "random", "first-fit"}) {
    SCOPED_TRACE(profile);
    std::vector<NodeSpec> nodes;
    for (int i = 0; i < 6; ++i) {
      nodes.push_back(MachineWith(std::string(profile) + std::to_string(i), i + 1));
    }
    Start(nodes, {}, profile);
    Random random(11);
    int bound = 0, refused = 0;
    for (int i = 0; i < 120; ++i) {
      const std::string uid = std::string(profile) + "-" + std::to_string(i);
      const GpuAsk ask = random.Below(2) == 0
                             ? GpuAsk(WholeGpus{1 + static_cast<int>(random.Below(4))})
                             : GpuAsk(GpuShare{100 * (1 + static_cast<int>(random.Below(9))), 0});
      const PodRequest pod = Pod(uid, ask);
      const std::vector<Reason> reasons = Filter(pod);
      const auto index = static_cast<NodeIndex>(random.Below(reasons.size()));
      const std::string node(state_.Current()->names().name(index));
      const bool fits = reasons[index] == Reason::kFits;
      EXPECT_EQ(Bind(uid, node).has_value(), fits) << uid;
      ++(fits ? bound : refused);
    }
    EXPECT_GT(bound, 10);
    EXPECT_GT(refused, 10);
  }
}

TEST_F(ExtenderTest, RecordsMissingLinksAndTheQualityOfGrantedOnes) {
  NodeSpec node = MachineWith("n1", 8);
  node.links = LinksOf(BridgedCards());
  Start({node, MachineWith("n2", 8)});
  PodRequest linked = Pod("linked", WholeGpus{3});
  linked.shape.links.link = LinkWish::kRequired;
  EXPECT_EQ(Filter(linked)[0], Reason::kNeverLinked);
  EXPECT_EQ(journal_.entries.back().shortage, "needs 3 linked GPUs; 8 free, largest linked set 2");
  Filter(Pod("nine", WholeGpus{9}));
  EXPECT_EQ(journal_.entries.back().shortage, "");
  for (const auto& [uid, gpus] : {std::pair("pair", 2), {"one", 1}}) {
    Filter(Pod(uid, WholeGpus{gpus}));
    ASSERT_TRUE(Bind(uid, "n1"));
    EXPECT_EQ(journal_.entries.back().link_quality, gpus == 2 ? std::optional(1.0) : std::nullopt);
  }
}

TEST_F(ExtenderTest, TheMixHearsOfEveryPodOnce) {
  LearnedMix mix(LearningParameters{});
  Start({MachineWith("n1", 4)}, {}, "best-fit");
  extender_ =
      std::make_unique<Extender>(Extender::Parts{state_, *binder_, journal_, clock_, nullptr, &mix},
                                 Extender::Policy{EngineOf("best-fit"), std::chrono::seconds(30)});
  for (int tries = 0; tries < 3; ++tries) Filter(Pod("a", WholeGpus{8}));
  Filter(Pod("b", GpuShare{0, 1000}));
  Prioritize(Pod("c", WholeGpus{1}));
  const LearnedMix::Memory memory = mix.Remember();
  EXPECT_EQ(memory.pods, 2);
  ASSERT_EQ(memory.classes.size(), 2u);
  for (const RequestClass& entry : memory.classes) EXPECT_GT(entry.shape.milli_per_gpu(), 0);
}

// Autoscalers and admission simulators ask about pods that do not exist.
TEST_F(ExtenderTest, WherePodsAreWatchedAskingAboutOneTeachesTheMixNothing) {
  LearnedMix mix(LearningParameters{});
  Start({MachineWith("n1", 4)}, {}, "best-fit");
  Extender::Parts parts{state_, *binder_, journal_, clock_, nullptr, &mix};
  parts.watches_arrivals = true;
  extender_ = std::make_unique<Extender>(
      parts, Extender::Policy{EngineOf("best-fit"), std::chrono::seconds(30)});
  Filter(Pod("imagined", WholeGpus{4}));
  EXPECT_EQ(mix.Current().pods, 0);
  PodRequest refused = Pod("refused", WholeGpus{1});
  refused.refusal = "no";
  const std::vector<std::shared_ptr<const PodRequest>> arrived = {
      std::make_shared<const PodRequest>(Pod("a", WholeGpus{2})),
      std::make_shared<const PodRequest>(Pod("b", GpuShare{0, 1000})),
      std::make_shared<const PodRequest>(refused)};
  extender_->Arrived(arrived);
  Filter(Pod("a", WholeGpus{2}));
  const LearnedMix::Memory memory = mix.Remember();
  EXPECT_EQ(memory.pods, 2);
  for (const RequestClass& entry : memory.classes) EXPECT_GT(entry.shape.milli_per_gpu(), 0);
}

TEST_F(ExtenderTest, APodIsDrawnToWhereTheOneRanThatItReplaces) {
  Start({MachineWith("n1", 8), MachineWith("n2", 4)});
  WaitingPods waiting;
  Extender::Parts parts{state_, *binder_, journal_, clock_};
  parts.waiting = &waiting;
  extender_ = std::make_unique<Extender>(
      parts, Extender::Policy{EngineOf("expected-waste"), std::chrono::seconds(30)});
  PodRequest pod = Pod("new", WholeGpus{1}), old = Pod("old", WholeGpus{1});
  pod.controller = old.controller = "owner";
  waiting.Put({.pod = std::make_shared<const PodRequest>(pod)});
  const auto best = [&] {
    const std::vector<std::uint8_t> priorities = Prioritize(pod);
    return priorities[0] > priorities[1] ? "n1" : "n2";
  };
  EXPECT_STREQ(best(), "n1");
  waiting.Ends(old, {.ends = clock_.Wall()}, "n2");
  EXPECT_STREQ(best(), "n2");
  GroupPlaces places;
  places.former = {1};
  EXPECT_TRUE(PullOn(*state_.Current(), pod, places, std::vector<NodeIndex>{0}).empty())
      << "scores stay as they are where the node is no candidate";
  waiting.Ends(old, {.ends = clock_.Wall()}, "gone");
  EXPECT_STREQ(best(), "n1") << "no such node";
}

TEST_F(ExtenderTest, TheDevicesThatWereScoredAreTheDevicesThatAreBound) {
  Start({MachineWith("n1", 4), MachineWith("n2", 4)}, {}, "fragmentation-gradient");
  Random random(3);
  for (int i = 0; i < 40; ++i) {
    const PodRequest pod =
        Pod(std::to_string(i), GpuShare{50 + 50 * static_cast<int>(random.Below(12)), 0});
    const auto snapshot = extender_->Current();
    const std::vector<Reason> reasons = Filter(pod);
    const std::vector<std::uint8_t> priorities = Prioritize(pod);
    const auto best =
        static_cast<NodeIndex>(std::ranges::max_element(priorities) - priorities.begin());
    if (reasons[best] != Reason::kFits) continue;
    const auto scored = extender_->policy()->engine->PlaceOn(snapshot, pod.shape, best);
    ASSERT_TRUE(scored);
    ASSERT_TRUE(Bind(pod.id.uid, std::string(snapshot->names().name(best))));
    EXPECT_EQ(state_.FindPod(pod.id.uid)->placement, *scored);
  }
  EXPECT_GT(binder_->calls(), 5);
}

TEST_F(ExtenderTest, APodThatIsRefusedFitsNowhereAndIsNotRemembered) {
  Start({MachineWith("n1", 1)});
  PodRequest pod = Pod("1", WholeGpus{1});
  pod.refusal = "no";
  EXPECT_EQ(Filter(pod), std::vector<Reason>{Reason::kPodRefused});
  EXPECT_FALSE(Bind("1", "n1"));
  EXPECT_EQ(journal_.entries.at(0).first_reason, Reason::kPodRefused);
}

TEST_F(ExtenderTest, ARefusedBindLeavesNoReservation) {
  bool works = false;
  Start({MachineWith("n1", 2)}, [&works](const PodRequest&, const Placement&) -> Status {
    if (!works) return Fail(Errc::kConflict, "the pod is gated");
    return {};
  });
  Filter(Pod("1", WholeGpus{2}));
  const auto before = *state_.Current();
  const Status failed = Bind("1", "n1");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "the pod is gated");
  EXPECT_FALSE(state_.FindPod("1"));
  EXPECT_EQ(*state_.Current(), before);
  works = true;
  EXPECT_TRUE(Bind("1", "n1"));
  EXPECT_EQ(FreeMilli("n1"), 0);
}

TEST_F(ExtenderTest, ABindWithUnknownOutcomeKeepsItsDevicesUntilThePodIsSeen) {
  Start({MachineWith("n1", 2), MachineWith("n2", 2)},
        [](const PodRequest&, const Placement&) -> Status {
          return Fail(Errc::kUnavailable, "no answer");
        });
  const PodRequest pod = Pod("1", WholeGpus{2});
  Filter(pod);
  binder_->unreachable = true;
  EXPECT_EQ(Bind("1", "n1").error().message, "no answer");
  EXPECT_EQ(FreeMilli("n1"), 0);
  clock_.now += std::chrono::minutes(1);
  EXPECT_EQ(extender_->SettleOverdue(), 0u);
  EXPECT_EQ(FreeMilli("n1"), 0) << "nobody knows yet";
  binder_->unreachable = false;
  binder_->truths["1"] = {pod, Placement{"n2", 100, 0, {{0, 1000, 0}, {1, 1000, 0}}}};
  EXPECT_EQ(extender_->SettleOverdue(), 1u);
  EXPECT_EQ(FreeMilli("n1"), 2000);
  EXPECT_EQ(FreeMilli("n2"), 0);
}

TEST_F(ExtenderTest, ABindInDoubtThatWasNotMadeIsFreedWhenOverdue) {
  Start({MachineWith("n1", 2)}, [](const PodRequest&, const Placement&) -> Status {
    return Fail(Errc::kUnavailable, "no answer");
  });
  const PodRequest pod = Pod("1", WholeGpus{2});
  Filter(pod);
  ASSERT_FALSE(Bind("1", "n1"));
  EXPECT_EQ(extender_->SettleOverdue(), 0u) << "its time is not over";
  EXPECT_EQ(FreeMilli("n1"), 0);
  binder_->truths["1"] = {pod, std::nullopt};
  clock_.now += std::chrono::minutes(1);
  EXPECT_EQ(extender_->SettleOverdue(), 1u);
  EXPECT_EQ(FreeMilli("n1"), 2000);
}

TEST_F(ExtenderTest, ASecondBindAfterOneInDoubtAsksTheClusterFirst) {
  bool works = false;
  Start({MachineWith("n1", 2), MachineWith("n2", 2)},
        [&works](const PodRequest&, const Placement&) -> Status {
          if (!works) return Fail(Errc::kUnavailable, "no answer");
          return {};
        });
  const PodRequest pod = Pod("1", WholeGpus{1});
  Filter(pod);
  ASSERT_FALSE(Bind("1", "n1"));
  works = true;
  binder_->unreachable = true;
  EXPECT_EQ(Bind("1", "n2").error().code, Errc::kUnavailable);
  EXPECT_EQ(FreeMilli("n1"), 1000) << "still in doubt";
  binder_->unreachable = false;
  binder_->truths["1"] = {pod, Placement{"n1", 100, 0, {{1, 1000, 0}}}};
  EXPECT_EQ(Bind("1", "n2").error().message, "pod is already bound to node n1");
  EXPECT_TRUE(Bind("1", "n1"));
  EXPECT_EQ(state_.FindPod("1")->placement.grants.at(0).gpu, 1) << "the cluster's word counts";
  EXPECT_EQ(FreeMilli("n2"), 2000);
}

TEST_F(ExtenderTest, WhatAPodHoldsInDoubtStandsInNobodysWayButItsOwn) {
  bool works = false;
  Start({MachineWith("n1", 2), MachineWith("n2", 2)},
        [&works](const PodRequest&, const Placement&) -> Status {
          if (!works) return Fail(Errc::kUnavailable, "no answer");
          return {};
        });
  const PodRequest pod = Pod("1", WholeGpus{2});
  Filter(pod);
  ASSERT_FALSE(Bind("1", "n1"));
  EXPECT_EQ(Filter(pod), (std::vector{Reason::kFits, Reason::kBetterElsewhere}));
  EXPECT_EQ(Filter(Pod("2", WholeGpus{2})).at(0), Reason::kGpusHeld);
  works = true;
  binder_->truths["1"] = {pod, std::nullopt};
  EXPECT_TRUE(Bind("1", "n1"));
}

TEST_F(ExtenderTest, AConflictTellsWhereThePodReallyIs) {
  Start({MachineWith("n1", 2), MachineWith("n2", 2)},
        [](const PodRequest&, const Placement&) -> Status {
          return Fail(Errc::kConflict, "bound to n2");
        });
  const PodRequest pod = Pod("1", WholeGpus{1});
  Filter(pod);
  binder_->truths["1"] = {pod, Placement{"n2", 100, 0, {{0, 1000, 0}}}};
  EXPECT_FALSE(Bind("1", "n1"));
  EXPECT_EQ(FreeMilli("n1"), 2000);
  EXPECT_EQ(FreeMilli("n2"), 1000);
}

TEST_F(ExtenderTest, APodThatNoFilterCallHasNamedIsReadFromTheCluster) {
  Start({MachineWith("n1", 2)});
  binder_->truths["1"] = {Pod("1", WholeGpus{2}), std::nullopt};
  binder_->truths["2"] = {Pod("2", WholeGpus{1}), Placement{"n1", 100, 0, {}}};
  PodRequest refused = Pod("3", WholeGpus{1});
  refused.refusal = "no";
  binder_->truths["3"] = {refused, std::nullopt};
  EXPECT_TRUE(Bind("1", "n1"));
  EXPECT_EQ(FreeMilli("n1"), 0);
  EXPECT_TRUE(Bind("2", "n1"));
  EXPECT_EQ(binder_->calls(), 1) << "it is bound already";
  EXPECT_EQ(Bind("2", "n2").error().message, "pod is already bound to node n1");
  EXPECT_EQ(Bind("3", "n1").error().message, "no");
  EXPECT_EQ(Bind("4", "n1").error().message, "pod is gone");
}

TEST_F(ExtenderTest, DevicesAreHeldWhileTheBinderIsAtWork) {
  std::int64_t during = -1;
  Start({MachineWith("n1", 2)}, [&](const PodRequest&, const Placement& placement) {
    during = FreeMilli(placement.node);
    return Status();
  });
  Filter(Pod("1", WholeGpus{2}));
  ASSERT_TRUE(Bind("1", "n1"));
  EXPECT_EQ(during, 0);
}

// Refuses every bind, and counts those whose devices their node does not have.
class CheckingBinder final : public PodBinder {
 public:
  Status Bind(const BindOrder& order) override {
    ++told;
    if (!CheckDevices(order.placement, order.node)) ++beyond;
    return Fail(Errc::kNotFound, "pod is gone");
  }
  Result<PodTruth> Find(const PodId&) override { return Fail(Errc::kNotFound, "pod is gone"); }
  std::atomic<int> told = 0, beyond = 0;
};

// Device plugins restart: the node shows all of its GPUs, and then none, again and again.
TEST_F(ExtenderTest, APodIsBoundByTheNodeForWhichItsDevicesWereFound) {
  Start({MachineWith("n1", 8)});
  CheckingBinder binder;
  Extender extender({state_, binder, journal_, clock_},
                    {EngineOf("best-fit"), std::chrono::seconds(30)});
  std::atomic<bool> ends = false;
  std::thread flapping([&] {
    for (int gpus = 0; !ends; gpus = 8 - gpus) {
      const ClusterEvent event = NodeUpserted{MachineWith("n1", gpus)};
      EXPECT_TRUE(state_.Apply(std::span(&event, 1)));
    }
  });
  const PodRequest pod = Pod("p", WholeGpus{8});
  for (int i = 0; binder.told < 1'000 && i < 20'000; ++i) {
    const Extender::Moment now = extender.Now();
    (void)extender.Filter(now, pod, Everybody(*now.snapshot));
    (void)BindNow(extender, {"ns", "pod-p", "p", "n1"});
  }
  ends = true;
  flapping.join();
  EXPECT_GT(binder.told, 0);
  EXPECT_EQ(binder.beyond, 0);
}

TEST_F(ExtenderTest, ABindThatOutlivesItsReservationIsKeptAllTheSame) {
  Start({MachineWith("n1", 2)}, [this](const PodRequest&, const Placement&) {
    clock_.now += std::chrono::minutes(1);
    EXPECT_EQ(extender_->SettleOverdue(), 0u) << "its bind is under way";
    return Status();
  });
  Filter(Pod("1", WholeGpus{2}));
  ASSERT_TRUE(Bind("1", "n1"));
  ASSERT_TRUE(state_.FindPod("1"));
  EXPECT_EQ(state_.FindPod("1")->state, PodState::kBound);
  EXPECT_EQ(FreeMilli("n1"), 0);
}

TEST_F(ExtenderTest, APodThatIsDeletedWhileItIsBeingBoundStaysDeleted) {
  Start({MachineWith("n1", 2)}, [this](const PodRequest& pod, const Placement& placement) {
    binder_->truths["1"] = {pod, placement};  // what an answer says that is older than the deletion
    const ClusterEvent gone = PodGone{"1"};
    return state_.Apply(std::span(&gone, 1));
  });
  Filter(Pod("1", WholeGpus{2}));
  ASSERT_TRUE(Bind("1", "n1"));
  EXPECT_FALSE(state_.FindPod("1"));
  EXPECT_EQ(FreeMilli("n1"), 2000);
}

TEST_F(ExtenderTest, AnAnswerThatIsOlderThanADeletionBringsNoPodBack) {
  Start({MachineWith("n1", 2)}, [](const PodRequest&, const Placement&) -> Status {
    return Fail(Errc::kUnavailable, "no answer");
  });
  const PodRequest pod = Pod("1", WholeGpus{2});
  Filter(pod);
  ASSERT_FALSE(Bind("1", "n1"));
  clock_.now += std::chrono::minutes(1);
  binder_->truths["1"] = {pod, Placement{"n1", 100, 0, {{0, 1000, 0}, {1, 1000, 0}}}};
  binder_->on_answer = [this] {
    const ClusterEvent gone = PodGone{"1"};
    EXPECT_TRUE(state_.Apply(std::span(&gone, 1)));
  };
  extender_->SettleOverdue();
  EXPECT_FALSE(state_.FindPod("1"));
  EXPECT_EQ(FreeMilli("n1"), 2000);
}

TEST_F(ExtenderTest, AnOldAnswerDoesNotEndANewerReservation) {
  Start({MachineWith("n1", 2)}, [](const PodRequest&, const Placement&) -> Status {
    return Fail(Errc::kUnavailable, "no answer");
  });
  const PodRequest pod = Pod("1", WholeGpus{2});
  Filter(pod);
  ASSERT_FALSE(Bind("1", "n1"));
  clock_.now += std::chrono::minutes(1);
  binder_->truths["1"] = {pod, std::nullopt};
  binder_->on_answer = [&] {
    const Placement same = state_.FindPod("1")->placement;
    EXPECT_TRUE(state_.Reserve(pod, same, clock_.now + std::chrono::seconds(30)));
  };
  extender_->SettleOverdue();
  ASSERT_TRUE(state_.FindPod("1"));
  EXPECT_EQ(FreeMilli("n1"), 0);
}

TEST_F(ExtenderTest, ABindWaitsWhileTheClusterIsAskedAboutItsPod) {
  bool works = false;
  Start({MachineWith("n1", 2)}, [&works](const PodRequest&, const Placement&) -> Status {
    if (works) return {};
    return Fail(Errc::kUnavailable, "no answer");
  });
  const PodRequest pod = Pod("1", WholeGpus{2});
  Filter(pod);
  ASSERT_FALSE(Bind("1", "n1"));
  works = true;
  clock_.now += std::chrono::minutes(1);
  binder_->truths["1"] = {pod, std::nullopt};
  std::thread second;
  binder_->on_answer = [&] {
    binder_->on_answer = nullptr;
    second = std::thread([this] { EXPECT_TRUE(Bind("1", "n1")); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it would be through by then
    EXPECT_EQ(binder_->calls(), 1);
  };
  EXPECT_EQ(extender_->SettleOverdue(), 1u);
  second.join();
  EXPECT_EQ(state_.FindPod("1")->state, PodState::kBound);
  EXPECT_EQ(FreeMilli("n1"), 0);
}

TEST_F(ExtenderTest, ABoundPodThatAListDidNotShowIsAskedAboutAtOnce) {
  Start({MachineWith("n1", 2)}, [this](const PodRequest&, const Placement&) {
    const ClusterEvent missed = PodMissed{"1"};
    return state_.Apply(std::span(&missed, 1));
  });
  Filter(Pod("1", WholeGpus{2}));
  ASSERT_TRUE(Bind("1", "n1"));
  EXPECT_EQ(FreeMilli("n1"), 0);
  EXPECT_EQ(extender_->SettleOverdue(), 1u);  // the binder knows no such pod: it was deleted
  EXPECT_FALSE(state_.FindPod("1"));
  EXPECT_EQ(FreeMilli("n1"), 2000);
}

TEST_F(ExtenderTest, ALostRaceIsPlacedAnewOnWhatIsLeft) {
  Start({MachineWith("n1", 3)});
  Filter(Pod("1", WholeGpus{1}));
  int rivals = 0;
  clock_.on_now = [&] {  // between the choice of devices and the reservation
    if (rivals == 2) return;
    const DeviceGrant taken{rivals, 1000, 0};
    const ClusterEvent event =
        PodBound{Pod("rival" + std::to_string(rivals), WholeGpus{1}), {"n1", 0, 0, {taken}}};
    ++rivals;
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  };
  ASSERT_TRUE(Bind("1", "n1"));
  EXPECT_EQ(rivals, 2);
  EXPECT_EQ(state_.FindPod("1")->placement.grants.at(0).gpu, 2);
}

TEST_F(ExtenderTest, ARaceThatIsLostThreeTimesIsAConflict) {
  Start({MachineWith("n1", 9)});
  Filter(Pod("1", WholeGpus{1}));
  int rivals = 0;
  clock_.on_now = [&] {
    const DeviceGrant taken{rivals, 1000, 0};
    const ClusterEvent event =
        PodBound{Pod("rival" + std::to_string(rivals), WholeGpus{1}), {"n1", 0, 0, {taken}}};
    ++rivals;
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  };
  const Status lost = Bind("1", "n1");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Errc::kConflict);
  EXPECT_EQ(rivals, 3);
  EXPECT_EQ(binder_->calls(), 0);
  EXPECT_FALSE(state_.FindPod("1"));
}

TEST_F(ExtenderTest, WhoeverMadeRoomWaitsUntilTheVictimsAreSeenGone) {
  Start({MachineWith("n1", 1), MachineWith("n2", 1)});
  PodRequest low = Pod("low", WholeGpus{1});
  for (const char* const node : {"n1", "n2"}) {
    low.id.uid = std::string("low-") + node;
    const ClusterEvent event = PodBound{low, {node, 0, 0, {{0, kMilliPerGpu, 0}}}};
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  }
  PodRequest high = Pod("high", WholeGpus{1});
  high.priority = 100;
  const auto awaits = [&](std::vector<NodeIndex> candidates) {
    return extender_->Filter(extender_->Now(), high, candidates).for_evicted;
  };
  EXPECT_FALSE(awaits({0, 1})) << "nothing was agreed on";
  const std::vector<NodeVictims> victims = {{"n1", {"low-n1"}}};
  ASSERT_EQ(extender_->Preempt(extender_->Now(), high, victims), victims);
  EXPECT_TRUE(awaits({0, 1}));
  EXPECT_FALSE(awaits({1})) << "kube-scheduler does not see room on n1 either";
  // Its victim is as good as gone: another one would go in vain.
  EXPECT_TRUE(extender_->Preempt(extender_->Now(), high, {{{"n2", {"low-n2"}}}}).empty());
  const ClusterEvent gone = PodGone{"low-n1"};
  ASSERT_TRUE(state_.Apply(std::span(&gone, 1)));
  EXPECT_FALSE(awaits({0, 1}));
  // Another pod has taken the room since: now others may have to go.
  EXPECT_FALSE(extender_->Preempt(extender_->Now(), high, {{{"n2", {"low-n2"}}}}).empty());
}

// Berth hears later than kube-scheduler that the first ones have ended.
TEST_F(ExtenderTest, ASecondPreemptCallEvictsNobodyElse) {
  Start({MachineWith("n1", 6)});
  for (int gpu = 0; gpu < 6; ++gpu) {
    const PodRequest low = Pod("low-" + std::to_string(gpu), WholeGpus{1});
    const ClusterEvent event = PodBound{low, {"n1", 0, 0, {{gpu, kMilliPerGpu, 0}}}};
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  }
  PodRequest high = Pod("high", WholeGpus{4});
  high.priority = 100;
  using Victims = std::vector<NodeVictims>;
  const Victims first = {{"n1", {"low-2", "low-3", "low-4", "low-5"}}}, rest = {{"n1", {"low-5"}}};
  ASSERT_EQ(extender_->Preempt(extender_->Now(), high, first), first);
  EXPECT_EQ(extender_->Preempt(extender_->Now(), high, rest), first);
  EXPECT_EQ(extender_->Preempt(extender_->Now(), high, {{{"n1", {"low-0"}}}}), first)
      << "it stays at those that were agreed on";
  for (const char* const gone : {"low-2", "low-3", "low-4"}) {
    const ClusterEvent event = PodGone{gone};
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  }
  EXPECT_EQ(extender_->Preempt(extender_->Now(), high, {{{"n1", {"low-0"}}}}), rest);
  const ClusterEvent event = PodGone{"low-5"};
  ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  const Victims other = {{"n1", {"low-0"}}};
  EXPECT_EQ(extender_->Preempt(extender_->Now(), high, other), other) << "all have gone";
}

TEST_F(ExtenderTest, WaitingForVictimsOfANodeThatWasNotChosenEnds) {
  Start({MachineWith("n1", 1)});
  const ClusterEvent event =
      PodBound{Pod("low", WholeGpus{1}), {"n1", 0, 0, {{0, kMilliPerGpu, 0}}}};
  ASSERT_TRUE(state_.Apply(std::span(&event, 1)));
  PodRequest high = Pod("high", WholeGpus{1});
  high.priority = 100;
  ASSERT_EQ(extender_->Preempt(extender_->Now(), high, {{{"n1", {"low"}}}}).size(), 1u);
  const std::vector<NodeIndex> candidates = {0};
  int times = 0;
  while (extender_->Filter(extender_->Now(), high, candidates).for_evicted) {
    ASSERT_LT(++times, 100);
  }
  EXPECT_GT(times, 0);
}

TEST_F(ExtenderTest, EveryAnswerIsRecorded) {
  Start({MachineWith("n1", 1), MachineWith("n2", 0)});
  const PodRequest pod = Pod("1", WholeGpus{1});
  Filter(pod);
  Prioritize(pod);
  const std::vector<NodeVictims> victims = {{"n1", {}}, {"n2", {"x"}}};
  EXPECT_EQ(extender_->Preempt(extender_->Now(), pod, victims),
            (std::vector<NodeVictims>{{"n1", {}}}));
  EXPECT_FALSE(Bind("1", "n2"));
  EXPECT_TRUE(Bind("1", "n1"));
  const auto& entries = journal_.entries;
  ASSERT_EQ(entries.size(), 5u);
  for (const Journal::Entry& entry : entries) EXPECT_EQ(entry.uid, "1");
  EXPECT_EQ(entries[0].verb, Verb::kFilter);
  EXPECT_EQ(entries[0].candidates, 2u);
  EXPECT_EQ(entries[0].fitting, 1u);
  EXPECT_EQ(entries[0].first_reason, Reason::kNoGpu);
  EXPECT_EQ(entries[1].verb, Verb::kPrioritize);
  EXPECT_EQ(entries[2].verb, Verb::kPreempt);
  EXPECT_EQ(entries[2].fitting, 1u);
  EXPECT_EQ(entries[3].error,
            "pod does not fit: node n2 " + std::string(PredicateOf(Reason::kNoGpu)));
  EXPECT_EQ(entries[4].node, "n1");
}

TEST_F(ExtenderTest, APodMayBeBoundFromAReservationOfAnotherNode) {
  Start({MachineWith("n1", 1), MachineWith("n2", 1)});
  const PodRequest pod = Pod("1", WholeGpus{1});
  binder_->truths["1"] = {pod, std::nullopt};
  ASSERT_TRUE(state_.Reserve(pod, {"n1", 100, 0, {{0, 1000, 80'000}}}, Instant()));
  ASSERT_TRUE(Bind("1", "n2"));
  EXPECT_EQ(FreeMilli("n1"), 1000);
  EXPECT_EQ(FreeMilli("n2"), 0);
}

TEST_F(ExtenderTest, AnotherEngineDecidesFromTheNextVerbOn) {
  Start({MachineWith("n1", 4), MachineWith("n2", 2)});  // best-fit
  const PodRequest pod = Pod("1", WholeGpus{1});
  EXPECT_EQ(Prioritize(pod), (std::vector<std::uint8_t>{9, 10}));
  extender_->Use({EngineOf("first-fit"), std::chrono::seconds(30)});
  EXPECT_EQ(Prioritize(pod), (std::vector<std::uint8_t>{10, 9}));
}

TEST_F(ExtenderTest, ABindEndsWithThePolicyThatItBeganWith) {
  std::vector<Instant> deadlines;
  Start({MachineWith("n1", 4)}, [&](const PodRequest& pod, const Placement&) {
    deadlines.push_back(state_.FindPod(pod.id.uid)->settle_after);
    extender_->Use({EngineOf("first-fit"), std::chrono::seconds(7)});
    return Status();
  });
  for (const char* uid : {"1", "2"}) {
    Filter(Pod(uid, WholeGpus{1}));
    EXPECT_TRUE(Bind(uid, "n1"));
  }
  EXPECT_EQ(deadlines, (std::vector<Instant>{Instant() + std::chrono::seconds(30),
                                             Instant() + std::chrono::seconds(7)}));
}

// Keeps the deadline of every bind.
class DeadlineBinder final : public PodBinder {
 public:
  Status Bind(const BindOrder& order) override {
    deadlines.push_back(order.deadline);
    return {};
  }
  Result<PodTruth> Find(const PodId&) override { return Fail(Errc::kNotFound, "pod is gone"); }
  std::vector<Instant> deadlines;
};

TEST_F(ExtenderTest, AVerbEndsWithThePolicyItBeganWith) {
  Start({MachineWith("n1", 4), MachineWith("n2", 4), MachineWith("n3", 2)});  // best-fit
  const Extender::Policy other{EngineOf("first-fit"), std::chrono::seconds(10), 1};
  journal_.on_record = [&] { extender_->Use(other); };
  // The policy changes between the judgement and what would be the short list.
  EXPECT_EQ(Filter(Pod("1", WholeGpus{1})), std::vector<Reason>(3, Reason::kFits));
  EXPECT_EQ(std::ranges::count(Filter(Pod("2", WholeGpus{1})), Reason::kFits), 1);
  journal_.on_record = {};

  DeadlineBinder binder;
  extender_ =
      std::make_unique<Extender>(Extender::Parts{state_, binder, journal_, clock_},
                                 Extender::Policy{EngineOf("best-fit"), std::chrono::seconds(30)});
  for (const char* uid : {"3", "4"}) Filter(Pod(uid, WholeGpus{1}));
  // The policy changes while the pod is being reserved.
  clock_.on_now = [&] { extender_->Use(other); };
  for (const char* uid : {"3", "4"}) EXPECT_TRUE(Bind(uid, "n1"));
  EXPECT_EQ(binder.deadlines, (std::vector<Instant>{Instant() + std::chrono::seconds(24),
                                                    Instant() + std::chrono::seconds(8)}));
}

TEST_F(ExtenderTest, VerbsGoOnWhileEnginesChange) {
  Start({MachineWith("n1", 4), MachineWith("n2", 2)});
  std::atomic<bool> stop{false};
  std::thread changing([&] {
    for (int i = 0; !stop; ++i) {
      extender_->Use({EngineOf(i % 2 == 0 ? "first-fit" : "best-fit"), std::chrono::seconds(30)});
    }
  });
  for (int i = 0; i < 300; ++i) {
    const PodRequest pod = Pod(std::to_string(i), WholeGpus{1});
    EXPECT_EQ(Filter(pod), (std::vector<Reason>{Reason::kFits, Reason::kFits}));
    const auto scores = Prioritize(pod);
    EXPECT_EQ(scores[0] + scores[1], 19);
  }
  stop = true;
  changing.join();
}

std::vector<NodeSpec> Machines(int count, int gpus) {
  std::vector<NodeSpec> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back(MachineWith("n" + std::to_string(i), gpus));
  return nodes;
}

std::vector<NodeIndex> Passing(const std::vector<Reason>& reasons) {
  std::vector<NodeIndex> passing;
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i] == Reason::kFits) passing.push_back(static_cast<NodeIndex>(i));
  }
  return passing;
}

TEST_F(ExtenderTest, OnlyTheBestNodesGoOnToBeScored) {
  std::vector<NodeSpec> nodes = Machines(8, 8);  // best-fit: the fewer GPUs the better
  nodes[1] = MachineWith("n1", 4);
  nodes[5] = MachineWith("n5", 2);
  nodes[6] = MachineWith("n6", 0);
  Start(nodes);
  extender_->Use({EngineOf("best-fit"), std::chrono::seconds(30), 3});
  const std::vector<Reason> reasons = Filter(Pod("1", WholeGpus{1}));
  EXPECT_EQ(Passing(reasons), (std::vector<NodeIndex>{0, 1, 5}));  // of equal ones the first
  EXPECT_EQ(reasons[6], Reason::kNoGpu);
  EXPECT_EQ(std::ranges::count(reasons, Reason::kBetterElsewhere), 4);
  EXPECT_EQ(journal_.entries.back().fitting, 7u);
  EXPECT_EQ(journal_.entries.back().first_reason, Reason::kNoGpu);
  // What was to be decided is all that fit.
  EXPECT_EQ(extender_->recent_decisions().All().back()->candidates.size(), 7u);
  ASSERT_TRUE(Bind("1", "n5"));
}

TEST_F(ExtenderTest, AmongEqualsTheFirstByNameGoOnInWhateverOrderTheyCome) {
  Start(Machines(8, 8));
  extender_->Use({EngineOf("best-fit"), std::chrono::seconds(30), 2});
  const std::vector<NodeIndex> turned = {5, 6, 7, 0, 1, 2, 3, 4};
  const auto reasons = extender_->Filter(extender_->Now(), Pod("1", WholeGpus{1}), turned).reasons;
  EXPECT_EQ(Passing(reasons), (std::vector<NodeIndex>{3, 4}));  // the positions of 0 and 1
}

TEST_F(ExtenderTest, APodThatComesAgainGetsEveryNodeThatFits) {
  Start(Machines(8, 8));
  extender_->Use({EngineOf("best-fit"), std::chrono::seconds(30), 3});
  const PodRequest pod = Pod("1", WholeGpus{1});
  EXPECT_EQ(Passing(Filter(pod)).size(), 3u);
  EXPECT_EQ(Passing(Filter(pod)).size(), 8u);
  EXPECT_EQ(Passing(Filter(Pod("2", NoGpu{}))).size(), 8u);  // nothing that Berth decides
  EXPECT_EQ(Passing(Filter(Pod("3", WholeGpus{1}))).size(), 3u);
}

TEST_F(ExtenderTest, AsManyAsMayPassAllPass) {
  Start(Machines(8, 8));
  extender_->Use({EngineOf("best-fit"), std::chrono::seconds(30), 8});
  EXPECT_EQ(Passing(Filter(Pod("1", WholeGpus{1}))).size(), 8u);
  extender_->Use({EngineOf("best-fit"), std::chrono::seconds(30), 0});
  EXPECT_EQ(Passing(Filter(Pod("2", WholeGpus{1}))).size(), 8u);
}

TEST_F(ExtenderTest, WhatFilterFoundNodesForIsRemembered) {
  Start({MachineWith("n1", 4), MachineWith("n2", 2)});
  const PodRequest pod = Pod("1", WholeGpus{2});
  Filter(Pod("2", WholeGpus{8}));
  EXPECT_TRUE(extender_->recent_decisions().All().empty());
  Filter(pod);
  const auto all = extender_->recent_decisions().All();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]->snapshot, extender_->Current());
  EXPECT_EQ(all[0]->shape, pod.shape);
  EXPECT_EQ(all[0]->candidates, (std::vector<NodeIndex>{0, 1}));
}

}  // namespace
}  // namespace berth::test::extender_test
