// SPDX-License-Identifier: Apache-2.0
#include "server/why/waiting_whys.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::waiting_news_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class TellingSink final : public DecisionSink {
 public:
  void Record(const Decision& /*decision*/) override {}
  void Record(const PodWaits& news) override {
    texts.push_back(news.pod.full_name() + ": " + news.sentence);
  }
  std::vector<std::string> texts;
};

class WaitingNewsTest : public testing::Test {
 protected:
  WaitingNewsTest() { Asks("default-scheduler"); }

  void Waits(const APod& pod, bool unschedulable = true, bool gated = false) {
    auto request = std::make_shared<PodRequest>(pod.Request());
    if (request->scheduler.empty()) request->scheduler = scheduler_;
    waiting_.Put({.pod = request,
                  .held_back = gated ? "scheduling gates hold it back" : "",
                  .unschedulable = unschedulable,
                  .created = clock_.Wall()});
  }
  // As many seconds of looks.
  std::vector<std::string> After(seconds time) {
    sink_.texts.clear();
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      clock_.Advance(seconds(1));
      news_.Look();
    }
    return sink_.texts;
  }

  // That scheduler asks about some pod.
  void Asks(const std::string& scheduler, PodRequest pod = APod("asked").Whole(1).Request()) {
    pod.scheduler = scheduler;
    const std::vector<NodeIndex> nodes = {0, 1};
    GangActions actions;
    const Extender::Moment now = service_.extender().Now();
    (void)service_.extender().Filter(now, pod, nodes);
    if (pod.gang.empty()) return;
    (void)service_.gangs().Filter(*now.policy->engine, now.snapshot, pod, nodes,
                                  std::chrono::steady_clock::now(), actions);
  }

  TestService service_{{MachineWith("n1", 2), MachineWith("n2", 4)}};
  WaitingPods& waiting_ = service_.waiting();
  SimClock clock_;
  TellingSink sink_;
  std::string scheduler_ = "default-scheduler";
  WaitingNews news_{service_.live(), sink_, clock_};
};

TEST_F(WaitingNewsTest, APodThatKeepsWaitingIsToldWhyOnce) {
  Waits(APod("p").Whole(8));
  EXPECT_TRUE(After(seconds(8)).empty()) << "it may yet be placed";
  const auto told = After(seconds(20));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(
      told.front(),
      "default/p: fits none of 2 nodes; nearest is n2: 4 of 4 GPUs idle, needs 8; fits with 4 GPUs "
      "instead of 8");
  EXPECT_TRUE(After(minutes(50)).empty()) << "the numbers alone are no other cause";
  EXPECT_EQ(After(minutes(15)).size(), 1U) << "the API server has forgotten the first";
}

TEST_F(WaitingNewsTest, AnotherCauseIsToldToo) {
  Waits(APod("p").Whole(8));
  ASSERT_EQ(After(seconds(20)).size(), 1U);
  for (const char* node : {"n1", "n2"}) {
    NodeSpec spec = service_.state().Current()->node(0).spec();
    spec.name = node;
    spec.ready = false;
    const ClusterEvent event = NodeUpserted{spec};
    ASSERT_TRUE(service_.state().Apply(std::span(&event, 1)));
  }
  const auto told = After(minutes(6));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told.front().find("have at most 2 healthy GPUs"), std::string::npos) << told.front();
}

TEST_F(WaitingNewsTest, APodThatFitsIsGivenTheTimeToBePlaced) {
  Waits(APod("p").Whole(1));
  EXPECT_TRUE(After(minutes(4)).empty());
  const auto told = After(minutes(4));
  ASSERT_EQ(told.size(), 1U) << "something else keeps it from the nodes";
  EXPECT_NE(told.front().find("fits 2 of 2 nodes now"), std::string::npos) << told.front();
}

TEST_F(WaitingNewsTest, AMemberOfAGroupThatWaitsIsToldThoughItWouldFitAlone) {
  service_.gangs().Use({.conventions = {"berth"}});
  const APod pod = APod("a").Whole(1).Gang("berth:default/g").GangSize(4);
  Waits(pod);
  Asks(scheduler_, pod.Request());
  EXPECT_EQ(After(minutes(1)).size(), 1U);
}

