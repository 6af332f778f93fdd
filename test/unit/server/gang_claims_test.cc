// SPDX-License-Identifier: Apache-2.0
//
// Gangs whose members get their devices by ResourceClaims: what filter says, and what is allocated.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "bench/replay/time/sim_clock.h"
#include "server/extender/extender.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "server/extender/gangs/table/gang_table.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::gang_claims_test {
namespace {

using std::chrono::seconds;
using Names = std::vector<std::string>;

constexpr char kDriver[] = "gpu.nvidia.com";

class Woken final : public PodWaker {
 public:
  bool Wake(const PodId& pod) override {
    names.push_back(pod.name);
    return true;
  }
  Names names;
};

class NewsSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
  void Record(const GangNews& news) override { texts.push_back(news.text); }
  Names texts;
};

class GangClaimsTest : public testing::Test {
 protected:
  GangClaimsTest() {
    DeviceClass gpu;
    gpu.name = "gpu";
    gpu.selectors = {"device.driver == 'gpu.nvidia.com'"};
    classes_.Put(gpu);
  }

  void Apply(const ClusterEvent& event) {
    ASSERT_TRUE(state_.Apply(std::span(&event, 1)).has_value());
  }
  void AddNode(const std::string& name, int gpus) {
    Apply(NodeUpserted{ANode(name).Cpu(64).Spec()});
    gpus_[name] = gpus;
    ShowDevices(name);
  }
  void ShowDevices(const std::string& name) {
    auto slice = std::make_shared<PublishedSlice>();
    slice->name = slice->pool = slice->node = name;
    slice->driver = kDriver;
    slice->slices_in_pool = 1;
    for (int i = 0; i < gpus_[name]; ++i) {
      slice->devices.push_back({.name = "gpu-" + std::to_string(i),
                                .seen = cel::Device(kDriver),
                                .taints = {},
                                .consumes = {}});
    }
    NodeDevices node{GatherPools({slice}), {}};
    for (const std::string& device : taken_[name]) node.taken.emplace(name, device);
    devices_.Put({{name, std::move(node)}});
    ++shown_;  // what a claim holds is news of the node
    Apply(NodeUpserted{ANode(name).Cpu(64).Labelled({{"shown", std::to_string(shown_)}}).Spec()});
  }

