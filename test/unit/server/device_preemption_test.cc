// SPDX-License-Identifier: Apache-2.0
//
// Evictions for pods that wait for GPUs of DRA: when there are some, what is kept for whom, and
// what kube-scheduler is answered meanwhile.
#include "server/planners/preemption/device_preemption.h"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "server/extender/inquiry.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::device_preemption_test {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Names = std::vector<std::string>;

constexpr const char* kResource = "nvidia.com/gpu";

class ScriptedEvictor final : public PodEvictor {
 public:
  Outcome Evict(const PodId& pod) override {
    asked.push_back(pod.name);
    if (meanwhile) meanwhile();
    const auto says = answers.find(pod.name);
    return says == answers.end() ? Outcome::kEvicted : says->second;
  }
  Names asked;
  std::map<std::string, Outcome> answers;  // of others: evicted
  std::function<void()> meanwhile;
};

class CountingWaker final : public PodWaker {
 public:
  bool Wake(const PodId& pod) override {
    woken.push_back(pod.name);
    return true;
  }
  Names woken;
};

class NewsSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
  void Record(const PodsEvicted& news) override {
    std::string text = news.pod.name + " on " + news.node + ":";
    for (const PodId& victim : news.victims) text += " " + victim.name;
    texts.push_back(text);
  }
  void Record(const PodWaits& news) override {
    waits.push_back(news.pod.name + ": " + news.sentence);
  }
  Names texts, waits;
};

