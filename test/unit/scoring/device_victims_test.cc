// SPDX-License-Identifier: Apache-2.0
#include "scoring/device_victims.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::device_victims_test {
namespace {

using Uids = std::vector<std::string>;
using Outcome = DeviceVictims::Outcome;
using std::chrono::minutes;

constexpr const char* kResource = "nvidia.com/gpu";

// A node of `gpus` GPUs that kube-scheduler gives by claims.
class ADraNode {
 public:
  ADraNode(const std::string& name, int gpus) : spec_(ANode(name).Gpus(gpus).Spec()) {
    std::vector<int> order(static_cast<std::size_t>(gpus));
    std::iota(order.begin(), order.end(), 0);
    spec_.by_claims = {{kResource, order}};
  }
  // With its claim.
  ADraNode& Holding(const APod& pod, const std::vector<int>& gpus, bool leaving = false) {
    auto record = std::make_shared<PodRecord>(*pod.BoundOn(spec_.name, gpus));
    record->pod.shape.gpu_resource = kResource;
    record->leaving = leaving;
    record->pod.made_claim = NumberOfClaim("made");
    const std::string claim = record->pod.id.namespace_name + "/made";
    for (const int gpu : gpus) Claim(gpu, record->pod.id.uid, claim);
    pods_.push_back(std::move(record));
    return *this;
  }
  // uid: of the pod for whose extended resource it was made.
  ADraNode& Claim(int gpu, const std::string& uid = "", const std::string& claim = "ns/claim") {
    claims_.push_back({claim, "gpu-" + std::to_string(gpu), "", gpu, "", -1, uid});
    return *this;
  }
  NodeSpec& spec() { return spec_; }
  [[nodiscard]] std::shared_ptr<const Node> Build() const {
    auto node = std::make_shared<Node>(std::make_shared<const NodeSpec>(spec_), PodRecords(),
                                       std::make_shared<const std::vector<ClaimedGpu>>(claims_));
    for (const auto& pod : pods_) node->Put(pod);
    return node;
  }