TEST_F(WaitingNewsTest, OthersArePassedOver) {
  Waits(APod("gated").Whole(8), true, true);
  Waits(APod("new").Whole(8), false);
  EXPECT_TRUE(After(minutes(1)).empty());
}

TEST_F(WaitingNewsTest, PodsOfASchedulerThatNeverAsksAreNotOurs) {
  scheduler_ = "another-scheduler";
  Waits(APod("p").Whole(8));
  EXPECT_TRUE(After(minutes(1)).empty());
  Asks(scheduler_);
  EXPECT_EQ(After(minutes(1)).size(), 1U);
}

TEST_F(WaitingNewsTest, APodThatHasGoneIsNotTold) {
  for (int i = 0; i < 60; ++i) Waits(APod("p" + std::to_string(i)).Whole(8));
  const auto first = After(seconds(11));
  ASSERT_EQ(first.size(), 40U) << "some at a time";
  for (int i = 0; i < 60; ++i) waiting_.Remove("uid-p" + std::to_string(i));
  EXPECT_TRUE(After(minutes(1)).empty());
}

// Pods of one Job have one explanation; as many Jobs have each their own.
TEST_F(WaitingNewsTest, AThousandPodsAreToldWithinHalfAMinute) {
  for (int i = 0; i < 500; ++i) Waits(APod("like" + std::to_string(i)).Whole(8));
  for (int i = 0; i < 500; ++i) Waits(APod("other" + std::to_string(i)).Whole(8).Cpu(i + 1));
  (void)After(seconds(9));
  const auto told = After(seconds(30));
  EXPECT_EQ(told.size(), 1000U);
  EXPECT_EQ(std::set<std::string>(told.begin(), told.end()).size(), 1000U) << "each once";
}

// The clock moves on while something is explained.
class SlowClock final : public Clock {
 public:
  [[nodiscard]] Instant Now() const override { return now_ += std::chrono::milliseconds(25); }
  [[nodiscard]] WallTime Wall() const override { return SimClock().Wall() + minutes(1); }

 private:
  mutable Instant now_{};
};

TEST_F(WaitingNewsTest, ExplanationsTakeNoMoreThanTheirTimeAndThoseOfAKindAreOne) {
  const SlowClock slow;
  WaitingNews news(service_.live(), sink_, slow);
  for (int i = 0; i < 10; ++i) Waits(APod("like" + std::to_string(i)).Whole(8));
  for (int i = 0; i < 10; ++i) Waits(APod("other" + std::to_string(i)).Whole(8).Cpu(i + 1));
  news.Look();
  EXPECT_GE(sink_.texts.size(), 10U) << "one explanation for all that are alike";
  EXPECT_LE(sink_.texts.size(), 12U) << "and few others";
}

// Nodes of eight GPUs, all held by pods that say when they end.
class KeptRoomNewsTest : public testing::Test {
 protected:
  KeptRoomNewsTest() {
    service_.extender().Use({.engine = EngineOf("best-fit"),
                             .reservation_time = seconds(30),
                             .earmarks = EarmarkLimits{100, minutes(60)}});
    Holds("old1", "n1", minutes(300));
    Holds("old2", "n2", minutes(60));
  }
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(service_.state().Apply({&event, 1})); }
  void Holds(const std::string& name, const std::string& node, minutes time) {
    const APod pod = APod(name).Whole(7).EndsWithin(time);
    Apply(PodBound{.pod = pod.Request(),
                   .placement = pod.On(node, {0, 1, 2, 3, 4, 5, 6}),
                   .life = {.started = service_.clock().Wall()}});
  }
  void Waits(const APod& pod) {
    auto request = std::make_shared<PodRequest>(pod.Request());
    request->scheduler = "default-scheduler";
    pods_.push_back(request);
    service_.waiting().Put(
        {.pod = request, .unschedulable = true, .created = service_.clock().Wall()});
  }
  // kube-scheduler asks about all of them once a minute.
  std::vector<std::string> After(minutes time) {
    sink_.texts.clear();
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      if (passed % minutes(1) == seconds(0)) AskAgain();
      service_.extender().LookAtEarmarks();
      service_.clock().Advance(seconds(1));
      news_.Look();
    }
    std::ranges::sort(sink_.texts);
    return sink_.texts;
  }
  void AskAgain() {
    std::vector<NodeIndex> nodes(service_.state().Current()->size());
    std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
    for (const auto& pod : pods_) {
      (void)service_.extender().Filter(service_.extender().Now(), *pod, nodes);
    }
  }

  TestService service_{{MachineWith("n1", 8), MachineWith("n2", 8)}};
  TellingSink sink_;
  std::vector<std::shared_ptr<const PodRequest>> pods_;
  WaitingNews news_{service_.live(), sink_, service_.clock()};
};