  static DeviceClaim Asks(int count, const std::string& selector = "true") {
    DeviceWant want{.name = {},
                    .device_class = "gpu",
                    .selectors = {selector},
                    .count = count,
                    .tolerations = {},
                    .tolerations_json = {}};
    return {{{"r", {want}}}};
  }
  void ShowClaim(const std::string& name, KnownClaim known) {
    open_.Put({{"default/" + name, std::move(known)}}, false);
  }
  PodRequest Member(const std::string& name, int size = 3, const Names& claims = {}) {
    PodRequest pod = APod(name).Cpu(1).Gang("berth:default/train").GangSize(size).Request();
    pod.claims = claims.empty() ? Names{name + "-gpus"} : claims;
    return pod;
  }
  // The API server shows it, with its claim.
  PodRequest Arrive(const std::string& name, int gpus, int size = 3) {
    const PodRequest pod = Member(name, size);
    ShowClaim(pod.claims[0], {.asks = std::make_shared<const DeviceClaim>(Asks(gpus))});
    Show(pod);
    return pod;
  }
  void Show(const PodRequest& pod) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod)});
  }

  FilterAnswer Ask(const PodRequest& pod, const Names& offered = {}) {
    const auto snapshot = state_.Current();
    std::vector<NodeIndex> candidates(snapshot->size());
    std::iota(candidates.begin(), candidates.end(), NodeIndex{0});
    if (!offered.empty()) {
      candidates.clear();
      for (const std::string& name : offered) candidates.push_back(snapshot->names().Find(name));
    }
    return extender_.Filter(extender_.Now(), pod, candidates);
  }
  // "a@n1 b@n1": whose claims are to be allocated where; else the nodes that fit, or why none does.
  std::string Filter(const PodRequest& pod, const Names& offered = {}) {
    const FilterAnswer answer = Ask(pod, offered);
    std::string text;
    if (!answer.allocate.empty()) {
      last_ = answer.allocate;
      // kube-scheduler waits for this one: its claims are to be the first.
      EXPECT_TRUE(answer.goes_on || last_.front().pod.uid == pod.id.uid) << pod.id.name;
      std::ranges::sort(last_, {}, [](const ClaimOrder& order) { return order.pod.name; });
      for (const ClaimOrder& order : last_) {
        text += (text.empty() ? "" : " ") + order.pod.name + "@" + order.node;
      }
      return text + (answer.goes_on ? ", and it goes on" : "");
    }
    if (!answer.fits) {
      return answer.nowhere.empty() ? std::string(TextOf(answer.reasons.front())) : answer.nowhere;
    }
    return std::to_string(std::ranges::count(answer.reasons, Reason::kFits)) + " nodes";
  }
  // It is asked about again when there is a plan: Look makes it.
  std::string Come(const PodRequest& pod, const Names& offered = {}) {
    EXPECT_EQ(Filter(pod, offered), kNoRoom);
    Pass(seconds(1));
    return Filter(pod, offered);
  }
  // What was to be allocated is.
  void Allocate(bool works = true) {
    if (works) {
      for (const ClaimOrder& order : last_) ShowAllocated(order);
    }
    extender_.Allocated(Member("any").gang.id, works);
  }
  void ShowAllocated(const ClaimOrder& order) {
    for (const std::string& claim : order.claims) {
      const auto known = open_.Find("default/" + claim);
      const auto count = known->asks->requests[0].wants[0].count;
      for (std::int64_t i = 0; i < count; ++i) {
        taken_[order.node].push_back("gpu-" + std::to_string(taken_[order.node].size()));
      }
      ShowClaim(claim, {.allocated = true, .node = order.node});
    }
    ShowDevices(order.node);
  }
  void ShowBound(const PodRequest& pod, const std::string& node) {
    Placement placement;
    placement.node = node;
    placement.cpu_milli = pod.shape.cpu_milli;
    Apply(PodBound{pod, placement});
    waiting_.Remove(pod.id.uid);
  }
  void Pass(Duration time) {
    clock_.Advance(time);
    extender_.LookAtGangs();
  }

  std::map<std::string, int> gpus_;
  std::map<std::string, Names> taken_;
  int shown_ = 0;
  std::vector<ClaimOrder> last_;
  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  OpenClaims open_;
  DeviceOffers devices_;
  DeviceClasses classes_;
  const GangClaims claims_{open_, devices_, classes_};
  NewsSink sink_;
  Woken waker_;
  ScriptedBinder binder_{[](const PodRequest&, const Placement&) -> Status { return {}; }};
  NodeDomains domains_{{{"rack", {"rack"}}}};
  GangTable gangs_{{state_, waiting_, domains_, nullptr, &claims_}};
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .domains = &domains_,
                      .behind_scheduler = true,
                      .gangs = &gangs_,
                      .waiting = &waiting_,
                      .waker = &waker_},
                     {.engine = EngineOf("best-fit"),
                      .reservation_time = seconds(30),
                      .gangs = {{"berth", "kubernetes"}, seconds(50)}}};
  const std::string kIncomplete{TextOf(Reason::kGangIncomplete)};
  const std::string kNoRoom{TextOf(Reason::kGangNoRoom)};
};

TEST_F(GangClaimsTest, NothingIsAllocatedBeforeAllAreThereAndThenAllIsAtOnce) {
  AddNode("n1", 4);
  AddNode("n2", 2);
  const PodRequest a = Arrive("a", 2), b = Arrive("b", 2);
  EXPECT_EQ(Filter(a), kIncomplete);
  EXPECT_EQ(Filter(b), kIncomplete);
  const PodRequest c = Arrive("c", 2);
  EXPECT_EQ(Come(c), "a@n1 b@n1 c@n2");
  EXPECT_EQ(Filter(a), kNoRoom) << "meanwhile";
  waker_.names.clear();
  Allocate();
  EXPECT_EQ(waker_.names, (Names{"a", "b", "c"}));
  EXPECT_EQ(sink_.texts.back(), "3 pods got devices by claims");
  EXPECT_EQ(Filter(a, {"n1"}), "1 nodes");
  EXPECT_EQ(Filter(c, {"n2"}), "1 nodes");
}