// Nodes "n1" and "n2" with 2 GPUs of DRA each; a pod holds them by a claim of its own.
class DevicePreemptionTest : public testing::Test {
 protected:
  DevicePreemptionTest() {
    DeviceClass gpu;
    gpu.name = "gpu";
    gpu.whole = true;
    gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
    classes_.Put(gpu);
    for (const char* const name : {"n1", "n2"}) {
      NodeSpec spec = ANode(name).Gpus(2).Spec();
      spec.by_claims = {{kResource, {0, 1}}};
      Apply(NodeUpserted{spec});
      ShowDevices(name);
    }
  }
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }

  static PodRequest Pod(const APod& pod) {
    PodRequest request = pod.Request();
    request.shape.gpu_resource = kResource;
    request.device_class = "gpu.nvidia.com";
    return request;
  }
  // Once kube-scheduler has made its claim, which has its name.
  static PodRequest WithClaim(const APod& pod) {
    PodRequest request = Pod(pod);
    request.made_claim = NumberOfClaim(request.id.name);
    return request;
  }
  void Runs(const APod& pod, const std::string& node, const std::vector<int>& gpus) {
    const PodRequest request = WithClaim(pod);
    for (const int gpu : gpus) {
      claims_[node].push_back({"default/" + request.id.name, "gpu-" + std::to_string(gpu), "", gpu,
                               "", -1, request.id.uid});
    }
    ShowClaims(node);
    Apply(PodBound{request, APod(pod).On(node, gpus), false});
  }
  void ShowClaims(const std::string& node) {
    Apply(GpusClaimed{node, claims_[node]});
    ShowDevices(node);
  }
  void ShowDevices(const std::string& node) { devices_.Put({{node, DevicesOf(node)}}); }
  NodeDevices DevicesOf(const std::string& node) {
    auto slice = std::make_shared<PublishedSlice>();
    slice->name = slice->pool = slice->node = node;
    slice->driver = "gpu.nvidia.com";
    slice->slices_in_pool = 1;
    for (const char* const name : {"gpu-0", "gpu-1"}) {
      slice->devices.push_back(
          {.name = name, .seen = cel::Device("gpu.nvidia.com"), .taints = {}, .consumes = {}});
    }
    NodeDevices devices{GatherPools({std::move(slice)}), {}};
    for (const ClaimedGpu& held : claims_[node]) devices.taken.emplace(node, held.device);
    return devices;
  }
  // A pod with a claim of its own for so many GPUs, which has none yet.
  PodRequest Claiming(const APod& pod, int gpus) {
    PodRequest request = pod.Request();
    request.claims = {request.id.name + "-gpus"};
    DeviceWant want{.name = {},
                    .device_class = "gpu",
                    .selectors = {},
                    .count = gpus,
                    .tolerations = {},
                    .tolerations_json = {}};
    DeviceClaim asks{{{"r", {std::move(want)}}}};
    open_.Put({{"default/" + request.claims[0],
                {.asks = std::make_shared<const DeviceClaim>(std::move(asks))}}},
              false);
    return request;
  }
  // It has these GPUs by its claim, and runs.
  void GetsAndRuns(const PodRequest& pod, const std::string& node, const std::vector<int>& gpus) {
    for (const int gpu : gpus) {
      claims_[node].push_back(
          {"default/" + pod.claims[0], "gpu-" + std::to_string(gpu), "", gpu, "", -1, ""});
    }
    ShowClaims(node);
    open_.Put({{"default/" + pod.claims[0], {.allocated = true, .node = node}}}, false);
    waiting_.Remove(pod.id.uid);
    Placement placement;
    placement.node = node;
    Apply(PodBound{pod, placement, false});
  }
  std::vector<Reason> Filter(const PodRequest& pod) {
    const std::vector<NodeIndex> nodes = {0, 1};
    return extender_.Filter(extender_.Now(), pod, nodes).reasons;
  }
  void IsEnding(const APod& pod, const std::string& node, const std::vector<int>& gpus) {
    PodBound bound{WithClaim(pod), APod(pod).On(node, gpus), false};
    bound.leaving = true;
    Apply(bound);
  }
  // The pod is gone, and its claim is deallocated.
  void Ends(const std::string& name, const std::string& node) {
    Apply(PodGone{"uid-" + name});
    std::erase_if(claims_[node], [&name](const ClaimedGpu& claim) {
      return claim.pod == "uid-" + name || claim.claim == "default/" + name + "-gpus";
    });
    ShowClaims(node);
  }
  // Every node is full of pods "low-n1-0", "low-n1-1", ... of that priority.
  void Fill(int priority = 0) {
    for (const std::string node : {"n1", "n2"}) {
      for (const int gpu : {0, 1}) Runs(Low(node, gpu).Priority(priority), node, {gpu});
    }
  }
  static APod Low(const std::string& node, int gpu) {
    return APod("low-" + node + "-" + std::to_string(gpu)).Whole(1);
  }

  // kube-scheduler found no node for it.
  void Waits(const PodRequest& pod) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod),
                  .unschedulable = true,
                  .created = clock_.Wall()});
  }
  void Waits(const APod& pod) { Waits(Pod(pod)); }
  // Somebody's pod was asked about.
  void SchedulerAsks() { (void)Filter(APod("anybody").Whole(1)); }
  // As many seconds, with a look in each.
  Names After(seconds time) {
    evictor_.asked.clear();
    for (seconds passed{0}; passed < time; passed += seconds(1)) {
      clock_.Advance(seconds(1));
      preemption_.Look();
    }
    return evictor_.asked;
  }
  std::vector<Reason> Filter(const APod& pod) {
    const std::vector<NodeIndex> nodes = {0, 1};
    return extender_.Filter(extender_.Now(), Pod(pod), nodes).reasons;
  }
  Status Bind(const APod& pod, const std::string& node) {
    const PodId id = Pod(pod).id;
    return BindNow(extender_, {id.namespace_name, id.name, id.uid, node});
  }

  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  DisruptionBudgets budgets_;
  ScriptedBinder binder_;
  NewsSink sink_;
  DeviceRooms rooms_;
  ScriptedEvictor evictor_;
  CountingWaker waker_;
  std::map<std::string, std::vector<ClaimedGpu>> claims_;
  OpenClaims open_;
  DeviceOffers devices_;
  DeviceClasses classes_;
  GangClaims gang_claims_{open_, devices_, classes_};
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .budgets = &budgets_,
                      .behind_scheduler = true,
                      .waiting = &waiting_,
                      .rooms = &rooms_,
                      .claims = &gang_claims_},
                     {.engine = EngineOf("best-fit"), .reservation_time = seconds(30)}};
  DevicePreemption preemption_{{.state = state_,
                                .waiting = waiting_,
                                .extender = extender_,
                                .open = open_,
                                .rooms = rooms_,
                                .evictor = evictor_,
                                .waker = waker_,
                                .sink = sink_,
                                .clock = clock_}};
  static constexpr Reason kFits = Reason::kFits, kKept = Reason::kKeptForWaiting;
  static constexpr auto kBlocked = PodEvictor::Outcome::kBlocked;
};

