// SPDX-License-Identifier: Apache-2.0
//
// What the books hold of pods whose devices somebody saw being given.
#include "cluster/values/pod_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/node/given_grants.h"
#include "cluster/state/audit.h"
#include "cluster/state/cluster_state.h"
#include "test/support/builders.h"

namespace berth::test::given_devices_test {
namespace {

using Gpus = std::vector<int>;

const Instant kLater = Instant() + std::chrono::hours(1);

std::shared_ptr<const GivenDevices> Given(const Gpus& gpus, Evidence by = Evidence::kKubelet,
                                          const Gpus& unwell = {}) {
  GivenDevices given{.by = by};
  for (const int gpu : gpus) given.ids.push_back("GPU-" + std::to_string(gpu));
  for (const int gpu : unwell) given.unwell.push_back("GPU-" + std::to_string(gpu));
  std::ranges::sort(given.ids);
  std::ranges::sort(given.unwell);
  return std::make_shared<const GivenDevices>(std::move(given));
}

class GivenDevicesTest : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void Up(const ANode& node) { Apply(NodeUpserted{node.Spec()}); }
  void BindHere(const APod& pod, const Gpus& gpus) {
    ASSERT_TRUE(state_.Reserve(pod.Request(), pod.On("n", gpus), kLater));
    ASSERT_TRUE(state_.Confirm(pod.Request().id.uid));
  }
  // The API server shows it: planned on these GPUs by its annotation, and what it was given.
  void Shows(const APod& pod, const Gpus& planned, std::shared_ptr<const GivenDevices> given) {
    PodBound bound{pod.Request(), pod.On("n", planned), true};
    bound.given = std::move(given);
    Apply(bound);
  }
  void Gone(const APod& pod) { Apply(PodGone{pod.Request().id.uid}); }
  [[nodiscard]] PodRecord Record(const APod& pod) const {
    return *state_.FindPod(pod.Request().id.uid);
  }
  [[nodiscard]] Gpus GpusOf(const APod& pod) const {
    Gpus gpus;
    for (const auto& grant : Record(pod).placement.grants) gpus.push_back(grant.gpu);
    return gpus;
  }
  [[nodiscard]] Gpus Free() const {
    Gpus free;
    const auto snapshot = state_.Current();
    for (const GpuFree& gpu : snapshot->node(0).gpus()) free.push_back(gpu.milli);
    return free;
  }
  [[nodiscard]] const Node& TheNode() {
    snapshot_ = state_.Current();
    return snapshot_->node(0);
  }

  static ANode Plain(int gpus) { return ANode("n").Gpus(gpus).Named(""); }
  // With an agent that writes what it gave.
  static NodeSpec Carried(int gpus) {
    NodeSpec spec = Plain(gpus).Spec();
    spec.carries_out = true;
    return spec;
  }

