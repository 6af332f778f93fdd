// SPDX-License-Identifier: Apache-2.0
//
// Through the verbs: what becomes free goes to who waits longest, and what a hostile or a hopeless
// pod can keep from others.
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "bench/replay/time/sim_clock.h"
#include "scoring/explain/kept_room.h"
#include "server/extender/extender.h"
#include "server/extender/inquiry.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::extender_earmarks_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class QuietSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
};

class Woken final : public PodWaker {
 public:
  bool Wake(const PodId& pod) override {
    names.insert(pod.name);
    return true;
  }
  std::set<std::string> names;
};

class ExtenderEarmarksTest : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) {
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)).has_value());
  }
  void Add(const ANode& node) { Apply(NodeUpserted{node.Spec()}); }
  // The API server shows it; so many seconds after the others.
  APod Arrive(APod pod, int second) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request()),
                  .created = clock_.Wall() + seconds(second)});
    return pod;
  }
  void End(const std::string& name) {
    Apply(PodGone{APod(name).Request().id.uid});
    waiting_.Remove(APod(name).Request().id.uid);
  }
  void Bound(const APod& pod, const std::string& node, const std::vector<int>& gpus,
             const PodLife& life = {}) {
    Apply(PodBound{.pod = pod.Request(), .placement = pod.On(node, gpus), .life = life});
    waiting_.Remove(pod.Request().id.uid);
  }
  // The nodes that fit, or why the first does not.
  std::string Filter(const APod& pod) {
    const auto snapshot = state_.Current();
    std::vector<NodeIndex> all(snapshot->size());
    std::iota(all.begin(), all.end(), NodeIndex{0});
    const FilterAnswer answer = extender_.Filter(extender_.Now(), pod.Request(), all);
    if (!answer.fits) {
      return answer.nowhere.empty() ? std::string(CodeOf(answer.reasons.front())) : "gang";
    }
    std::string fitting;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (answer.reasons[i] != Reason::kFits) continue;
      fitting += (fitting.empty() ? "" : " ") + std::string(snapshot->names().name(all[i]));
    }
    return fitting;
  }
  Status Bind(const APod& pod, const std::string& node) {
    const PodId& id = pod.Request().id;
    return BindNow(extender_, {id.namespace_name, id.name, id.uid, node});
  }
  // What the node's page says of it.
  std::string Kept(const std::string& node) {
    const auto now = extender_.Now();
    const auto kept = KeptOn(now.reservations, *now.snapshot, now.snapshot->names().Find(node));
    return Join(kept, "; ", [](const KeptFor& one) { return TextOf(one); });
  }
  std::string Explained(const APod& pod) {
    return Inquiry(extender_, extender_.Now()).Explain(pod.Request()).sentence;
  }

  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  ScriptedBinder binder_{{}};
  QuietSink sink_;
  Woken waker_;
  NodeDomains domains_{{{"rack", {"rack"}}}};
  GangTable gangs_{{state_, waiting_, domains_}};
  RunTimeTable run_times_;
  JobEndTable job_ends_;
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .domains = &domains_,
                      .watches_arrivals = true,
                      .behind_scheduler = true,
                      .gangs = &gangs_,
                      .waiting = &waiting_,
                      .waker = &waker_,
                      .run_times = &run_times_,
                      .job_ends = &job_ends_},
                     {.engine = EngineOf("best-fit"),
                      .reservation_time = seconds(30),
                      .gangs = {{"berth"}, seconds(50)},
                      .earmarks = EarmarkLimits{50, minutes(60)}}};
};

