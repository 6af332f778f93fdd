// SPDX-License-Identifier: Apache-2.0
//
// Which devices the books believe when a pod's annotation names them.
#include "cluster/state/device_disputes.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::device_disputes_test {
namespace {

using Gpus = std::vector<int>;

const Instant kLater = Instant() + std::chrono::hours(1);

class DeviceDisputesTest : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void Up(const ANode& node) { Apply(NodeUpserted{node.Spec()}); }
  // The API server shows the pod bound, with an annotation that says these GPUs.
  void Says(const APod& pod, const Gpus& gpus) {
    Apply(PodBound{pod.Request(), pod.On("n", gpus), true});
  }
  void BindHere(const APod& pod, const Gpus& gpus) {
    ASSERT_TRUE(state_.Reserve(pod.Request(), pod.On("n", gpus), kLater));
    ASSERT_TRUE(state_.Confirm(pod.Request().id.uid));
  }
  [[nodiscard]] Gpus GpusOf(const APod& pod) const {
    Gpus gpus;
    const auto held = state_.FindPod(pod.Request().id.uid);
    for (const auto& grant : held->placement.grants) gpus.push_back(grant.gpu);
    return gpus;
  }
  // Free thousandths of each GPU.
  [[nodiscard]] Gpus Free() const {
    Gpus free;
    const auto snapshot = state_.Current();
    for (const GpuFree& gpu : snapshot->node(0).gpus()) free.push_back(gpu.milli);
    return free;
  }
  [[nodiscard]] std::vector<std::string> Problems() const {
    std::vector<std::string> problems;
    for (const auto& dispute : state_.Disputes()) {
      problems.push_back(dispute.pod.name + " " + dispute.problem);
    }
    return problems;
  }
  using Texts = std::vector<std::string>;

  ClusterState state_;
  const APod a_ = APod("a").Whole(1);
  const APod b_ = APod("b").Whole(1);
};

TEST_F(DeviceDisputesTest, APodBoundByBerthKeepsItsGpuDespiteItsAnnotation) {
  Up(ANode("n").Gpus(4));
  BindHere(a_, {0});
  Says(a_, {0});
  EXPECT_EQ(Problems(), Texts());
  for (const Gpus& forged : {Gpus{1}, Gpus{63}, Gpus{}}) {
    Says(a_, forged);
    EXPECT_EQ(GpusOf(a_), Gpus{0});
    EXPECT_EQ(Free(), (Gpus{0, 1000, 1000, 1000}));
    EXPECT_EQ(Problems().size(), 1U);
  }
  EXPECT_EQ(Problems(), (Texts{"a says no device on node n, but Berth knows it to have GPU 0"}));
  Says(a_, {0});
  EXPECT_EQ(Problems(), Texts()) << "it was mended";
}

TEST_F(DeviceDisputesTest, WhatWasSaidFirstIsKept) {
  Up(ANode("n").Gpus(4));
  Says(a_, {2});
  EXPECT_EQ(GpusOf(a_), Gpus{2});
  Says(a_, {1});
  EXPECT_EQ(GpusOf(a_), Gpus{2});
  EXPECT_EQ(Problems(), (Texts{"a says GPU 1 on node n, but Berth knows it to have GPU 2"}));
  Apply(PodGone{"uid-a"});
  EXPECT_EQ(Problems(), Texts());
  EXPECT_EQ(Free(), (Gpus{1000, 1000, 1000, 1000}));
}

// A share by compute takes as much of the GPU's memory; how much that is, its node says.
TEST_F(DeviceDisputesTest, AShareOnAnUnknownNodeKeepsItsGpuDespiteItsAnnotation) {
  const APod share = APod("share").Share(800);
  Placement said = share.On("late", {});
  said.grants = {{.gpu = 2, .milli = 800, .memory_mib = 0, .memory_milli = 800}};
  Apply(PodBound{share.Request(), said, true});
  Placement other = said;
  other.grants.front().gpu = 1;
  for (const Placement& forged : {share.On("late", {}), other}) {
    Apply(PodBound{share.Request(), forged, true});
    EXPECT_EQ(GpusOf(share), Gpus{2});
  }
  for (const int gpus : {4, 0, 4}) {  // the device plugin is restarted
    Apply(NodeUpserted{ANode("late").Gpus(gpus).Spec()});
    EXPECT_EQ(GpusOf(share), Gpus{2}) << gpus;
  }
}