  ClusterState state_;
  std::shared_ptr<const Snapshot> snapshot_;
  const APod a_ = APod("a").Whole(2);
  const APod b_ = APod("b").Whole(2);
};

TEST_F(GivenDevicesTest, APodHoldsWhatTheKubeletGaveItAndItsPlanIsFree) {
  Up(Plain(4));
  BindHere(a_, {0, 1});
  Shows(a_, {0, 1}, nullptr);
  EXPECT_EQ(Free(), (Gpus{0, 0, 1000, 1000})) << "the plan counts before the first status";
  Shows(a_, {0, 1}, Given({1, 3}));
  EXPECT_EQ(Free(), (Gpus{1000, 0, 1000, 0}));
  EXPECT_TRUE(Record(a_).on_other_gpus());
  Shows(a_, {0, 1}, nullptr);
  EXPECT_EQ(GpusOf(a_), (Gpus{1, 3})) << "a container that starts again has no status";
  Shows(a_, {2, 3}, nullptr);
  EXPECT_EQ(GpusOf(a_), (Gpus{1, 3})) << "an annotation says nothing against a status";
  EXPECT_EQ(state_.DisputeCount(), 0U);
  Gone(a_);
  EXPECT_EQ(Free(), (Gpus{1000, 1000, 1000, 1000}));
}

TEST_F(GivenDevicesTest, APodThatGotWhatWasPlannedIsNotOnOtherGpus) {
  Up(Plain(4));
  BindHere(a_, {0, 1});
  Shows(a_, {0, 1}, Given({1, 0}));
  EXPECT_EQ(GpusOf(a_), (Gpus{0, 1}));
  EXPECT_FALSE(Record(a_).on_other_gpus());
  EXPECT_EQ(Record(a_).evidence(), Evidence::kKubelet);
}

TEST_F(GivenDevicesTest, APodPastBerthIsWhereTheKubeletPutIt) {
  Up(Plain(4));
  Shows(a_, {}, nullptr);
  EXPECT_EQ(TheNode().unattributed(), 1);
  Shows(a_, {}, Given({0, 2}));
  EXPECT_EQ(Free(), (Gpus{0, 1000, 0, 1000}));
  EXPECT_EQ(TheNode().unattributed(), 0);
  EXPECT_FALSE(Record(a_).on_other_gpus()) << "nobody planned it";
}

// As kubelets before 1.38 may.
TEST_F(GivenDevicesTest, AGpuThatTheKubeletGaveTwiceIsADoubleGrant) {
  Up(Plain(4));
  BindHere(a_, {0, 1});
  BindHere(b_, {2, 3});
  Shows(a_, {0, 1}, Given({0, 1}));
  Shows(b_, {2, 3}, Given({1, 3}));
  EXPECT_EQ(Audit(state_.Everything(), Instant(), Duration(0)).double_grants, 1U);
}

// Pods swap: until the second one's status comes, it holds two GPUs that nobody else has.
TEST_F(GivenDevicesTest, APlanOnGpusThatAnotherPodWasGivenCountsElsewhere) {
  Up(Plain(6));
  BindHere(a_, {0, 1});
  BindHere(b_, {2, 3});
  Shows(a_, {0, 1}, Given({2, 3}));
  EXPECT_EQ(Free(), (Gpus{1000, 1000, 0, 0, 0, 0})) << "b is assumed on the highest that are idle";
  EXPECT_EQ(TheNode().unattributed(), 1);
  EXPECT_EQ(Audit(state_.Everything(), Instant(), Duration(0)).double_grants, 0U);
  Shows(b_, {2, 3}, Given({0, 1}));
  EXPECT_EQ(Free(), (Gpus{0, 0, 0, 0, 1000, 1000}));
  EXPECT_EQ(TheNode().unattributed(), 0);
  EXPECT_EQ(state_.DisputeCount(), 0U);
}

TEST_F(GivenDevicesTest, APlanCountsAgainWhenWhoWasGivenItsGpusLeaves) {
  Up(Plain(4));
  BindHere(b_, {2, 3});
  Shows(a_, {0, 1}, Given({1, 2}));
  EXPECT_EQ(Free(), (Gpus{0, 0, 0, 0})) << "b keeps 3, and one more is assumed: none is left free";
  Gone(a_);
  EXPECT_EQ(Free(), (Gpus{1000, 1000, 0, 0}));
  EXPECT_EQ(TheNode().unattributed(), 0);
}

TEST_F(GivenDevicesTest, AReservationOnAGivenGpuTakesNoRoomTwice) {
  Up(Plain(4));
  ASSERT_TRUE(state_.Reserve(b_.Request(), b_.On("n", {0, 1}), kLater));
  Shows(a_, {2, 3}, Given({0, 1}));
  EXPECT_EQ(Free(), (Gpus{0, 0, 0, 0}));
  EXPECT_FALSE(
      state_.Reserve(APod("c").Whole(1).Request(), APod("c").Whole(1).On("n", {3}), kLater));
  ASSERT_TRUE(state_.Confirm("uid-b"));
  Shows(b_, {0, 1}, nullptr);
  EXPECT_EQ(Free(), (Gpus{0, 0, 0, 0}));
  EXPECT_EQ(state_.DisputeCount(), 0U) << "it is not b's fault";
  Shows(b_, {0, 1}, Given({2, 3}));
  EXPECT_EQ(Free(), (Gpus{0, 0, 0, 0}));
  EXPECT_EQ(TheNode().unattributed(), 0);
}

TEST_F(GivenDevicesTest, WithoutAnAgentOnTheNodeNobodyHasWrittenForIt) {
  Up(Plain(6));
  BindHere(a_, {0, 1});
  Shows(a_, {0, 1}, Given({2, 3}, Evidence::kAgent));
  EXPECT_EQ(GpusOf(a_), (Gpus{0, 1}));
  Apply(NodeUpserted{Carried(6)});
  EXPECT_EQ(GpusOf(a_), (Gpus{2, 3}));
  Up(Plain(6));
  EXPECT_EQ(GpusOf(a_), (Gpus{2, 3})) << "the agent is away for a moment";
}

TEST_F(GivenDevicesTest, TheAgentsWordIsWeakerThanTheKubelets) {
  Apply(NodeUpserted{Carried(6)});
  BindHere(a_, {0, 1});
  Shows(a_, {0, 1}, Given({2, 3}, Evidence::kAgent));
  EXPECT_EQ(GpusOf(a_), (Gpus{2, 3}));
  Shows(a_, {0, 1}, Given({4, 5}));
  EXPECT_EQ(GpusOf(a_), (Gpus{4, 5}));
  Shows(a_, {0, 1}, Given({2, 3}, Evidence::kAgent));
  EXPECT_EQ(GpusOf(a_), (Gpus{4, 5}));
}

// A tenant may write the annotation of its own pod: it takes nothing from what others were given,
// and the pod holds as many GPUs as before.
TEST_F(GivenDevicesTest, AForgedAnnotationFreesNoGpu) {
  Apply(NodeUpserted{Carried(8)});
  Shows(a_, {0, 1}, Given({0, 1}));
  BindHere(b_, {2, 3});
  Shows(b_, {2, 3}, Given({0, 1}, Evidence::kAgent));
  EXPECT_EQ(Free(), (Gpus{0, 0, 1000, 1000, 1000, 1000, 0, 0}));
  EXPECT_EQ(TheNode().unattributed(), 1);
  const APod c = APod("c").Whole(2);
  Shows(b_, {2, 3}, Given({4, 5}, Evidence::kAgent));
  Shows(c, {}, Given({5, 6}, Evidence::kAgent));
  int free = 0;
  for (const int milli : Free()) free += milli;
  EXPECT_EQ(free, 2000) << "six GPUs are held";
}

TEST_F(GivenDevicesTest, WhatTheNodeDoesNotKnowLeavesThePlan) {
  Up(Plain(4));
  BindHere(a_, {0, 1});
  for (const Gpus& unknown : {Gpus{7, 8}, Gpus{2}, Gpus{2, 9}}) {
    Shows(a_, {0, 1}, Given(unknown));
    const Gpus expected = unknown == Gpus{2} ? Gpus{0, 2} : Gpus{0, 1};
    EXPECT_EQ(GpusOf(a_), expected);
    Gone(a_);
    BindHere(a_, {0, 1});
  }
}

TEST_F(GivenDevicesTest, AnAgentThatHandsOutGpusByItsOwnRecordIsBelievedInstead) {
  Up(ANode("n").Gpus(4).Named("koordinator"));
  BindHere(a_, {0, 1});
  Shows(a_, {0, 1}, Given({2, 3}));
  EXPECT_EQ(GpusOf(a_), (Gpus{0, 1}));
}

TEST_F(GivenDevicesTest, ANodeThatFlapsOrComesLateChangesNothing) {
  Shows(a_, {0, 1}, Given({1, 2}));
  EXPECT_EQ(GpusOf(a_), (Gpus{0, 1})) << "nobody knows which they are";
  Up(Plain(4));
  EXPECT_EQ(Free(), (Gpus{1000, 0, 0, 1000}));
  for (const int gpus : {0, 4}) {
    Up(Plain(gpus));
    EXPECT_EQ(GpusOf(a_), (Gpus{1, 2})) << gpus;
  }
  Up(ANode("n").Gpus(4));  // it does not say its UUIDs any more
  EXPECT_EQ(Free(), (Gpus{1000, 0, 0, 1000}));
  Apply(NodeRemoved{"n"});
  Up(Plain(4));
  EXPECT_EQ(Free(), (Gpus{1000, 0, 0, 1000}));
  EXPECT_TRUE(Record(a_).on_other_gpus());
  EXPECT_EQ(state_.DisputeCount(), 0U);
}

TEST_F(GivenDevicesTest, ARestartedKubeletNumbersTheGpusAnew) {
  Up(Plain(4));
  Shows(a_, {0, 1}, Given({0, 1}));
  NodeSpec spec = Plain(4).Spec();
  std::ranges::reverse(spec.gpus);
  Apply(NodeUpserted{spec});
  EXPECT_EQ(Free(), (Gpus{1000, 1000, 0, 0}));
}

TEST_F(GivenDevicesTest, AContainerThatHasEndedLeavesItsGpusWithThePod) {
  Up(Plain(4));
  Shows(a_, {0, 1}, Given({2, 3}));
  Shows(a_, {0, 1}, Given({3}));
  EXPECT_EQ(GpusOf(a_), (Gpus{2, 3}));
}

TEST_F(GivenDevicesTest, WhatIsSaidAgainPublishesNothing) {
  Up(Plain(4));
  Shows(a_, {0, 1}, Given({2, 3}));
  const auto before = state_.Current();
  for (int i = 0; i < 3; ++i) Shows(a_, {0, 1}, Given({2, 3}));
  EXPECT_EQ(state_.Current(), before);
}

// The kubelet counts the GPU out as well: it is closed once, by its name.
TEST_F(GivenDevicesTest, AnUnwellGpuIsClosedByName) {
  Up(Plain(4));
  Shows(a_, {0, 1}, Given({0, 1}, Evidence::kKubelet, {1}));
  EXPECT_FALSE(TheNode().spec().gpus[1].healthy);
  EXPECT_EQ(TheNode().healthy_gpus(), 3);
  NodeSpec spec = Plain(4).Spec();
  spec.missing = 1;
  Apply(NodeUpserted{spec});
  EXPECT_EQ(TheNode().healthy_gpus(), 3) << "the missing one is GPU 1";
  EXPECT_TRUE(TheNode().IsOpen(2) && TheNode().IsOpen(3));
  Gone(a_);
  EXPECT_EQ(TheNode().closed(), GpuBit(1)) << "it stays unwell when its pod has gone";
  Apply(GpuPodsRefused{"n", true, nullptr});
  Apply(GpuPodsRefused{"n", false, nullptr});
  EXPECT_EQ(TheNode().closed(), GpuBit(1));
  spec.missing = 0;
  Apply(NodeUpserted{spec});
  EXPECT_EQ(TheNode().closed(), 0U);
  EXPECT_EQ(TheNode().spec(), spec);
}

TEST_F(GivenDevicesTest, AGpuThatIsWellAgainIsOpenAgain) {
  NodeSpec spec = Plain(4).Spec();
  spec.missing = 2;
  Shows(a_, {0, 1}, Given({0, 1}, Evidence::kKubelet, {1}));
  Apply(NodeUpserted{spec});
  EXPECT_EQ(TheNode().spec().missing, 1);
  Apply(NodeRemoved{"n"});
  Apply(NodeUpserted{spec});
  EXPECT_EQ(TheNode().spec().missing, 1);
  Shows(a_, {0, 1}, Given({0, 1}));
  EXPECT_EQ(TheNode().spec(), spec);
}

TEST(GivenGrantsTest, WhoIsWeakerIsNotHeard) {
  const auto kubelets = Given({1, 2}), agents = Given({3, 4}, Evidence::kAgent);
  EXPECT_EQ(Strongest(nullptr, agents), agents);
  EXPECT_EQ(Strongest(agents, kubelets), kubelets);
  EXPECT_EQ(Strongest(kubelets, agents), kubelets);
  EXPECT_EQ(Strongest(kubelets, nullptr), kubelets);
  EXPECT_EQ(Strongest(kubelets, Given({1, 2})), kubelets) << "the same object, not a copy";
  EXPECT_EQ(Strongest(kubelets, Given({2, 3}))->ids, Given({2, 3})->ids);
  const auto sick = Strongest(kubelets, Given({2}, Evidence::kKubelet, {2}));
  EXPECT_EQ(*sick, *Given({1, 2}, Evidence::kKubelet, {2}));
  EXPECT_EQ(*Strongest(sick, Given({2})), *kubelets);
}

// --- any order

struct TruePod {
  APod pod;
  Gpus planned;
  std::shared_ptr<const GivenDevices> given;
};

// What any order of the same facts has to end in.
NodeSpec PlainNode() {
  NodeSpec spec = ANode("n").Gpus(8).Named("").Spec();
  spec.carries_out = true;
  return spec;
}

std::vector<ClusterEvent> EventsOf(const std::vector<TruePod>& pods) {
  std::vector<ClusterEvent> events;
  for (const TruePod& pod : pods) {
    PodBound bound{pod.pod.Request(), pod.pod.On("n", pod.planned), true};
    events.emplace_back(bound);
    if (pod.given == nullptr) continue;
    bound.given = pod.given;
    events.emplace_back(bound);
  }
  return events;
}

// Pods that are given disjoint sets, planned on others that are disjoint too.
std::vector<TruePod> RandomPods(Random& random) {
  Gpus plan = {0, 1, 2, 3, 4, 5, 6, 7}, truth = plan;
  for (Gpus* const order : {&plan, &truth}) {
    for (std::size_t i = order->size(); i > 1; --i)
      std::swap((*order)[i - 1], (*order)[random.Below(i)]);
  }
  std::vector<TruePod> pods;
  for (std::size_t at = 0, i = 0; at < plan.size(); ++i) {
    const std::size_t size = std::min<std::size_t>(1 + random.Below(3), plan.size() - at);
    const auto part = [&](const Gpus& all) {
      Gpus gpus(all.begin() + static_cast<std::ptrdiff_t>(at),
                all.begin() + static_cast<std::ptrdiff_t>(at + size));
      std::ranges::sort(gpus);
      return gpus;
    };
    const auto by = random.Below(4) == 0 ? Evidence::kAgent : Evidence::kKubelet;
    pods.push_back({APod("p" + std::to_string(i)).Whole(static_cast<int>(size)), part(plan),
                    random.Below(4) == 0 ? nullptr : Given(part(truth), by)});
    at += size;
  }
  return pods;
}

// After every step as many GPUs are free as pods do not hold, and none is held twice.
void ExpectSound(const ClusterState& state, int step) {
  const auto snapshot = state.Current();
  if (snapshot->size() == 0) return;
  int held = 0, free = 0;
  for (const PodRecord& pod : state.Everything().pods) held += pod.pod.shape.gpu_count();
  for (const GpuFree& gpu : snapshot->node(0).gpus()) {
    free += gpu.milli;
    EXPECT_GE(gpu.milli, 0) << step;
  }
  EXPECT_EQ(free, (8 - held) * kMilliPerGpu) << step;
  const AuditReport report = Audit(state.Everything(), Instant(), Duration(0));
  EXPECT_EQ(report.double_grants, 0U) << step;
  EXPECT_EQ(report.differences, 0U) << step;
}

TEST(GivenPropertyTest, WhateverTheOrderNoGpuIsHeldTwiceAndTheEndIsTheSame) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    const std::vector<TruePod> pods = RandomPods(random);
    ClusterState state;
    std::vector<ClusterEvent> events = EventsOf(pods);
    // Of one pod the order stays; the node comes at any time, and may go and come.
    for (int i = 0; i < 3; ++i) {
      const std::size_t at = random.Below(events.size() + 1);
      events.insert(events.begin() + static_cast<std::ptrdiff_t>(at), NodeUpserted{PlainNode()});
    }
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_TRUE(state.Apply(std::span(&events[i], 1)));
      ExpectSound(state, static_cast<int>(i));
      if (random.Below(5) == 0) {
        const ClusterEvent gone = NodeRemoved{"n"}, back = NodeUpserted{PlainNode()};
        ASSERT_TRUE(state.Apply(std::span(&gone, 1)));
        ASSERT_TRUE(state.Apply(std::span(&back, 1)));
        ExpectSound(state, static_cast<int>(i));
      }
    }
    for (const TruePod& pod : pods) {
      if (pod.given == nullptr) continue;
      const auto record = state.FindPod(pod.pod.Request().id.uid);
      ASSERT_TRUE(record->planned) << seed;
      Gpus gpus;
      for (const auto& grant : record->placement.grants) gpus.push_back(grant.gpu);
      for (std::size_t i = 0; i < gpus.size(); ++i) {
        EXPECT_NE(std::ranges::find(pod.given->ids, "GPU-" + std::to_string(gpus[i])),
                  pod.given->ids.end());
      }
    }
    while (!events.empty()) {  // and they go, in any order
      for (const TruePod& pod : pods) {
        const ClusterEvent gone = PodGone{pod.pod.Request().id.uid};
        ASSERT_TRUE(state.Apply(std::span(&gone, 1)));
        ExpectSound(state, -1);
      }
      break;
    }
  }
}