const APod kHigh = APod("high").Whole(2).Priority(100);

TEST_F(DevicePreemptionTest, EvictsForAPodThatStaysWithoutRoom) {
  SchedulerAsks();
  Fill();
  Waits(kHigh);
  EXPECT_EQ(After(seconds(4)), Names()) << "it has only just been created";
  EXPECT_EQ(After(seconds(4)), (Names{"low-n1-0", "low-n1-1"}));
  EXPECT_EQ(sink_.texts, Names{"high on n1: low-n1-0 low-n1-1"});
  EXPECT_EQ(After(seconds(30)), Names()) << "nobody else, while these end";
  EXPECT_EQ(preemption_.stats().evicted, 2u);
  EXPECT_EQ(preemption_.stats().rooms, 1u);
}

TEST_F(DevicePreemptionTest, WhatComesFreeIsThePods) {
  SchedulerAsks();
  Fill();
  Waits(kHigh);
  After(seconds(8));
  Ends("low-n1-0", "n1");
  const APod other = APod("other").Whole(1).Priority(100),
             higher = APod("b").Whole(1).Priority(101);
  EXPECT_EQ(Filter(other)[0], kKept) << "nobody of its priority or below gets in";
  EXPECT_EQ(Filter(higher)[0], kFits);
  EXPECT_NE(Filter(kHigh)[0], kFits) << "half of it is there";
  EXPECT_FALSE(Inquiry(extender_, extender_.Now()).WouldFit(Pod(other)));
  Ends("low-n1-1", "n1");
  EXPECT_EQ(Filter(other)[0], kKept);
  After(seconds(1));
  EXPECT_EQ(waker_.woken, Names{"high"});
  EXPECT_NE(Filter(higher)[0], kFits) << "it is planned for the pod";
  Ends("low-n2-0", "n2");
  EXPECT_EQ(Filter(other)[1], kFits) << "other nodes are nobody's";
  EXPECT_EQ(Filter(kHigh), (std::vector{kFits, Reason::kBetterElsewhere}));
  ASSERT_TRUE(Bind(kHigh, "n1"));
  waiting_.Remove("uid-high");
  After(seconds(1));
  EXPECT_EQ(preemption_.stats().rooms, 0u);
  EXPECT_EQ(state_.FindPod("uid-high")->state, PodState::kBound) << "the room alone is dropped";
}

TEST_F(DevicePreemptionTest, NobodyIsEvictedForAPodThatNeedsNoRoom) {
  SchedulerAsks();
  Runs(Low("n1", 0), "n1", {0});
  Waits(kHigh);  // n2 is free
  Waits(APod("low").Whole(2).Priority(-1));
  EXPECT_EQ(After(seconds(20)), Names());
}

TEST_F(DevicePreemptionTest, NorForPodsThatMayNotPreempt) {
  SchedulerAsks();
  Fill(50);
  Waits(APod("same").Whole(1).Priority(50));
  Waits(APod("never").Whole(1).Priority(100).NeverPreempts());
  Waits(APod("member").Whole(1).Priority(100).Gang("default/g"));
  Waits(APod("no-class").Whole(1).Priority(100).Request());
  PodRequest other = Pod(APod("other").Whole(1).Priority(100));
  other.scheduler = "others";
  Waits(other);
  Waits(APod("large").Whole(3).Priority(100));
  waiting_.Put(
      {.pod = std::make_shared<const PodRequest>(Pod(APod("gated").Whole(1).Priority(100))),
       .held_back = "scheduling gates hold it back",
       .unschedulable = true,
       .created = clock_.Wall()});
  waiting_.Put({.pod = std::make_shared<const PodRequest>(Pod(APod("new").Whole(1).Priority(100))),
                .created = clock_.Wall()});
  waiting_.Put(
      {.pod = std::make_shared<const PodRequest>(Pod(APod("nominated").Whole(1).Priority(100))),
       .unschedulable = true,
       .created = clock_.Wall(),
       .nominated = "n1"});
  EXPECT_EQ(After(seconds(20)), Names());
}