TEST_F(DeviceDisputesTest, WhatElseChangesOfAPodIsTakenAlsoWhenItsDevicesAreNot) {
  Up(ANode("n").Gpus(2).Cpu(16));
  APod pod = APod("a").Whole(1).Cpu(4);
  Says(pod, {0});
  Says(pod.Cpu(6), {1});  // resized in place
  EXPECT_EQ(state_.FindPod("uid-a")->placement.cpu_milli, 6000);
  EXPECT_EQ(GpusOf(pod), Gpus{0});
}

TEST_F(DeviceDisputesTest, ADisputedGpuStaysWithItsHolder) {
  Up(ANode("n").Gpus(4));
  BindHere(a_, {0});
  Says(b_, {0});
  EXPECT_EQ(GpusOf(a_), Gpus{0});
  EXPECT_EQ(GpusOf(b_), Gpus());
  EXPECT_EQ(Free(), (Gpus{0, 1000, 1000, 0})) << "it has one, and nobody knows which";
  EXPECT_EQ(Problems(),
            (Texts{"b says GPU 0 on node n, but pod default/a holds 1000 milli of GPU 0"}));
}

TEST_F(DeviceDisputesTest, ADisputedAnnotationStillHoldsFreeDevices) {
  Up(ANode("n").Gpus(4));
  BindHere(a_, {1});
  Says(APod("pair").Whole(2), {1, 2});
  EXPECT_EQ(Free(), (Gpus{1000, -1000, 0, 1000}));
  BindHere(APod("little").Share(200), {0});
  Says(APod("big").Share(900), {0});
  EXPECT_EQ(Free()[0], -100) << "if the little one has left, nothing else fits beside it";
  EXPECT_EQ(Problems().size(), 2U);
}

TEST_F(DeviceDisputesTest, WhatOthersHoldNoLongerWhollyIsHeldAllTheSame) {
  Up(ANode("n").Gpus(4));
  const APod part = APod("part").Share(400);
  ASSERT_TRUE(state_.Reserve(part.Request(), part.On("n", {0}), kLater));  // and in doubt
  const APod three = APod("three").Whole(3);
  Apply(PodBound{three.Request(), three.On("n", {0, 1, 2})});
  const APod pair = APod("pair").Whole(2);
  Says(pair, {0, 1});
  EXPECT_EQ(GpusOf(pair), Gpus());
  Apply(PodGone{"uid-three"});
  EXPECT_EQ(GpusOf(pair), (Gpus{0, 1})) << "the share alone does not keep others off";
  EXPECT_EQ(Problems().size(), 1U);
  EXPECT_TRUE(state_.Forget("uid-part"));
  EXPECT_EQ(Free(), (Gpus{0, 0, 1000, 1000}));
  EXPECT_EQ(Problems(), Texts());
}

TEST_F(DeviceDisputesTest, WhatWasNotBelievedIsOnceTheOtherPodHasLeft) {
  Up(ANode("n").Gpus(4));
  Says(a_, {0});
  Says(b_, {0});  // its event came before that of the deletion
  Apply(PodGone{"uid-a"});
  EXPECT_EQ(GpusOf(b_), Gpus{0});
  EXPECT_EQ(Free(), (Gpus{0, 1000, 1000, 1000}));
  EXPECT_EQ(Problems(), Texts());
}

TEST_F(DeviceDisputesTest, TheFirstAnnotationIsBelievedEvenAfterItWasOverwritten) {
  Up(ANode("n").Gpus(4));
  Says(a_, {0});
  Says(b_, {0});
  for (const Gpus& forged : {Gpus{}, Gpus{63}}) {
    Says(b_, forged);
    EXPECT_EQ(GpusOf(b_), Gpus());
    EXPECT_EQ(Problems().size(), 1U);
  }
  Apply(PodGone{"uid-a"});
  EXPECT_EQ(GpusOf(b_), Gpus{0});
}

