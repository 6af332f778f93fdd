// SPDX-License-Identifier: Apache-2.0
//
// Which pods are of one workload, and how they say that they spread.
#include <gtest/gtest.h>

#include <string>

#include "test/support/agent_world.h"

namespace berth::test::pod_spread_test {
namespace {

class PodSpread : public ::testing::Test {
 protected:
  static Json Pod(const std::string& uid, const std::string& key, const std::string& value) {
    Json pod = PodAsking(uid, {{"berth.dev/gpu-milli", "300"}});
    pod["metadata"]["annotations"][key] = value;
    pod["metadata"]["labels"] = {{"app", "web"}};
    return pod;
  }
  static Json Owned(Json pod, const std::string& controller) {
    pod["metadata"]["ownerReferences"] = {
        {{"kind", "Node"}, {"uid", "someone"}},
        {{"kind", "ReplicaSet"}, {"uid", controller}, {"controller", true}}};
    return pod;
  }
  RequestShape Read(const Json& pod) {
    const PodRequest request = world_.Decode(pod);
    EXPECT_EQ(request.refusal, "");
    return request.shape;
  }

  AgentWorld world_{NodeWith({{"nvidia.com/gpu", "2"}}, {})};
};

TEST_F(PodSpread, IsReadWithTheWorkloadOfTheController) {
  const RequestShape card = Read(Owned(Pod("a", "berth.dev/spread", "card"), "rs-1"));
  EXPECT_EQ(card.spread, Spread::kCard);
  EXPECT_EQ(Read(Owned(Pod("b", "berth.dev/spread", "card"), "rs-1")), card);
  EXPECT_NE(Read(Owned(Pod("c", "berth.dev/spread", "card"), "rs-2")).workload, card.workload);
  EXPECT_EQ(Read(Pod("d", "berth.dev/spread", "node")).spread, Spread::kNode);
  EXPECT_EQ(Read(Owned(Pod("e", "berth.dev/link", "none"), "rs-1")).workload, "")
      << "pods that do not spread are of one shape, whichever controller owns them";
}

TEST_F(PodSpread, OfPodsWithoutAControllerGoesByTheirLabelsAndNamespace) {
  const RequestShape one = Read(Pod("a", "berth.dev/spread", "card"));
  EXPECT_EQ(Read(Pod("b", "berth.dev/spread", "card")), one);
  Json other = Pod("c", "berth.dev/spread", "card");
  other["metadata"]["labels"]["app"] = "db";
  EXPECT_NE(Read(other).workload, one.workload);
  Json elsewhere = Pod("d", "berth.dev/spread", "card");
  elsewhere["metadata"]["namespace"] = "elsewhere";
  EXPECT_NE(Read(elsewhere).workload, one.workload);
}

TEST_F(PodSpread, GoesByALabelAcrossControllers) {
  const auto by_app = [](const std::string& uid, const std::string& controller) {
    Json pod = Owned(Pod(uid, "berth.dev/spread", "card"), controller);
    pod["metadata"]["annotations"]["berth.dev/spread-by"] = "app";
    return pod;
  };
  EXPECT_EQ(Read(by_app("a", "rs-1")), Read(by_app("b", "rs-2"))) << "a rollout has two";
}

TEST_F(PodSpread, OfHamisUsersIsUnderstood) {
  const auto policy = [&](const std::string& key, const std::string& value) {
    return Read(Owned(Pod("a", key, value), "rs-1")).spread;
  };
  EXPECT_EQ(policy("hami.io/gpu-scheduler-policy", "spread"), Spread::kCard);
  EXPECT_EQ(policy("hami.io/gpu-scheduler-policy", "numa,spread"), Spread::kCard);
  EXPECT_EQ(policy("hami.io/node-scheduler-policy", "spread"), Spread::kNode);
  EXPECT_EQ(policy("hami.io/gpu-scheduler-policy", "binpack"), Spread::kNone);
  Json both = Owned(Pod("a", "hami.io/gpu-scheduler-policy", "spread"), "rs-1");
  both["metadata"]["annotations"]["berth.dev/spread"] = "node";
  EXPECT_EQ(Read(both).spread, Spread::kNode) << "Berth's own word goes first";
}

TEST_F(PodSpread, ThatCannotBeReadIsRefusedWithTheKey) {
  EXPECT_EQ(world_.Decode(Pod("a", "berth.dev/spread", "gpu")).refusal,
            "annotation berth.dev/spread: want one of card, node, got \"gpu\"");
  EXPECT_EQ(world_.Decode(Pod("a", "berth.dev/spread-by", "app")).refusal,
            "annotation berth.dev/spread-by: want berth.dev/spread (card or node) beside it");
  Json unlabelled = Pod("a", "berth.dev/spread", "card");
  unlabelled["metadata"]["annotations"]["berth.dev/spread-by"] = "tier";
  EXPECT_EQ(world_.Decode(unlabelled).refusal,
            "annotation berth.dev/spread-by: want a label that the pod has, got \"tier\"");
  const Json without = PodAsking("c", {{"cpu", "1"}});
  EXPECT_EQ(Read(without).spread, Spread::kNone);
}

}  // namespace
}  // namespace berth::test::pod_spread_test