TEST_F(DevicePreemptionTest, TheMostImportantPodComesFirstAndEachGetsItsOwnNode) {
  SchedulerAsks();
  Fill();
  Waits(APod("high").Whole(2).Priority(100));
  Waits(APod("highest").Whole(2).Priority(200));
  Waits(APod("third").Whole(2).Priority(50));
  After(seconds(20));
  EXPECT_EQ(sink_.texts,
            (Names{"highest on n1: low-n1-0 low-n1-1", "high on n2: low-n2-0 low-n2-1"}));
  EXPECT_EQ(rooms_.Of("uid-third"), std::nullopt) << "the others' room is not taken from them";
}

TEST_F(DevicePreemptionTest, WaitsForPodsThatAreEndingAnyway) {
  SchedulerAsks();
  Fill();
  IsEnding(Low("n2", 0), "n2", {0});
  IsEnding(Low("n2", 1), "n2", {1});
  Waits(kHigh);
  EXPECT_EQ(After(seconds(30)), Names());
  Ends("low-n2-0", "n2");
  Runs(APod("came").Whole(1), "n2", {0});
  EXPECT_EQ(After(seconds(10)), Names{"came"}) << "beside the one that is ending still";
}

TEST_F(DevicePreemptionTest, WhatABudgetBlocksIsLeftAndTriedLater) {
  SchedulerAsks();
  Fill();
  evictor_.answers = {{"low-n1-0", PodEvictor::Outcome::kBlocked}};
  Waits(kHigh);
  EXPECT_EQ(After(seconds(8)), Names{"low-n1-0"}) << "the second one alone would help nobody";
  EXPECT_EQ(preemption_.stats().rooms, 0u);
  EXPECT_EQ(preemption_.stats().blocked, 1u);
  EXPECT_NE(Filter(APod("other").Whole(1).Priority(1))[0], kFits);
  EXPECT_EQ(After(seconds(20)), Names());
  evictor_.answers.clear();
  EXPECT_EQ(After(seconds(20)), (Names{"low-n1-0", "low-n1-1"}));
}

TEST_F(DevicePreemptionTest, TheRestIsEvictedAsSoonAsItMayBe) {
  SchedulerAsks();
  Fill();
  evictor_.answers = {{"low-n1-1", PodEvictor::Outcome::kFailed}};
  Waits(kHigh);
  After(seconds(8));
  EXPECT_EQ(preemption_.stats().rooms, 1u);
  EXPECT_EQ(After(seconds(2)), (Names{"low-n1-1", "low-n1-1"}));
  evictor_.answers.clear();
  EXPECT_EQ(After(seconds(5)), Names{"low-n1-1"});
  EXPECT_EQ(sink_.texts, (Names{"high on n1: low-n1-0", "high on n1: low-n1-1"}));
}

TEST_F(DevicePreemptionTest, ARoomEndsWithItsPodAndAfterATime) {
  SchedulerAsks();
  Fill();
  Waits(kHigh);
  After(seconds(8));
  EXPECT_EQ(After(minutes(5) - seconds(3)), Names());
  EXPECT_EQ(preemption_.stats().rooms, 1u) << "its victims take their time";
  After(seconds(5));
  EXPECT_EQ(preemption_.stats().rooms, 0u);
  After(seconds(60));  // again
  EXPECT_EQ(preemption_.stats().rooms, 1u);
  waiting_.Remove("uid-high");
  After(seconds(1));
  EXPECT_EQ(preemption_.stats().rooms, 0u);
}