TEST_F(DeviceDisputesTest, AnAnnotationThatCouldNotBeBelievedCanBeMended) {
  Up(ANode("n").Gpus(4));
  Says(a_, {0});
  Says(b_, {0});
  Says(b_, {1});
  EXPECT_EQ(GpusOf(b_), Gpus{1});
  EXPECT_EQ(Problems(), Texts());
}

TEST_F(DeviceDisputesTest, SharesOfAGpuThatTogetherFitAreBelieved) {
  Up(ANode("n").Gpus(1));
  Says(APod("x").Share(600), {0});
  Says(APod("y").Share(400), {0});
  EXPECT_EQ(Problems(), Texts());
  EXPECT_EQ(Free(), Gpus{0});
  Says(APod("z").Share(1), {0});
  EXPECT_EQ(
      Problems(),
      (Texts{"z says GPU 0 (1 milli) on node n, but pod default/x holds 600 milli of GPU 0"}));
}

TEST_F(DeviceDisputesTest, AGpuThatTheNodeDoesNotHaveHidesNothing) {
  for (const bool node_first : {true, false}) {
    SCOPED_TRACE(node_first);
    ClusterState fresh;
    const ClusterEvent node = NodeUpserted{ANode("n").Gpus(2).Spec()};
    const ClusterEvent pod = PodBound{a_.Request(), a_.On("n", {63}), true};
    for (const ClusterEvent* event : {node_first ? &node : &pod, node_first ? &pod : &node}) {
      ASSERT_TRUE(fresh.Apply(std::span(event, 1)));
    }
    EXPECT_EQ(fresh.Current()->node(0).free_gpu_milli(), 1000);
    ASSERT_EQ(fresh.Disputes().size(), 1U);
    EXPECT_EQ(fresh.Disputes()[0].problem, "says GPU 63 on node n, but the node has 2 GPUs");
  }
}

TEST_F(DeviceDisputesTest, GpusThatComeBackToANodeAreThoseOfItsPods) {
  Says(a_, {3});
  Up(ANode("n").Gpus(0));  // its driver is being replaced
  EXPECT_EQ(Problems().size(), 1U);
  Up(ANode("n").Gpus(4));
  EXPECT_EQ(GpusOf(a_), Gpus{3});
  EXPECT_EQ(Problems(), Texts());
}

TEST_F(DeviceDisputesTest, APodThatSaidNothingMaySayItLater) {
  Up(ANode("n").Gpus(4));
  Says(a_, {});
  EXPECT_EQ(Free(), (Gpus{1000, 1000, 1000, 0})) << "assumed";
  Says(a_, {1});
  EXPECT_EQ(Free(), (Gpus{1000, 0, 1000, 1000})) << "known";
  EXPECT_EQ(Problems(), Texts());
}

TEST_F(DeviceDisputesTest, AReservationGivesWayToWhatAnEarlierBindingSays) {
  Up(ANode("n").Gpus(4));
  ASSERT_TRUE(state_.Reserve(a_.Request(), a_.On("n", {2}), kLater));
  Says(a_, {1});
  EXPECT_EQ(GpusOf(a_), Gpus{1});
  BindHere(b_, {3});
  const APod c = APod("c").Whole(1);
  ASSERT_TRUE(state_.Reserve(c.Request(), c.On("n", {2}), kLater));
  Says(c, {3});
  EXPECT_EQ(GpusOf(c), Gpus{2}) << "but not to a GPU that another pod has";
  EXPECT_EQ(Problems().size(), 1U);
}

TEST(DevicesText, NamesTheFirstDevicesAndCountsTheOthers) {
  EXPECT_EQ(DevicesText(APod("p").Whole(2).On("n", {0, 3})), "GPU 0, GPU 3");
  EXPECT_EQ(DevicesText(APod("p").Whole(10).On("n", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})),
            "GPU 0, GPU 1, GPU 2, GPU 3, GPU 4, GPU 5, GPU 6, GPU 7 and 2 more");
}

