// SPDX-License-Identifier: Apache-2.0
//
// The verbs about pods whose GPUs kube-scheduler may give by a ResourceClaim: a DeviceClass has the
// name of their resource, and some nodes do not offer that resource themselves.
#include "scoring/admission.h"

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "cluster/claims/device_claim.h"
#include "server/extender/extender.h"
#include "server/extender/inquiry.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::by_claim_test {
namespace {

using std::chrono::seconds;

// "dra" and "far" have GPUs of DRA alone, "plugin" has 4 of a device plugin.
class ByClaim : public testing::Test {
 protected:
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void Add(const ANode& node) { Apply(NodeUpserted{node.Spec()}); }
  void AddAll() {
    for (const char* const name : {"dra", "far"}) Add(ANode(name));
    Add(ANode("plugin").Gpus(4));
  }
  static PodRequest Pod(APod pod) {
    PodRequest request = pod.Request();
    request.shape.gpu_resource = "nvidia.com/gpu";
    request.device_class = "gpu.nvidia.com";
    return request;
  }
  [[nodiscard]] std::vector<NodeIndex> All() const {
    std::vector<NodeIndex> nodes(state_.Current()->size());
    std::iota(nodes.begin(), nodes.end(), NodeIndex{0});
    return nodes;
  }
  // By node, in the order of their names.
  std::vector<Reason> Filter(const PodRequest& pod) {
    return extender_.Filter(extender_.Now(), pod, All()).reasons;
  }
  Status Bind(const PodRequest& pod, const std::string& node) {
    return BindNow(extender_, {pod.id.namespace_name, pod.id.name, pod.id.uid, node});
  }