TEST_F(DevicePreemptionTest, APodWithClaimsOfItsOwnGetsRoomToo) {
  SchedulerAsks();
  Fill();
  const PodRequest high = Claiming(APod("claims").Priority(100), 2);
  Waits(high);
  EXPECT_EQ(After(seconds(8)), (Names{"low-n1-0", "low-n1-1"}));
  EXPECT_EQ(sink_.texts, Names{"claims on n1: low-n1-0 low-n1-1"});
  Ends("low-n1-0", "n1");
  const PodRequest other = Claiming(APod("other").Priority(100), 1);
  const APod named = APod("named").Whole(1).Priority(1);
  EXPECT_EQ(Filter(other)[0], kKept) << "half of it is there, and is the pod's";
  EXPECT_EQ(Filter(named)[0], kKept);
  EXPECT_EQ(Filter(Claiming(APod("higher").Priority(101), 1))[0], kFits);
  EXPECT_EQ(Filter(APod("without").Request())[0], kFits) << "it takes no devices";
  Ends("low-n1-1", "n1");
  After(seconds(1));
  EXPECT_EQ(waker_.woken, Names{"claims"});
  EXPECT_EQ(Filter(other)[0], kKept) << "until it has its devices";
  EXPECT_EQ(Filter(named)[0], kKept);
  EXPECT_EQ(Filter(high)[0], kFits);
  EXPECT_FALSE(state_.FindPod("uid-claims")) << "its claims are not in these books";
  GetsAndRuns(high, "n1", {0, 1});
  After(seconds(1));
  EXPECT_EQ(preemption_.stats().rooms, 0u);
  EXPECT_EQ(Filter(other)[0], kFits) << "whether there are devices kube-scheduler sees";
}

TEST_F(DevicePreemptionTest, PodsWithClaimsOfTheirOwnAreEvictedToo) {
  SchedulerAsks();
  Fill(100);
  const PodRequest low = Claiming(APod("low"), 1);
  Ends("low-n2-1", "n2");
  GetsAndRuns(low, "n2", {1});
  Waits(Claiming(APod("claims").Priority(50), 1));
  EXPECT_EQ(After(seconds(8)), Names{"low"});
  EXPECT_EQ(sink_.texts, Names{"claims on n2: low"});
  const PodRequest allocated = Claiming(APod("allocated"), 1);
  open_.Put({{"default/allocated-gpus", {.allocated = true, .node = "n2"}}}, false);
  EXPECT_EQ(Filter(allocated)[1], kFits) << "it has its devices";
}

TEST_F(DevicePreemptionTest, NobodyIsEvictedForClaimsThatHaveRoomOrDevices) {
  SchedulerAsks();
  Fill();
  Ends("low-n2-1", "n2");
  Waits(Claiming(APod("one").Priority(100), 1));
  const PodRequest allocated = Claiming(APod("allocated").Priority(100), 2);
  open_.Put({{"default/allocated-gpus", {.allocated = true, .node = "n1"}}}, false);
  Waits(allocated);
  PodRequest unseen = APod("unseen").Priority(100).Request();
  unseen.claims = {"nobody-made-it"};
  Waits(unseen);
  PodRequest left = APod("left").Priority(100).Request();
  left.claims = {"for-nics"};
  open_.Put({{"default/for-nics", {}}}, false);
  Waits(left);
  Waits(Claiming(APod("large").Priority(100), 3));
  Waits(Claiming(APod("same").Priority(0), 2));
  Waits(Claiming(APod("member").Priority(100).Gang("default/g"), 2));
  EXPECT_EQ(After(seconds(20)), Names());
}

// Its volume is missing, for example.
TEST_F(DevicePreemptionTest, WhatIsHeldForAPodThatDoesNotComeIsFreeAgain) {
  SchedulerAsks();
  Fill();
  Waits(kHigh);
  After(seconds(8));
  Ends("low-n1-0", "n1");
  Ends("low-n1-1", "n1");
  After(seconds(2));
  const APod other = APod("other").Whole(1).Priority(1);
  EXPECT_NE(Filter(other)[0], kFits);
  After(seconds(31));
  EXPECT_EQ(Filter(other)[0], kFits);
  EXPECT_FALSE(state_.FindPod("uid-high"));
}