// It was bound by Berth, and somebody took the annotation away before this process began.
TEST_F(DeviceDisputesTest, APodWhoseDevicesAnnotationIsGoneIsDisputed) {
  const auto lacks = [this](const APod& pod) {
    Apply(PodBound{.pod = pod.Request(),
                   .placement = pod.On("n", {}),
                   .devices_annotated = true,
                   .lacks_devices = true});
  };
  lacks(a_);
  EXPECT_EQ(Problems(), Texts()) << "its node is not known";
  Up(ANode("n").Gpus(2));
  EXPECT_EQ(Problems(),
            (Texts{"a is missing, although Berth chose the pod's devices (berth.dev/decision)"}));
  EXPECT_EQ(Free(), (Gpus{1000, 0})) << "it has one, and nobody knows which";
  Says(a_, {0});
  EXPECT_EQ(Problems(), Texts()) << "it was mended";
  EXPECT_EQ(Free(), (Gpus{0, 1000}));
  lacks(a_);
  EXPECT_EQ(GpusOf(a_), Gpus{0}) << "now it is known";
  EXPECT_EQ(Problems().size(), 1U);
  Apply(PodGone{"uid-a"});
  EXPECT_EQ(Problems(), Texts());
}

TEST_F(DeviceDisputesTest, APodOnPlacesHasNoDevicesThatItCouldName) {
  NodeSpec node = ANode("n").Spec();
  node.places = {.count = 4, .gpus = 1};
  Apply(NodeUpserted{node});
  Apply(PodBound{.pod = a_.Request(),
                 .placement = a_.On("n", {}),
                 .devices_annotated = true,
                 .lacks_devices = true});
  EXPECT_EQ(Problems(), Texts());
  Up(ANode("n").Gpus(0));  // its device plugin starts anew
  EXPECT_EQ(Problems(), Texts());
}

TEST_F(DeviceDisputesTest, AReservedPodKeepsItsDevicesAlsoIfItsAnnotationIsGone) {
  Up(ANode("n").Gpus(4));
  ASSERT_TRUE(state_.Reserve(a_.Request(), a_.On("n", {2}), kLater));
  Apply(PodBound{.pod = a_.Request(),
                 .placement = a_.On("n", {}),
                 .devices_annotated = true,
                 .lacks_devices = true});
  EXPECT_EQ(GpusOf(a_), Gpus{2});
  EXPECT_EQ(Problems().size(), 1U);
}

// Anybody may create pods with spec.nodeName and an annotation.
TEST_F(DeviceDisputesTest, ThousandsThatNameOneGpuCostEachOtherNothing) {
  constexpr std::uint64_t kPods = 3'000;
  const auto pod = [](std::uint64_t i) { return APod("p" + std::to_string(i)).Whole(1); };
  for (const bool is_known : {false, true}) {
    SCOPED_TRACE(is_known);
    if (is_known) Up(ANode("n").Gpus(2));
    const std::uint64_t before = state_.DisputeChecks();
    for (std::uint64_t i = 0; i < kPods; ++i) Says(pod(i), {0});
    EXPECT_LE(state_.DisputeChecks() - before, kPods) << "one check a pod";
    EXPECT_EQ(state_.DisputeCount(), is_known ? kPods - 1 : 0U);
    const std::uint64_t full = state_.DisputeChecks();
    Apply(PodGone{"uid-p1"});
    EXPECT_EQ(state_.DisputeChecks(), full) << "it held nothing that others wait for";
    Apply(PodGone{"uid-p0"});
    EXPECT_EQ(state_.DisputeChecks() - full, 1U) << "the next one has it, the others have not";
    for (std::uint64_t i = 0; i < kPods; ++i) Apply(PodGone{pod(i).Request().id.uid});
    EXPECT_LE(state_.DisputeChecks() - full, kPods) << "at most one check for each that left";
    EXPECT_EQ(state_.DisputeCount(), 0U);
  }
}

TEST_F(DeviceDisputesTest, OnlyThoseThatNameTheGpuThatCameFreeAreReconsidered) {
  Up(ANode("n").Gpus(3));
  BindHere(a_, {0});
  BindHere(b_, {1});
  Says(APod("of-0").Whole(1), {0});
  Says(APod("of-1").Whole(1), {1});
  const std::uint64_t before = state_.DisputeChecks();
  Apply(PodGone{"uid-b"});
  EXPECT_EQ(state_.DisputeChecks() - before, 1U);
  EXPECT_EQ(GpusOf(APod("of-1")), Gpus{1});
  EXPECT_EQ(GpusOf(APod("of-0")), Gpus());
}