TEST_F(KeptRoomNewsTest, EachOfPodsThatAreAlikeIsToldOfItsOwnReservation) {
  Waits(APod("a").Whole(8));
  service_.clock().Advance(seconds(1));
  Waits(APod("b").Whole(8));
  const auto told = After(minutes(4));
  ASSERT_EQ(told.size(), 4U) << "first that it fits nowhere, then the reservation";
  EXPECT_TRUE(told[0].starts_with("default/a: fits none of 2 nodes")) << told[0];
  EXPECT_EQ(
      told[1],
      "default/a: reserved: starts in about 60 min when 1 pod on n2 ends; up to 1.0 GPU-hours "
      "stand idle for it until then");
  EXPECT_TRUE(told[2].starts_with("default/b: fits none of 2 nodes")) << told[2];
  EXPECT_EQ(told[3],
            "default/b: reserved: starts in about 5 h when 1 pod on n1 ends; up to 5.0 GPU-hours "
            "stand idle for it until then");
  EXPECT_TRUE(After(minutes(40)).empty()) << "the time alone is no other cause";
}

TEST_F(KeptRoomNewsTest, ThePagesSayTheSame) {
  Waits(APod("a").Whole(8));
  (void)After(minutes(2));
  Waits(APod("small").Whole(1));
  (void)After(minutes(1));
  const auto page = [this](const std::string& path) {
    return Json::parse(service_.Call("GET", "/debug/" + path).body);
  };
  const Json kept = page("nodes/n2")["kept_for"];
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0]["pod"], "default/a");
  EXPECT_EQ(kept[0]["gpus"], 1);
  EXPECT_EQ(kept[0]["reserved"], true);
  EXPECT_EQ(kept[0]["text"],
            "reserved for default/a, which can start in about 58 min (1 idle GPU now); up to 1.0 "
            "GPU-hours stand idle until then");
  EXPECT_FALSE(page("nodes/n1").contains("kept_for"));
  EXPECT_EQ(page("pods/default/a")["reservation"]["node"], "n2");
  EXPECT_EQ(page("pods/default/a")["reservation"]["pods_that_end"], 1);
  const Json small = page("pods/default/small");
  EXPECT_EQ(small["fitting"], 2);
  EXPECT_EQ(small["kept_for_others"], 1);
}

TEST_F(KeptRoomNewsTest, AReservationThatIsGivenUpIsToldOnce) {
  Waits(APod("a").Whole(8));
  ASSERT_EQ(After(minutes(4)).size(), 2U);
  Apply(NodeRemoved{"n2"});
  Apply(NodeRemoved{"n1"});
  const auto spec = MachineWith("n3", 4);
  Apply(NodeUpserted{spec});
  const auto told = After(minutes(10));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_TRUE(told[0].starts_with(
      "default/a: its reservation is given up; does not fit the only node; nearest is n3"))
      << told[0];
}

TEST_F(KeptRoomNewsTest, WhoIsPassedOverIsToldForWhom) {
  Waits(APod("a").Whole(8));
  service_.clock().Advance(seconds(1));
  Waits(APod("b").Whole(8));
  ASSERT_EQ(After(minutes(4)).size(), 4U);
  Waits(APod("small").Whole(1));
  const auto told = After(minutes(1));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0],
            "default/small: passed over: it would delay default/b; it may go with "
            "berth.dev/expected-duration of at most 4 h");
}

}  // namespace
}  // namespace berth::test::waiting_news_test