TEST_F(DevicePreemptionTest, AProcessThatLeadsNoLongerKeepsNothing) {
  SchedulerAsks();
  Fill();
  Waits(kHigh);
  After(seconds(8));
  Ends("low-n1-0", "n1");
  Ends("low-n1-1", "n1");
  After(seconds(1));
  ASSERT_TRUE(state_.FindPod("uid-high"));
  preemption_.LetGo();
  EXPECT_FALSE(state_.FindPod("uid-high"));
  EXPECT_EQ(preemption_.stats().rooms, 0u);
}

TEST_F(DevicePreemptionTest, SoManyEvictionsAMinuteAreTheMost) {
  SchedulerAsks();
  const int nodes = DevicePreemption::kMostPerMinute / 2 + 8;
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "x" + std::to_string(100 + i);
    NodeSpec spec = ANode(name).Gpus(2).Spec();
    spec.by_claims = {{kResource, {0, 1}}};
    Apply(NodeUpserted{spec});
    for (const int gpu : {0, 1}) Runs(Low(name, gpu), name, {gpu});
  }
  Fill(1000);
  for (int i = 0; i < nodes; ++i) {
    Waits(APod("high-" + std::to_string(i)).Whole(2).Priority(100 + i));
  }
  // Those that are served leave, so that the number of rooms is not what ends it.
  std::size_t most = 0, all = 0;
  for (int second = 0; second < 59; ++second) {
    all += After(seconds(1)).size();
    most = std::max(most, preemption_.stats().rooms);
    if (const auto rooms = rooms_.Current()) {
      for (const auto& [node, room] : *rooms) {
        for (const PodId& victim : room.victims) Ends(victim.name, node);
        waiting_.Remove(room.pod.uid);
      }
    }
  }
  EXPECT_GT(all, 0u);
  EXPECT_LE(all, std::size_t{DevicePreemption::kMostPerMinute});
  EXPECT_LE(most, DeviceRooms::kMost);
}

TEST_F(DevicePreemptionTest, NobodyIsEvictedForAPodThatIsInTheBooks) {
  SchedulerAsks();
  Fill();
  Ends("low-n2-0", "n2");
  Ends("low-n2-1", "n2");
  Waits(kHigh);
  ASSERT_EQ(Filter(kHigh)[1], kFits);
  // Its Binding takes its time, or the watch of pods does.
  ASSERT_TRUE(Bind(kHigh, "n2"));
  EXPECT_EQ(state_.FindPod("uid-high")->state, PodState::kBound);
  Runs(APod("came").Whole(2), "n2", {0, 1});
  EXPECT_EQ(After(seconds(20)), Names());
}

TEST_F(DevicePreemptionTest, NorForOneThatHasItsClaim) {
  SchedulerAsks();
  Fill();
  Waits(kHigh);
  const auto made_in = [this](const std::string& space) {
    open_.Put({{space + "/made", {.allocated = true, .node = "n2", .made_for = "uid-high"}}}, true);
  };
  made_in("default");
  EXPECT_EQ(After(seconds(20)), Names()) << "kube-scheduler is about to bind it";
  made_in("other");
  EXPECT_EQ(After(seconds(8)), (Names{"low-n1-0", "low-n1-1"}))
      << "anybody may say so of a pod of others";
}

TEST_F(DevicePreemptionTest, NorWhileClaimsOfPodsThatAreGoneAreBeingReleased) {
  SchedulerAsks();
  Fill();
  Waits(kHigh);
  Apply(PodGone{"uid-low-n2-0"});  // the claims are there for some seconds more
  Apply(PodGone{"uid-low-n2-1"});
  EXPECT_EQ(After(seconds(30)), Names());
  EXPECT_EQ(After(seconds(45)), (Names{"low-n1-0", "low-n1-1"}))
      << "nobody deallocates them: they are held for good";
}