// The case that users report: small pods come all the time, and the large one never starts.
TEST_F(ExtenderEarmarksTest, ALargePodGetsTheNodeThatBecomesFree) {
  Add(ANode("n").Gpus(8));
  const APod old = APod("old").Whole(8);
  Bound(old, "n", {0, 1, 2, 3, 4, 5, 6, 7});
  const APod large = Arrive(APod("large").Whole(8), 0);
  EXPECT_EQ(Filter(large), "gpus_held");
  End("old");
  const APod small = Arrive(APod("small").Whole(1), 5);
  EXPECT_EQ(Filter(small), "kept_for_waiting");
  EXPECT_EQ(Explained(small),
            "waits its turn: default/large has waited longer; the room on 1 node is kept for it");
  EXPECT_EQ(Kept("n"), "8 idle GPUs are kept for default/large");
  EXPECT_EQ(Filter(large), "n");
  ASSERT_TRUE(Bind(large, "n"));
  EXPECT_EQ(Filter(small), "gpus_held") << "nothing is kept any more";
}

// On a full cluster kube-scheduler's own count leaves no node, and it asks nobody about the pod.
TEST_F(ExtenderEarmarksTest, APodThatNobodyAsksAboutStandsInLineToo) {
  const auto refuse = [this](const APod& pod, const std::string& said, int second = 0) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request()),
                  .unschedulable = true,
                  .created = clock_.Wall() + seconds(second),
                  .scheduler_said = said});
  };
  const auto look = [this] {
    clock_.Advance(EarmarkLine::kBetweenScans);
    extender_.LookAtEarmarks();
  };
  Add(ANode("n").Gpus(8));
  Add(ANode("open").Gpus(8));
  Bound(APod("old").Whole(8), "n", {0, 1, 2, 3, 4, 5, 6, 7});
  const APod large = APod("large").Whole(8), volume = APod("volume").Whole(8);
  refuse(volume, "pod has unbound immediate PersistentVolumeClaims", -50);
  refuse(large, "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) are odd.");
  look();
  EXPECT_EQ(Filter(Arrive(APod("first").Whole(1), 4)), "open");
  look();
  EXPECT_EQ(Kept("open"), "") << "kube-scheduler has refused it as it is";
  End("old");
  const APod small = Arrive(APod("small").Whole(1), 5);
  EXPECT_EQ(Filter(small), "open");
  EXPECT_EQ(Kept("n"), "8 idle GPUs are kept for default/large");
  EXPECT_EQ(Filter(large), "n open");
  ASSERT_TRUE(Bind(large, "n"));
  look();
  EXPECT_EQ(Kept("n"), "");
}

// Who asks for whom: pods of a scheduler that does not ask this Berth keep no room.
TEST_F(ExtenderEarmarksTest, WhatIsEvictedForAPodThatNobodyAskedAboutIsKeptForIt) {
  Add(ANode("n").Gpus(2));
  const APod low = APod("low").Whole(2);
  Bound(low, "n", {0, 1});
  const APod first = Arrive(APod("first").Whole(2).Priority(10), 0);
  const std::vector<NodeVictims> asked = {{"n", {low.Request().id.uid}}};
  ASSERT_EQ(extender_.Preempt(extender_.Now(), first.Request(), asked).size(), 1U);
  extender_.LookAtEarmarks();
  Apply(PodBound{.pod = low.Request(), .placement = low.On("n", {0, 1}), .leaving = true});
  extender_.LookAtEarmarks();
  End("low");
  const APod second = Arrive(APod("second").Whole(2).Priority(10), 5);
  EXPECT_EQ(Filter(second), "kept_for_waiting");
  EXPECT_EQ(Filter(first), "n");
}