TEST_F(GangClaimsTest, AGangWithoutDevicesForAllGetsNoneAndWaitsForRoom) {
  AddNode("n1", 2);
  AddNode("n2", 2);
  taken_["n2"] = {"gpu-0"};
  ShowDevices("n2");
  const PodRequest a = Arrive("a", 2), b = Arrive("b", 1), c = Arrive("c", 1);
  EXPECT_EQ(Filter(a), kNoRoom);
  EXPECT_EQ(Filter(b), kNoRoom);
  EXPECT_EQ(Filter(c), kNoRoom);
  taken_["n2"].clear();
  ShowDevices("n2");
  Pass(seconds(1));
  EXPECT_EQ(waker_.names, (Names{"a", "b", "c"})) << "there is room now";
  EXPECT_EQ(Filter(b), "a@n1 b@n2 c@n2");
}

TEST_F(GangClaimsTest, ALostClaimGivesThePlanUpAndAnotherIsMadeAfterAPause) {
  AddNode("n1", 8);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1), c = Arrive("c", 1);
  EXPECT_EQ(Come(a), "a@n1 b@n1 c@n1");
  waker_.names.clear();
  Allocate(false);
  EXPECT_EQ(sink_.texts.back(), "devices for the claims of the pod's gang could not be allocated");
  EXPECT_EQ(Filter(a), kNoRoom) << "a pause";
  Pass(seconds(2));
  EXPECT_EQ(waker_.names, (Names{"a"})) << "who has come";
  EXPECT_EQ(Filter(a), "a@n1 b@n1 c@n1");
  Allocate();
  EXPECT_EQ(Filter(b, {"n1"}), "1 nodes");
}

TEST_F(GangClaimsTest, AGangThatLosesAgainAndAgainGoesPodByPod) {
  AddNode("n1", 8);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1), c = Arrive("c", 1);
  for (int i = 0; i < gangs::kMostLostClaims; ++i) {
    EXPECT_EQ(Come(a), "a@n1 b@n1 c@n1") << i;
    Allocate(false);
    clock_.Advance(seconds(61));
  }
  EXPECT_EQ(Filter(a), "1 nodes") << "for its claims alone";
}

TEST_F(GangClaimsTest, AfterARestartWhatIsAllocatedStaysAndTheRestFollows) {
  AddNode("n1", 2);
  AddNode("n2", 2);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 2), c = Arrive("c", 1);
  ShowAllocated({a.id, a.claims, "n2"});
  EXPECT_EQ(Come(b), "b@n1 c@n2");
  Allocate();
  EXPECT_EQ(Filter(a, {"n2"}), "1 nodes");
  EXPECT_EQ(Filter(b, {"n1"}), "1 nodes");
}

TEST_F(GangClaimsTest, TheOneThatHasItsDevicesGoesOnOnceTheOthersHaveTheirs) {
  AddNode("n1", 4);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 2), c = Arrive("c", 1);
  ShowAllocated({a.id, a.claims, "n1"});
  EXPECT_EQ(Come(a, {"n1"}), "b@n1 c@n1, and it goes on");
}

TEST_F(GangClaimsTest, AfterARestartWithoutRoomForTheRestItFitsNowhereAndIsAskedAbout) {
  AddNode("n1", 2);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 2), c = Arrive("c", 1);
  ShowAllocated({a.id, a.claims, "n1"});
  EXPECT_EQ(Come(b), kNoRoom);
  EXPECT_EQ(waker_.names, (Names{"a"})) << "kube-scheduler takes its device back then";
  EXPECT_EQ(Filter(a, {"n1"}), kNoRoom);
}

TEST_F(GangClaimsTest, DevicesOutlastThePlan) {
  AddNode("n1", 4);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1), c = Arrive("c", 1);
  EXPECT_EQ(Come(a), "a@n1 b@n1 c@n1");
  Allocate();
  Pass(seconds(120));
  EXPECT_EQ(gangs_.Views(clock_.Now())[0].planned, 0) << "nobody came";
  EXPECT_EQ(Filter(b, {"n1"}), "1 nodes");
  ShowBound(b, "n1");
  EXPECT_EQ(Filter(c, {"n1"}), "1 nodes");
}