TEST_F(DevicePreemptionTest, NorWhileOwnClaimsOfPodsThatAreGoneAre) {
  SchedulerAsks();
  Fill(100);
  Ends("low-n2-1", "n2");
  const PodRequest low = Claiming(APod("low"), 1), gone = Claiming(APod("gone").Priority(100), 1);
  Ends("low-n2-0", "n2");
  GetsAndRuns(low, "n2", {0});
  GetsAndRuns(gone, "n2", {1});
  Waits(Claiming(APod("claims").Priority(50), 1));
  Apply(PodGone{"uid-gone"});
  EXPECT_EQ(After(seconds(30)), Names());
  EXPECT_EQ(After(seconds(45)), Names{"low"});
}

TEST_F(DevicePreemptionTest, AfterPodsHaveEndedItHasToBeShortInTwoLooksAgain) {
  SchedulerAsks();
  Fill();
  IsEnding(Low("n2", 0), "n2", {0});
  IsEnding(Low("n2", 1), "n2", {1});
  Waits(kHigh);
  After(seconds(30));
  for (const int gpu : {0, 1}) Ends("low-n2-" + std::to_string(gpu), "n2");
  Runs(APod("came").Whole(2), "n2", {0, 1});
  clock_.Advance(DevicePreemption::kRetry);
  EXPECT_EQ(After(seconds(1)), Names()) << "the first look";
  EXPECT_EQ(After(seconds(4)), Names{"came"});
}

TEST_F(DevicePreemptionTest, AClaimThatSaysItWasMadeForAPodTurnsNoEvictionOnThatPod) {
  SchedulerAsks();
  Fill(1000);
  for (const std::string name : {"low-n1-0", "low-n1-1"}) Ends(name, "n1");
  // The claim of a pod of another namespace has the GPUs.
  const PodRequest good = APod("good").Request();
  Placement placement;
  placement.node = "n1";
  Apply(PodBound{good, placement, false});
  claims_["n1"] = {{"evil/claim", "gpu-0", "", 0, "", -1, good.id.uid},
                   {"evil/claim", "gpu-1", "", 1, "", -1, good.id.uid}};
  ShowClaims("n1");
  Waits(kHigh);
  EXPECT_EQ(After(seconds(80)), Names());
  // A claim of its own namespace, which its status does not name.
  for (ClaimedGpu& held : claims_["n1"]) held.claim = "default/claim";
  ShowClaims("n1");
  EXPECT_EQ(After(seconds(80)), Names());
}

TEST_F(DevicePreemptionTest, EvictionsOfRoomsThatGoOnAreBoundedToo) {
  SchedulerAsks();
  Fill(1000);
  const int nodes = 20;
  for (int i = 0; i < nodes; ++i) {
    const std::string name = "x" + std::to_string(100 + i);
    NodeSpec spec = ANode(name).Gpus(8).Spec();
    spec.by_claims = {{kResource, {0, 1, 2, 3, 4, 5, 6, 7}}};
    Apply(NodeUpserted{spec});
    for (int gpu = 0; gpu < 8; ++gpu) {
      Runs(Low(name, gpu), name, {gpu});
      if (gpu > 0) evictor_.answers["low-" + name + "-" + std::to_string(gpu)] = kBlocked;
    }
    Waits(APod("high-" + std::to_string(i)).Whole(8).Priority(100 + i));
  }
  After(seconds(250));
  EXPECT_LE(preemption_.stats().evicted, 64U);
  const std::uint64_t before = preemption_.stats().evicted;
  ASSERT_GT(before, 15U) << "many rooms have begun";
  evictor_.answers.clear();  // all budgets allow it at one time
  After(seconds(50));
  EXPECT_LE(preemption_.stats().evicted - before, std::uint64_t{DevicePreemption::kMostPerMinute});
}