// After a restart a list shows every pod with what it was given, in any order.
TEST(GivenPropertyTest, ARestartFindsTheSameBooks) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const std::vector<TruePod> pods = RandomPods(random);
    std::vector<ClusterEvent> events;
    for (const TruePod& pod : pods) {
      PodBound bound{pod.pod.Request(), pod.pod.On("n", pod.planned), true};
      bound.given = pod.given;
      events.emplace_back(std::move(bound));
    }
    events.emplace_back(NodeUpserted{PlainNode()});
    ClusterState first;
    ASSERT_TRUE(first.Apply(events));
    for (int i = 0; i < 3; ++i) {
      for (std::size_t n = events.size(); n > 1; --n) {
        std::swap(events[n - 1], events[random.Below(n)]);
      }
      ClusterState again;
      ASSERT_TRUE(again.Apply(events));
      ExpectSound(again, i);
      EXPECT_EQ(again.Current()->node(0).gpus().size(), first.Current()->node(0).gpus().size());
      for (std::size_t gpu = 0; gpu < 8; ++gpu) {
        EXPECT_EQ(again.Current()->node(0).gpus()[gpu], first.Current()->node(0).gpus()[gpu])
            << seed;
      }
    }
  }
}

}  // namespace
}  // namespace berth::test::given_devices_test