TEST_F(GangClaimsTest, AMemberThatLosesItsDevicesLaterGetsOthers) {
  AddNode("n1", 4);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1), c = Arrive("c", 1);
  EXPECT_EQ(Come(a), "a@n1 b@n1 c@n1");
  Allocate();
  ShowBound(a, "n1");
  ShowBound(b, "n1");
  Pass(seconds(1));
  ShowClaim("c-gpus", {.asks = std::make_shared<const DeviceClaim>(Asks(1))});
  EXPECT_EQ(Filter(c), "c@n1") << "the gang only goes forward";
  Allocate();
  EXPECT_EQ(Filter(c, {"n1"}), "1 nodes");
}

TEST_F(GangClaimsTest, ANodeThatKubeSchedulerDoesNotOfferIsPlannedAround) {
  AddNode("n1", 3);
  AddNode("n2", 3);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1), c = Arrive("c", 1);
  EXPECT_EQ(Come(a, {"n2"}), kNoRoom) << "it was planned on the other one";
  Pass(seconds(1));
  EXPECT_EQ(Filter(a, {"n2"}).substr(0, 4), "a@n2");
}

TEST_F(GangClaimsTest, AClaimThatIsNotMadeYetIsWaitedFor) {
  AddNode("n1", 4);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1);
  PodRequest c = Member("c", 3, {""});
  Show(c);
  EXPECT_EQ(Filter(a), kNoRoom);
  Pass(seconds(1));
  EXPECT_EQ(waker_.names, Names{});
  c = Arrive("c", 1);
  Pass(seconds(1));
  EXPECT_EQ(waker_.names, (Names{"a"}));
  EXPECT_EQ(Filter(a), "a@n1 b@n1 c@n1");
}

TEST_F(GangClaimsTest, ClaimsThatBerthCannotChooseForAreLeftAsBefore) {
  AddNode("n1", 4);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1);
  PodRequest c = Member("c");
  Show(c);
  // Of another driver, or for what no device is.
  ShowClaim("c-gpus", {.asks = std::make_shared<const DeviceClaim>(Asks(1, "false"))});
  EXPECT_EQ(Come(c), "1 nodes") << "all are there";
  EXPECT_EQ(Filter(a), "1 nodes");
  EXPECT_EQ(Filter(b), "1 nodes");
}

TEST_F(GangClaimsTest, AClaimOfSeveralMembersIsLeftAsBefore) {
  AddNode("n1", 4);
  ShowClaim("one", {.asks = std::make_shared<const DeviceClaim>(Asks(1))});
  for (const char* name : {"a", "b", "c"}) Show(Member(name, 3, {"one"}));
  EXPECT_EQ(Filter(Member("a", 3, {"one"})), "1 nodes");
}

TEST_F(GangClaimsTest, AGangOfTooManyClaimsGoesPodByPod) {
  AddNode("n1", 4);
  const int size = static_cast<int>(GangClaims::kMostTogether) + 1;
  PodRequest last;
  for (int i = 0; i < size; ++i) last = Arrive("m" + std::to_string(i), 1, size);
  EXPECT_EQ(Filter(last), "1 nodes");
}

TEST_F(GangClaimsTest, AMemberWithoutDevicesWaitsForThoseWithClaims) {
  AddNode("n1", 4);
  PodRequest leader = APod("leader").Cpu(1).Gang("berth:default/train").GangSize(3).Request();
  Show(leader);
  EXPECT_EQ(Filter(leader), kIncomplete);
  const PodRequest a = Arrive("a", 1), b = Arrive("b", 1);
  EXPECT_EQ(Filter(leader), kNoRoom);
  EXPECT_EQ(Come(a), "a@n1 b@n1");
  Allocate();
  ShowBound(a, "n1");
  Pass(seconds(1));
  EXPECT_EQ(Filter(leader), "1 nodes");
}

}  // namespace
}  // namespace berth::test::gang_claims_test