  static constexpr Reason kFits = Reason::kFits;
  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  std::vector<Placement> bound_;
  ScriptedBinder binder_{[this](const PodRequest&, const Placement& placement) {
    bound_.push_back(placement);
    return Status();
  }};
  SilentSink sink_;
  NodeDomains domains_{{{"rack", {"rack"}}}};
  GangTable gangs_{{state_, waiting_, domains_}};
  Extender extender_{{.state = state_,
                      .binder = binder_,
                      .sink = sink_,
                      .clock = clock_,
                      .domains = &domains_,
                      .behind_scheduler = true,
                      .gangs = &gangs_,
                      .waiting = &waiting_},
                     {.engine = EngineOf("best-fit"),
                      .reservation_time = seconds(30),
                      .gangs = {.conventions = {"berth"}}}};
};

TEST_F(ByClaim, NodesWithoutTheResourceAreLeftToKubeScheduler) {
  AddAll();
  EXPECT_EQ(Filter(Pod(APod("p").Whole(2))), (std::vector{kFits, kFits, kFits}));
  EXPECT_EQ(Filter(Pod(APod("large").Whole(8))), (std::vector{kFits, kFits, Reason::kTooFewGpus}));
  EXPECT_EQ(Filter(APod("no-class").Whole(2).Request()),
            (std::vector{Reason::kNoGpu, Reason::kNoGpu, kFits}));
  EXPECT_EQ(Filter(Pod(APod("cpus").Whole(2).Cpu(65))),
            (std::vector{Reason::kTooFewCpus, Reason::kTooFewCpus, Reason::kTooFewCpus}));
}

TEST_F(ByClaim, ANodeWithoutHealthyGpusOfTheResourceOffersNothing) {
  NodeSpec other = ANode("amd").Gpus(4).Spec();
  other.gpu_resource = "amd.com/gpu";
  Apply(NodeUpserted{other});
  NodeSpec away = ANode("away").Gpus(4).Spec();
  away.missing = 4;
  Apply(NodeUpserted{away});
  NodeSpec sick = ANode("sick").Spec();
  sick.gpu_condition = "XIDErrors";
  Apply(NodeUpserted{sick});
  EXPECT_EQ(Filter(Pod(APod("p").Whole(2))), (std::vector{kFits, kFits, Reason::kGpuCondition}));
}

// Only Berth would see to it, and there it cannot.
TEST_F(ByClaim, PodsThatSayMoreOfTheirGpusStayWhereBerthCanJudge) {
  AddAll();
  for (APod pod : {APod("model").Whole(2).Models({"A100"}), APod("id").Whole(1).OnGpus({"GPU-1"}),
                   APod("own").Whole(1).Isolated(Isolation::kHardware)}) {
    const PodRequest request = Pod(pod);
    const auto reasons = Filter(request);
    for (const std::size_t node : {0U, 1U}) {
      EXPECT_EQ(VerdictOf(reasons[node]), Verdict::kUnresolvable) << request.id.name;
    }
  }
}

TEST_F(ByClaim, NodesThatBerthCanJudgeComeFirst) {
  AddAll();
  const PodRequest pod = Pod(APod("p").Whole(2));
  const auto scores = extender_.Prioritize(extender_.Now(), pod, All());
  EXPECT_EQ(scores[0], 0);
  EXPECT_EQ(scores[1], 0);
  EXPECT_GE(scores[2], 1);
}

// kube-scheduler's own scores would spread the pods over them.
TEST_F(ByClaim, NodesThatBerthCannotJudgeAreFilledOneAfterTheOther) {
  AddAll();
  const PodRequest pod = Pod(APod("p").Whole(2));
  const auto scores_of = [&](const std::vector<NodeIndex>& nodes) {
    return extender_.Prioritize(extender_.Now(), pod, nodes);
  };
  EXPECT_EQ(scores_of({0, 1}), (std::vector<std::uint8_t>{10, 9})) << "the first by name";
  EXPECT_EQ(scores_of({1, 0}), (std::vector<std::uint8_t>{9, 10})) << "in whatever order";
  EXPECT_EQ(scores_of({1}), std::vector<std::uint8_t>{10}) << "kube-scheduler knows that 0 is full";
  Apply(PodBound{Pod(APod("there").Whole(1)), {"far", 0, 0, {}}});
  Apply(PodBound{APod("cpus").Cpu(1).Request(), {"dra", 1000, 0, {}}});
  EXPECT_EQ(scores_of({0, 1}), (std::vector<std::uint8_t>{9, 10})) << "where pods have GPUs";
  const auto all = scores_of({0, 1, 2});
  EXPECT_EQ(all[1], 0) << "behind those that it can judge";
}

TEST_F(ByClaim, ABindThereReservesNoGpu) {
  AddAll();
  const PodRequest pod = Pod(APod("p").Whole(2).Cpu(3));
  Filter(pod);
  const Status bound = Bind(pod, "dra");
  ASSERT_TRUE(bound) << bound.error().message;
  ASSERT_EQ(bound_.size(), 1U);
  EXPECT_EQ(bound_[0].node, "dra");
  EXPECT_EQ(bound_[0].cpu_milli, 3000);
  EXPECT_TRUE(bound_[0].grants.empty());
  const PodRequest beside = Pod(APod("q").Whole(2));
  Filter(beside);
  ASSERT_TRUE(Bind(beside, "plugin"));
  EXPECT_EQ(bound_[1].grants.size(), 2U) << "as ever";
}

TEST_F(ByClaim, APodThereHoldsNoGpuOfTheBooks) {
  Add(ANode("dra"));
  NodeSpec other = ANode("amd").Gpus(4).Spec();
  other.gpu_resource = "amd.com/gpu";
  Apply(NodeUpserted{other});
  for (const char* const node : {"dra", "amd"}) {
    Apply(PodBound{Pod(APod(node).Whole(2)), {node, 0, 0, {}}});
  }
  const auto snapshot = state_.Current();
  EXPECT_EQ(snapshot->CountUnattributed(), 0U);
  EXPECT_EQ(snapshot->node(snapshot->names().Find("amd")).free_gpu_milli(), 4000);
}

// There is nothing to plan: they go one by one, as without Berth.
TEST_F(ByClaim, AGangIsPlannedOnlyWhereSomeNodeOffersTheResource) {
  for (const char* const name : {"dra", "far"}) Add(ANode(name));
  const auto member = [](const std::string& name) {
    return Pod(APod(name).Whole(3).Gang("berth:default/train").GangSize(2));
  };
  EXPECT_EQ(Filter(member("a")), (std::vector{kFits, kFits}));
  ASSERT_TRUE(Bind(member("a"), "dra"));
  Apply(PodBound{member("a"), {"dra", 0, 0, {}}});
  waiting_.Remove(member("a").id.uid);
  const auto alone = [](const std::string& name) {
    return Pod(APod(name).Whole(3).Gang("berth:default/other").GangSize(2));
  };
  Add(ANode("plugin").Gpus(4));
  EXPECT_EQ(Filter(alone("c")), (std::vector(3, Reason::kGangIncomplete)));
  const std::vector<Reason> rest = Filter(member("b"));
  EXPECT_EQ(rest[2], kFits) << "what its gang lacks is planned where Berth knows the GPUs";
}

TEST_F(ByClaim, VictimsOfKubeSchedulerThereAreAgreedTo) {
  AddAll();
  Apply(PodBound{APod("low").Cpu(60).Request(), APod("low").Cpu(60).On("dra")});
  const PodRequest pod = Pod(APod("high").Whole(1).Cpu(60).Priority(100));
  EXPECT_EQ(Filter(pod)[0], Reason::kCpuShort) << "preemption may help";
  const std::vector<NodeVictims> asked = {{"dra", {"uid-low"}}};
  const auto kept = extender_.Preempt(extender_.Now(), pod, asked);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].uids, std::vector<std::string>{"uid-low"});
}