 private:
  NodeSpec spec_;
  std::vector<ClaimedGpu> claims_;
  std::vector<std::shared_ptr<const PodRecord>> pods_;
};

PodRequest Asks(const APod& pod) {
  PodRequest request = pod.Request();
  request.shape.gpu_resource = kResource;
  request.device_class = "gpu.nvidia.com";
  return request;
}
PodRequest Preemptor(int gpus) { return Asks(APod("p").Whole(gpus).Priority(100)); }

EvictionLimits NoLimits() {
  return {{}, [](const GangId&) { return std::size_t{0}; }};
}

// "n: uid-a uid-b", "wait", "nowhere", "undecided".
std::string Said(const std::vector<std::shared_ptr<const Node>>& nodes, const PodRequest& pod,
                 const EvictionLimits& limits = NoLimits(), const std::string& skipped = "") {
  const Snapshot snapshot(nodes);
  const DeviceVictims found = VictimsForDevices(
      snapshot, pod, limits, [&skipped](const std::string& node) { return node == skipped; });
  if (found.outcome == Outcome::kWait) return "wait";
  if (found.outcome == Outcome::kNowhere) return "nowhere";
  if (found.outcome == Outcome::kUndecided) return "undecided";
  std::string text(snapshot.names().name(found.node));
  text += ":";
  for (const std::string& uid : found.uids) text += " " + uid;
  return text;
}

TEST(HeldByPods, GivesThePodsWhatTheirClaimsHold) {
  const auto node = ADraNode("n", 4).Holding(APod("a").Whole(2), {0, 3}).Claim(1).Build();
  EXPECT_FALSE(Fits(*node, Preemptor(2).shape));
  const Node held = HeldByPods(*node);
  EXPECT_EQ(held.claimed(), GpuBit(1)) << "somebody else's claim stays";
  EXPECT_FALSE(Fits(held, Preemptor(2).shape)) << "nothing is free that was not";
  EXPECT_TRUE(Fits(held, Preemptor(1).shape));
  const Uids gone = {"uid-a"};
  EXPECT_TRUE(Fits(WithoutPods(held, gone), Preemptor(3).shape));
  EXPECT_FALSE(Fits(WithoutPods(*node, gone), Preemptor(3).shape)) << "the claim is still there";
}

TEST(DeviceVictims, AreTheFewestOfTheLowestPriority) {
  const auto node = ADraNode("n", 4)
                        .Holding(APod("a").Whole(1).Priority(5), {0})
                        .Holding(APod("b").Whole(1).Priority(1), {1})
                        .Holding(APod("c").Whole(2).Priority(1), {2, 3})
                        .Build();
  EXPECT_EQ(Said({node}, Preemptor(1)), "n: uid-b") << "the least compute of that priority";
  EXPECT_EQ(Said({node}, Preemptor(2)), "n: uid-c") << "one pod and not two";
  EXPECT_EQ(Said({node}, Preemptor(4)), "n: uid-a uid-b uid-c");
  EXPECT_EQ(Said({node}, Preemptor(5)), "nowhere");
}

TEST(DeviceVictims, ComeFromTheNodeThatLosesLeast) {
  const auto a = ADraNode("a", 2).Holding(APod("a").Whole(2).Priority(7), {0, 1}).Build();
  const auto b = ADraNode("b", 2)
                     .Holding(APod("b1").Whole(1).Priority(3), {0})
                     .Holding(APod("b2").Whole(1).Priority(3), {1})
                     .Build();
  const auto c = ADraNode("c", 2).Holding(APod("c").Whole(2).Priority(3), {0, 1}).Build();
  EXPECT_EQ(Said({a, b, c}, Preemptor(2)), "c: uid-c") << "one pod of the lower priority";
  EXPECT_EQ(Said({a, b}, Preemptor(2)), "b: uid-b1 uid-b2") << "priority before number";
  EXPECT_EQ(Said({a, b, c}, Preemptor(2), NoLimits(), "c"), "b: uid-b1 uid-b2");
}

TEST(DeviceVictims, LoseTheLeastWork) {
  EvictionLimits limits = NoLimits();
  limits.now = WallTime(std::chrono::hours(1000));
  const auto saved = [&limits](const char* name, minutes ago) {
    return APod(name).Whole(1).Checkpointed(limits.now - ago);
  };
  const auto node = ADraNode("n", 3)
                        .Holding(saved("a", minutes(50)), {0})
                        .Holding(saved("b", minutes(2)), {1})
                        .Holding(APod("never").Whole(1), {2})
                        .Build();
  EXPECT_EQ(Said({node}, Preemptor(1), limits), "n: uid-b");
  EXPECT_EQ(Said({node}, Preemptor(2), limits), "n: uid-a uid-b");
}

TEST(DeviceVictims, MayHaveClaimsOfTheirOwn) {
  ADraNode node("n", 2);
  node.Holding(APod("a").Whole(1).Priority(5), {0}).Holding(APod("b").Claims({"c"}), {});
  node.Claim(1);
  EXPECT_EQ(Said({node.Build()}, Preemptor(1)), "n: uid-a") << "the claim is another namespace's";
  ADraNode own("n", 2);
  own.Holding(APod("a").Whole(1).Priority(5), {0});
  own.Holding(APod("b").Namespace("ns").Claims({"claim"}), {}).Claim(1);
  EXPECT_EQ(Said({own.Build()}, Preemptor(1)), "n: uid-b");
  EXPECT_EQ(Said({own.Build()}, Preemptor(2)), "n: uid-a uid-b");
}

TEST(DeviceVictims, AreNeverAsImportantNorThoseOfOthersClaims) {
  const auto same = ADraNode("n", 1).Holding(APod("a").Whole(1).Priority(100), {0}).Build();
  EXPECT_EQ(Said({same}, Preemptor(1)), "nowhere");
  // A pod uses a claim of its own: its end frees nothing that Berth knows of.
  const auto claim = ADraNode("n", 1).Holding(APod("user"), {}).Claim(0).Build();
  EXPECT_EQ(Said({claim}, Preemptor(1)), "nowhere");
  PodRequest never = Preemptor(1);
  never.may_preempt = false;
  const auto low = ADraNode("n", 1).Holding(APod("a").Whole(1), {0}).Build();
  EXPECT_EQ(Said({low}, never), "nowhere");
  EXPECT_EQ(Said({low}, Preemptor(1)), "n: uid-a");
}

TEST(DeviceVictims, ExceedNoBudget) {
  const auto node = ADraNode("n", 2)
                        .Holding(APod("a").Whole(1).Labelled({{"app", "x"}}), {0})
                        .Holding(APod("b").Whole(1).Priority(9), {1})
                        .Build();
  EXPECT_EQ(Said({node}, Preemptor(1)), "n: uid-a");
  PodDisruptionBudget budget;
  budget.namespace_name = "default";
  budget.selector = LabelSelector{{"app", LabelOperator::kIn, {"x"}}};
  budget.disruptions_allowed = 0;
  EvictionLimits limits = NoLimits();
  limits.budgets = std::span(&budget, 1);
  EXPECT_EQ(Said({node}, Preemptor(1), limits), "n: uid-b");
  EXPECT_EQ(Said({node}, Preemptor(2), limits), "nowhere");
}

TEST(DeviceVictims, ThereAreNoneWhileRoomComesByItself) {
  ADraNode ends("n", 2);
  ends.Holding(APod("a").Whole(1), {0}, true).Holding(APod("b").Whole(1), {1});
  EXPECT_EQ(Said({ends.Build()}, Preemptor(1)), "wait");
  EXPECT_EQ(Said({ends.Build()}, Preemptor(2)), "n: uid-b") << "beside the one that is ending";
}

// kube-scheduler evicts on nodes with a device plugin, and asks Berth about it.
TEST(DeviceVictims, AreLeftToKubeSchedulerWhereItCanEvict) {
  const auto dra = ADraNode("dra", 1).Holding(APod("a").Whole(1), {0}).Build();
  const auto plugin = [](int priority) {
    return std::make_shared<const Node>(
        ANode("plugin").Gpus(1).Holding(APod("b").Whole(1).Priority(priority), {0}).Build());
  };
  EXPECT_EQ(Said({dra, plugin(1)}, Preemptor(1)), "wait");
  EXPECT_EQ(Said({dra, plugin(100)}, Preemptor(1)), "dra: uid-a");
}

// What the pod could not be let in for after all the evictions.
TEST(DeviceVictims, AreNoneWhereThePodWouldNotBeLetIn) {
  const auto held = [](ADraNode node) { return node.Holding(APod("a").Whole(1), {0}).Build(); };
  ADraNode tainted("n", 1);
  tainted.spec().taints.push_back({"team", "x", TaintEffect::kNoSchedule});
  EXPECT_EQ(Said({held(tainted)}, Preemptor(1)), "nowhere");
  PodRequest large = Preemptor(1);
  large.shape.cpu_milli = 65'000;
  EXPECT_EQ(Said({held(ADraNode("n", 1))}, large), "nowhere");
  ADraNode other("n", 1);
  other.spec().by_claims = {{"example.com/gpu", {0}}};
  EXPECT_EQ(Said({held(other)}, Preemptor(1)), "nowhere");
  // Only some of its GPUs are of that resource, and the others would be set free in vain.
  ADraNode half("n", 2);
  half.spec().by_claims = {{kResource, {1}}};
  half.Holding(APod("low").Whole(1), {0}).Holding(APod("high").Whole(1).Priority(100), {1});
  EXPECT_EQ(Said({half.Build()}, Preemptor(1)), "nowhere");
  PodRequest ports = Preemptor(1);
  ports.own_to_scheduler.host_ports = true;
  EXPECT_EQ(Said({held(ADraNode("n", 1))}, ports), "undecided");
  PodRequest member = Preemptor(1);
  member.gang.id = GangId::Of("g");
  EXPECT_EQ(Said({held(ADraNode("n", 1))}, member), "nowhere");
}

}  // namespace
}  // namespace berth::test::device_victims_test