TEST_F(ExtenderEarmarksTest, APodOfASchedulerThatAsksNothingKeepsNoRoom) {
  Add(ANode("n").Gpus(8));
  Bound(APod("old").Whole(8), "n", {0, 1, 2, 3, 4, 5, 6, 7});
  waiting_.Put({.pod = std::make_shared<const PodRequest>(APod("large").Whole(8).Request()),
                .unschedulable = true,
                .created = clock_.Wall(),
                .scheduler_said = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."});
  extender_.LookAtEarmarks();
  End("old");
  EXPECT_EQ(Filter(Arrive(APod("small").Whole(1), 5)), "n");
  EXPECT_EQ(Kept("n"), "");
}

// Nobody says anything; others of its kind have ended.
TEST_F(ExtenderEarmarksTest, ANodeIsReservedUntilPodsEndAsOthersLikeThemDid) {
  Add(ANode("n").Gpus(8));
  Bound(APod("old").Whole(7).Series(5), "n", {0, 1, 2, 3, 4, 5, 6}, {.started = clock_.Wall()});
  const APod large = Arrive(APod("large").Whole(8), -100);
  Filter(large);
  extender_.LookAtEarmarks();
  const APod small = Arrive(APod("small").Whole(1), 5);
  EXPECT_EQ(Filter(small), "n") << "nothing is known yet";
  for (int i = 0; i < 12; ++i) {
    run_times_.Add(APod("past" + std::to_string(i)).Whole(7).Series(5).Request(), minutes(120 + i),
                   clock_.Wall());
  }
  clock_.Advance(seconds(10));
  extender_.LookAtEarmarks();
  EXPECT_EQ(Explained(large),
            "reserved: starts in about 2 h when 1 pod on n ends, if it runs as long as pods like "
            "it did; up to 2.2 GPU-hours stand idle for it until then");
  EXPECT_EQ(Filter(small), "kept_for_waiting");
}

TEST_F(ExtenderEarmarksTest, ANodeIsReservedUntilItsPodsEnd) {
  Add(ANode("n").Gpus(8));
  Bound(APod("old").Whole(7).EndsWithin(minutes(150)), "n", {0, 1, 2, 3, 4, 5, 6},
        {.started = clock_.Wall()});
  const APod large = Arrive(APod("large").Whole(8), -100);
  Filter(large);
  extender_.LookAtEarmarks();
  EXPECT_EQ(
      Explained(large),
      "reserved: starts in about 3 h when 1 pod on n ends; up to 2.5 GPU-hours stand idle for "
      "it until then");
  EXPECT_EQ(Kept("n"),
            "reserved for default/large, which can start in about 3 h (1 idle GPU now); up to 2.5 "
            "GPU-hours stand idle until then");
  const APod small = Arrive(APod("small").Whole(1), 5);
  EXPECT_EQ(Filter(small), "kept_for_waiting");
  EXPECT_EQ(Explained(small),
            "passed over: it would delay default/large; it may go with "
            "berth.dev/expected-duration of at most 2 h");
  EXPECT_EQ(Explained(Arrive(APod("job").Whole(1).Series(1), 7)),
            "passed over: it would delay default/large; it may go with activeDeadlineSeconds or "
            "berth.dev/expected-duration of at most 2 h");
  EXPECT_EQ(Filter(Arrive(APod("short").Whole(1).EndsWithin(minutes(60)), 6)), "n");
  End("old");
  EXPECT_EQ(Filter(small), "kept_for_waiting");
  EXPECT_EQ(Explained(small),
            "waits its turn: default/large has waited longer; the room on 1 node is kept for it");
  EXPECT_EQ(Filter(large), "n");
}

// What becomes free on a reserved node is no room for who comes later.
TEST_F(ExtenderEarmarksTest, NobodyIsPromisedWhatIsReservedForAnother) {
  Add(ANode("n").Gpus(8));
  Bound(APod("j1").Whole(2).EndsWithin(minutes(20)), "n", {0, 1}, {.started = clock_.Wall()});
  Bound(APod("j2").Whole(6).EndsWithin(minutes(40)), "n", {2, 3, 4, 5, 6, 7},
        {.started = clock_.Wall()});
  const APod large = Arrive(APod("large").Whole(8), -100);
  const APod small = Arrive(APod("small").Whole(1), 5);
  Filter(large);
  EXPECT_EQ(Explained(small),
            "does not fit the only node; nearest is n: 0 of 8 GPUs idle, needs 1; fits when "
            "default/j1 ends");
  extender_.LookAtEarmarks();
  EXPECT_EQ(
      Explained(small),
      "does not fit the only node; nearest is n: 0 of 8 GPUs idle, needs 1; what becomes free "
      "there is reserved for default/large");
  EXPECT_EQ(Explained(Arrive(APod("short").Whole(1).EndsWithin(minutes(10)), 6)),
            "does not fit the only node; nearest is n: 0 of 8 GPUs idle, needs 1; fits when "
            "default/j1 ends");
}

TEST_F(ExtenderEarmarksTest, AReservationCountsThePodsThatHaveToEndAlone) {
  Add(ANode("n").Gpus(8).Cpu(64));
  Bound(APod("old").Whole(8).EndsWithin(minutes(150)), "n", {0, 1, 2, 3, 4, 5, 6, 7},
        {.started = clock_.Wall()});
  Bound(APod("cpu").Cpu(4).EndsWithin(minutes(100)), "n", {}, {.started = clock_.Wall()});
  const APod large = Arrive(APod("large").Whole(8), -100);
  Filter(large);
  extender_.LookAtEarmarks();
  EXPECT_EQ(Explained(large), "reserved: starts in about 3 h when 1 pod on n ends");
}

TEST_F(ExtenderEarmarksTest, AReservationSaysHowFarItsPodIsPastItsWord) {
  Add(ANode("n").Gpus(8));
  Bound(APod("j").Whole(8).Expects(minutes(120)), "n", {0, 1, 2, 3, 4, 5, 6, 7},
        {.started = clock_.Wall() - minutes(127)});
  const APod large = Arrive(APod("large").Whole(8), -100);
  Filter(large);
  extender_.LookAtEarmarks();
  EXPECT_EQ(Explained(large),
            "reserved: starts when default/j ends, which is 7 min past its word of 2 h");
}

TEST_F(ExtenderEarmarksTest, TheLastMinutesBeforeAReservationAreToldAsTheyAre) {
  Add(ANode("n").Gpus(8));
  Bound(APod("old").Whole(7).Expects(minutes(5)), "n", {0, 1, 2, 3, 4, 5, 6},
        {.started = clock_.Wall()});
  const APod large = Arrive(APod("large").Whole(8), -100);
  const auto in = [&](seconds left) {
    clock_.Advance(seconds(left));
    Filter(large);
    extender_.LookAtEarmarks();
  };
  const APod job = Arrive(APod("job").Whole(1).Series(1), 5);  // with a grace period of 30 s
  const APod service = Arrive(APod("service").Whole(1), 6);
  in(seconds(200));
  EXPECT_EQ(Explained(job),
            "passed over: it would delay default/large; it may go with activeDeadlineSeconds or "
            "berth.dev/expected-duration of at most 60 s");
  EXPECT_EQ(Explained(service),
            "passed over: it would delay default/large; it may go with "
            "berth.dev/expected-duration of at most 90 s");
  EXPECT_EQ(Filter(Arrive(APod("fits").Whole(1).EndsWithin(seconds(60)), 7)), "n");
  EXPECT_EQ(Filter(Arrive(APod("not").Whole(1).EndsWithin(seconds(61)), 7)), "kept_for_waiting");
  in(seconds(70));
  EXPECT_EQ(Explained(job), "passed over: it would delay default/large");
}

// A Job and its pod come within a moment, between two looks at when pods end.
TEST_F(ExtenderEarmarksTest, ThePodOfAShortJobIsNotInTheWay) {
  const auto job = [this](const std::string& uid, minutes deadline, WallTime started) {
    const std::string space = APod("p").Request().id.namespace_name;
    job_ends_.Put({space, uid, started, seconds(deadline).count()});
  };
  Add(ANode("n").Gpus(8));
  job("long", minutes(150), clock_.Wall());
  Bound(APod("old").Whole(6).Controller("long"), "n", {0, 1, 2, 3, 4, 5},
        {.started = clock_.Wall()});
  const APod large = Arrive(APod("large").Whole(8), -100);
  Filter(large);
  extender_.LookAtEarmarks();
  EXPECT_EQ(
      Explained(large),
      "reserved: starts in about 3 h when 1 pod on n ends; up to 5.0 GPU-hours stand idle for "
      "it until then");
  job("short", minutes(60), clock_.Wall());
  job("longer", minutes(180), clock_.Wall());
  const APod a = Arrive(APod("a").Whole(1).Controller("longer"), 5);
  const APod b = Arrive(APod("b").Whole(1).Controller("short"), 6);
  EXPECT_EQ(Filter(a), "kept_for_waiting");
  EXPECT_EQ(Filter(b), "n");
  ASSERT_TRUE(Bind(b, "n"));
  EXPECT_EQ(Filter(a), "kept_for_waiting") << "the node stays reserved";
  EXPECT_EQ(
      Explained(large),
      "reserved: starts in about 3 h when 2 pods on n end; up to 4.0 GPU-hours stand idle for "
      "it until then");
}

TEST_F(ExtenderEarmarksTest, WhoIsDeletedKeepsNothing) {
  Add(ANode("n").Gpus(8));
  Bound(APod("old").Whole(8), "n", {0, 1, 2, 3, 4, 5, 6, 7});
  const APod large = Arrive(APod("large").Whole(8), 0);
  Filter(large);
  End("old");
  const APod small = Arrive(APod("small").Whole(8), 5);
  EXPECT_EQ(Filter(small), "kept_for_waiting");
  End("large");
  clock_.Advance(seconds(1));
  extender_.LookAtEarmarks();
  EXPECT_TRUE(waker_.names.contains("small")) << "nothing else tells kube-scheduler";
  EXPECT_EQ(Filter(small), "n");
}

// A pod that kube-scheduler never binds, for reasons that Berth does not know, or on purpose.
TEST_F(ExtenderEarmarksTest, WhoNeverComesIsPassedOver) {
  Add(ANode("n").Gpus(8));
  Bound(APod("old").Whole(8), "n", {0, 1, 2, 3, 4, 5, 6, 7});
  const APod hopeless = Arrive(APod("hopeless").Whole(8), 0);
  Filter(hopeless);
  End("old");
  const APod small = Arrive(APod("small").Whole(1), 5);
  Duration kept{};
  for (int second = 0; second < 3600; ++second) {
    EXPECT_NE(Filter(small), "gpus_held");
    if (Filter(small) == "kept_for_waiting") kept += seconds(1);
    Filter(hopeless);
    extender_.LookAtEarmarks();
    clock_.Advance(seconds(1));
  }
  EXPECT_GT(kept, seconds(30));
  EXPECT_LT(kept, minutes(6)) << "of an hour";
}

TEST_F(ExtenderEarmarksTest, AGangGathersNodesBesidesSmallPods) {
  for (const char* node : {"a", "b", "c", "d"}) Add(ANode(node).Gpus(8));
  Bound(APod("x").Whole(8), "c", {0, 1, 2, 3, 4, 5, 6, 7}, {.completes = true});
  Bound(APod("y").Whole(7), "d", {0, 1, 2, 3, 4, 5, 6});
  std::vector<APod> gang;
  for (const char* name : {"g0", "g1", "g2"}) {
    gang.push_back(Arrive(APod(name).Whole(8).Gang("berth:default/train").GangSize(3), 0));
  }
  EXPECT_EQ(Filter(gang[0]), "gang");
  extender_.LookAtEarmarks();
  const APod small = Arrive(APod("small").Whole(1), 5), pair = Arrive(APod("pair").Whole(2), 6);
  EXPECT_EQ(Filter(small), "d") << "a and b are kept for the gang";
  EXPECT_EQ(Filter(pair), "kept_for_waiting");
  EXPECT_EQ(Explained(pair),
            "waits its turn: default/train has waited longer; the room on 2 nodes is kept for it");
  EXPECT_EQ(Kept("a"), "8 idle GPUs are kept for gang default/train");
  EXPECT_EQ(Kept("c"), "reserved for gang default/train, which waits for pods here to end");
  EXPECT_EQ(Kept("d"), "");
  End("x");
  clock_.Advance(seconds(5));
  extender_.LookAtGangs();
  extender_.LookAtEarmarks();
  EXPECT_EQ(Filter(gang[0]).size(), 1U) << "all three have a node";
  EXPECT_EQ(Filter(pair), "gpus_held");
}

// Kept for an older pod: a younger gang's plan goes round it.
TEST_F(ExtenderEarmarksTest, AYoungerGangLeavesWhatIsKept) {
  Add(ANode("a").Gpus(8));
  Add(ANode("b").Gpus(8));
  Bound(APod("x").Whole(8), "a", {0, 1, 2, 3, 4, 5, 6, 7});
  Bound(APod("y").Whole(4), "b", {0, 1, 2, 3});
  const APod large = Arrive(APod("large").Whole(8), 0);
  EXPECT_EQ(Filter(large), "gpus_held");
  End("x");
  extender_.LookAtEarmarks();
  std::vector<APod> gang;
  for (const char* name : {"g0", "g1"}) {
    gang.push_back(Arrive(APod(name).Whole(4).Gang("berth:default/train").GangSize(2), 5));
  }
  EXPECT_EQ(Filter(gang[0]), "gang");
  EXPECT_EQ(Filter(large), "a");
}

TEST_F(ExtenderEarmarksTest, NothingIsKeptWhereItIsOff) {
  extender_.Use({.engine = EngineOf("best-fit"), .reservation_time = seconds(30)});
  Add(ANode("n").Gpus(8));
  Bound(APod("old").Whole(8), "n", {0, 1, 2, 3, 4, 5, 6, 7});
  Filter(Arrive(APod("large").Whole(8), 0));
  End("old");
  EXPECT_EQ(Filter(Arrive(APod("small").Whole(1), 5)), "n");
}

// One tenant with thousands of pods: no more than the bound is kept.
TEST_F(ExtenderEarmarksTest, ManyWaitingPodsKeepNoMoreThanTheBound) {
  for (int i = 0; i < 8; ++i) {
    const std::string name = "n" + std::to_string(i);
    Add(ANode(name).Gpus(8));
    Bound(APod("old" + std::to_string(i)).Whole(8), name, {0, 1, 2, 3, 4, 5, 6, 7});
  }
  for (int i = 0; i < 3000; ++i) {
    Filter(Arrive(APod("p" + std::to_string(i)).Whole(8), i));
  }
  for (int i = 0; i < 8; ++i) End("old" + std::to_string(i));
  const APod small = Arrive(APod("small").Whole(1), 5000);
  EXPECT_EQ(Filter(small).size(), std::string("n0 n1 n2 n3").size()) << "half of 64 GPUs";
}

TEST_F(ExtenderEarmarksTest, AnyThreadsMayAskAtOnce) {
  for (int i = 0; i < 16; ++i) Add(ANode("n" + std::to_string(i)).Gpus(8));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 200; ++i) {
        const std::string name = "t" + std::to_string(t) + "-" + std::to_string(i);
        const APod pod = Arrive(APod(name).Whole(1 + i % 8), i);
        const std::string fits = Filter(pod);
        if (fits.starts_with("n")) Bound(pod, fits.substr(0, fits.find(' ')), {i % 8});
        if (i % 3 == 0) End("t" + std::to_string(t) + "-" + std::to_string(i / 2));
        extender_.LookAtEarmarks();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  clock_.Advance(minutes(20));
  extender_.LookAtEarmarks();
  EXPECT_LE(extender_.Now().reservations.earmarks().gpus(), 64);
}

}  // namespace
}  // namespace berth::test::extender_earmarks_test