TEST_F(ByClaim, ExplainSaysWhoDecides) {
  for (const char* const name : {"dra", "far"}) Add(ANode(name));
  const PodExplanation alone = Inquiry(extender_, extender_.Now()).Explain(Pod(APod("p").Whole(2)));
  EXPECT_EQ(alone.fitting, 0U);
  EXPECT_EQ(alone.by_claim, 2U);
  EXPECT_EQ(alone.sentence,
            "fits no node that Berth judges; kube-scheduler decides by DRA "
            "(DeviceClass gpu.nvidia.com) on 2 nodes without nvidia.com/gpu, best is dra");
  Apply(PodBound{Pod(APod("first").Whole(1)), {"far", 0, 0, {}}});
  EXPECT_EQ(Inquiry(extender_, extender_.Now()).Explain(Pod(APod("p").Whole(2))).best_by_claim,
            "far");
  Add(ANode("plugin").Gpus(4));
  const PodExplanation both = Inquiry(extender_, extender_.Now()).Explain(Pod(APod("p").Whole(2)));
  EXPECT_EQ(both.fitting, 1U);
  EXPECT_EQ(both.sentence,
            "fits 1 of 3 nodes now, best is plugin; kube-scheduler decides by DRA "
            "(DeviceClass gpu.nvidia.com) on 2 nodes without nvidia.com/gpu");
  const PodRequest pod = Pod(APod("there").Whole(2));
  Apply(PodBound{pod, {"dra", 0, 0, {}}});
  EXPECT_EQ(Inquiry(extender_, extender_.Now()).Explain(pod).sentence,
            "is on dra with 2 GPUs, devices unknown: kube-scheduler gave them by DRA (DeviceClass "
            "gpu.nvidia.com)");
}

TEST(ByClaimPods, APodGetsTheDeviceClassOfItsGpuResource) {
  DeviceClasses classes;
  const wire::PodRules rules(AllDialects(), DefaultConfig().resources, {}, nullptr, &classes);
  const auto class_of = [&rules](const Json& requests) {
    const PaddedText text(PodAsking("p", requests).dump());
    const auto observed = wire::DecodeObservedPod(text, rules);
    EXPECT_TRUE(observed);
    return observed ? observed->pod.device_class : "";
  };
  EXPECT_EQ(class_of({{"nvidia.com/gpu", "2"}}), "") << "no DRA: nothing changes";
  DeviceClass given;
  given.name = "gpu.nvidia.com";
  given.extended_resource = "nvidia.com/gpu";
  classes.Put(given);
  EXPECT_EQ(class_of({{"nvidia.com/gpu", "2"}}), "gpu.nvidia.com");
  EXPECT_EQ(class_of({{"cpu", "2"}}), "");
  EXPECT_EQ(class_of({{"nvidia.com/mig-1g.5gb", "1"}}), "");
}

}  // namespace
}  // namespace berth::test::by_claim_test