TEST_F(DevicePreemptionTest, NobodyMoreIsEvictedOnceThereIsRoom) {
  SchedulerAsks();
  Fill(1000);
  NodeSpec spec = ANode("x").Gpus(3).Spec();
  spec.by_claims = {{kResource, {0, 1, 2}}};
  Apply(NodeUpserted{spec});
  Runs(APod("a").Whole(1), "x", {0});
  Runs(APod("b").Whole(1), "x", {1});
  Runs(APod("c").Whole(1).Priority(1000), "x", {2});
  evictor_.answers = {{"b", kBlocked}};
  Waits(kHigh);
  After(seconds(8));
  ASSERT_EQ(preemption_.stats().rooms, 1U);
  Ends("a", "x");
  Ends("c", "x");  // by itself
  evictor_.answers.clear();
  EXPECT_EQ(After(seconds(3)), Names());
  EXPECT_EQ(waker_.woken, Names{"high"});
}

TEST_F(DevicePreemptionTest, SlowEvictionsEndALookAndNoRoomWaitsForAnother) {
  SchedulerAsks();
  Fill();
  evictor_.answers = {{"low-n1-1", kBlocked}, {"low-n2-1", kBlocked}};
  Waits(APod("high").Whole(2).Priority(100));
  Waits(APod("highest").Whole(2).Priority(200));
  After(seconds(12));
  ASSERT_EQ(preemption_.stats().rooms, 2U);
  evictor_.meanwhile = [this] { clock_.Advance(seconds(2)); };
  EXPECT_EQ(After(seconds(4)).size(), 4U) << "one in each look";
  EXPECT_EQ(evictor_.asked[0] == evictor_.asked[1], false) << "each room has its turn";
}

TEST_F(DevicePreemptionTest, AnEvictionWithoutAnAnswerKeepsTheRoom) {
  SchedulerAsks();
  Fill();
  evictor_.answers = {{"low-n1-0", PodEvictor::Outcome::kUnknown}};
  Waits(kHigh);
  EXPECT_EQ(After(seconds(8)).front(), "low-n1-0");
  EXPECT_EQ(preemption_.stats().rooms, 1U) << "it may be ending";
  IsEnding(Low("n1", 0), "n1", {0});
  EXPECT_EQ(After(seconds(1)), Names{"low-n1-1"}) << "it is, and is not evicted twice";
}

// Eight claims with as many constraints as Kubernetes admits, for GPUs that no node has.
TEST_F(DevicePreemptionTest, ClaimsThatTakeTooLongToJudgeAreToldAndCostLittle) {
  SchedulerAsks();
  Fill();
  PodRequest pod = APod("bomb").Priority(100).Request();
  for (int c = 0; c < 8; ++c) {
    DeviceClaim asks;
    DeviceWant want{.name = {},
                    .device_class = "gpu",
                    .selectors = {},
                    .count = 1,
                    .tolerations = {},
                    .tolerations_json = {}};
    DeviceConstraint constraint;
    constraint.attribute = "gpu.nvidia.com/uuid";
    for (int request = 0; request < 8; ++request) {
      asks.requests.push_back({"r" + std::to_string(request), {want}});
    }
    asks.constraints.assign(32, constraint);
    pod.claims.push_back("bomb-" + std::to_string(c));
    open_.Put({{"default/" + pod.claims.back(),
                {.asks = std::make_shared<const DeviceClaim>(std::move(asks))}}},
              false);
  }
  std::vector<ClusterEvent> nodes;
  std::vector<std::pair<std::string, NodeDevices>> devices;
  for (int i = 0; i < 1500; ++i) {
    NodeSpec spec = ANode("x" + std::to_string(i)).Gpus(64).Spec();
    spec.by_claims = {{kResource, std::vector<int>(64)}};
    std::iota(spec.by_claims[0].order.begin(), spec.by_claims[0].order.end(), 0);
    devices.emplace_back(spec.name, DevicesOf(spec.name));
    nodes.emplace_back(NodeUpserted{std::move(spec)});
  }
  ASSERT_TRUE(state_.Apply(nodes));
  devices_.Put(std::move(devices));
  Waits(pod);
  EXPECT_EQ(After(seconds(40)), Names());
  ASSERT_EQ(sink_.waits.size(), 1U) << "once";
  EXPECT_TRUE(sink_.waits[0].starts_with("bomb: ask for less in its ResourceClaims: "));
}

}  // namespace
}  // namespace berth::test::device_preemption_test