TEST_F(DeviceDisputesTest, APodThatNamesADeviceInVainIsReportedOnceItsNodeIsKnown) {
  Says(a_, {0});
  Says(b_, {0});
  EXPECT_TRUE(state_.TakeDisputeChanges().empty() || Problems().empty());
  EXPECT_EQ(state_.DisputeCount(), 0U) << "there may be no such node";
  Up(ANode("n").Gpus(2));
  const std::vector<DisputeChange> changes = state_.TakeDisputeChanges();
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].uid, "uid-b");
  ASSERT_TRUE(changes[0].dispute);
  EXPECT_EQ(Free(), (Gpus{0, 0})) << "the first is believed, the other has one of the others";
  EXPECT_TRUE(state_.TakeDisputeChanges().empty()) << "each change once";
  Apply(PodGone{"uid-a"});
  const std::vector<DisputeChange> over = state_.TakeDisputeChanges();
  ASSERT_EQ(over.size(), 1U);
  EXPECT_FALSE(over[0].dispute);
}

TEST_F(DeviceDisputesTest, AMigDeviceThatAnotherPodHasIsNotBelievedUntilItLeaves) {
  NodeSpec node = ANode("n").Spec();
  node.mig = NodeMig(DynamicMig(1));
  const auto says = [this](const APod& pod, const MigGrant& grant) {
    Placement said = pod.On("n");
    said.mig = {grant};
    Apply(PodBound{pod.Request(), said, true});
  };
  const APod first = APod("first").Mig("3g.20gb"), second = APod("second").Mig("1g.5gb");
  says(first, AGrant(0, "3g.20gb", 4));
  Apply(NodeUpserted{node});
  says(second, AGrant(0, "1g.5gb", 5));
  EXPECT_EQ(Problems(), (Texts{"second says 1g.5gb at 5 of GPU 0 on node n, but 1g.5gb at 5 of "
                               "GPU 0 is held by pod default/first"}));
  const std::uint64_t before = state_.DisputeChecks();
  Apply(PodGone{"uid-first"});
  EXPECT_EQ(state_.DisputeChecks() - before, 1U);
  EXPECT_EQ(Problems(), Texts());
}

// A tenant claims the GPU while the Binding is on the wire.
TEST_F(DeviceDisputesTest, APodThatIsShownWithWhatWasReservedForItIsBelieved) {
  Up(ANode("n").Gpus(2));
  const APod ours = APod("ours").Share(300), claims = APod("claims").Whole(1);
  ASSERT_TRUE(state_.Reserve(ours.Request(), ours.On("n", {0}), kLater));
  Says(claims, {0});
  Says(ours, {0});
  EXPECT_EQ(Problems(),
            (Texts{"claims says GPU 0 on node n, but pod default/ours holds 300 milli of "
                   "GPU 0"}));
  Says(ours, {1});
  EXPECT_EQ(GpusOf(ours), Gpus{0}) << "it is known";
}

TEST_F(DeviceDisputesTest, AMigDeviceOfKnownProfileMayNameItsDevice) {
  Up(ANode("n"));
  const APod pod = APod("m").Mig("1g.5gb");
  Placement known = pod.On("n"), said = known, other = known;
  const MigProfile profile = ParseMigProfile("1g.5gb").value();
  known.mig = {MigGrant{.profile = profile}};
  said.mig = {MigGrant{.gpu = 0, .start = 3, .profile = profile}};
  other.mig = {MigGrant{.gpu = 0, .start = 4, .profile = profile}};
  EXPECT_TRUE(Specifies(known, said));
  EXPECT_FALSE(Specifies(said, other));
  EXPECT_FALSE(Specifies(said, known));
  Apply(PodBound{pod.Request(), known, true});
  Apply(PodBound{pod.Request(), said, true});
  EXPECT_EQ(state_.FindPod("uid-m")->placement.mig, said.mig);
  EXPECT_EQ(Problems(), Texts());
  Apply(PodBound{pod.Request(), other, true});
  EXPECT_EQ(state_.FindPod("uid-m")->placement.mig, said.mig);
  EXPECT_EQ(Problems().size(), 1U);
}

}  // namespace
}  // namespace berth::test::device_disputes_test
