// SPDX-License-Identifier: Apache-2.0
//
// bind and preempt on the bodies that kube-scheduler 1.20, 1.26 and 1.36 really sent.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "test/support/captured.h"
#include "test/support/data_dir.h"
#include "test/support/wire_fixture.h"

namespace berth::test::captured_bind_test {
namespace {

class CapturedCalls : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    BERTH_NEEDS_DATA(CaptureDir());
    service_ = std::make_unique<TestService>(CapturedNodes(GetParam(), false));
  }

  // The body of the filter call for that pod, "" if none was captured.
  [[nodiscard]] static std::string FilterOf(const std::string& uid) {
    for (const auto& file : Captures(GetParam(), "filter")) {
      if (file.extension() == ".gz") continue;
      const std::string text = ReadCapture(file);
      if (Json::parse(text)["Pod"]["metadata"]["uid"] == uid) return text;
    }
    return "";
  }

  static constexpr int kHighest = 2'000'000'000;

  // Fills every GPU of the node: `victim` holds four, a pod of higher priority the rest.
  void FillNode(const std::string& node, const std::string& victim, int priority) {
    const auto snapshot = service_->state().Current();
    const NodeIndex index = snapshot->names().Find(node);
    ASSERT_NE(index, kNoNode) << node;
    const int gpus = static_cast<int>(snapshot->node(index).gpus().size());
    ASSERT_GE(gpus, 4) << node;
    Json holder = PodWithGpus(victim, 4);
    holder["spec"]["priority"] = priority;
    ASSERT_EQ(service_->Place(holder, node), "");
    if (gpus > 4) {
      Json keeps = PodWithGpus("keeps-" + node, gpus - 4);
      keeps["spec"]["priority"] = kHighest;
      ASSERT_EQ(service_->Place(keeps, node), "");
    }
  }

  std::unique_ptr<TestService> service_;
};

TEST_P(CapturedCalls, BindSucceedsAfterTheFilterOfThatPodAndAgain) {
  for (const auto& file : Captures(GetParam(), "bind")) {
    service_ = std::make_unique<TestService>(CapturedNodes(GetParam(), false));
    const std::string text = ReadCapture(file);
    const Json body = Json::parse(text);
    std::string filter = FilterOf(body["PodUID"]);
    ASSERT_NE(filter, "") << file;
    service_->Ask("filter", filter);
    const auto gpus_before = service_->FreeGpuMilli(body["Node"].get<std::string>());
    EXPECT_EQ(service_->Ask("bind", text), Json({{"Error", ""}})) << file;
    const auto gpus_after = service_->FreeGpuMilli(body["Node"].get<std::string>());
    EXPECT_EQ(service_->Ask("bind", text), Json({{"Error", ""}})) << file;
    EXPECT_EQ(service_->FreeGpuMilli(body["Node"].get<std::string>()), gpus_after) << file;
    const auto held = service_->state().FindPod(body["PodUID"].get<std::string>());
    ASSERT_TRUE(held) << file;
    EXPECT_EQ(held->state, PodState::kBound);
    EXPECT_EQ(held->placement.node, body["Node"]);
    EXPECT_EQ(gpus_before - gpus_after, held->pod.shape.gpu_count() * kMilliPerGpu) << file;
  }
}

TEST_P(CapturedCalls, PreemptKeepsOnlyNodesWhereThePodFitsWithoutTheVictims) {
  for (const auto& file : Captures(GetParam(), "preempt")) {
    SCOPED_TRACE(file);
    service_ = std::make_unique<TestService>(CapturedNodes(GetParam(), false));
    const std::string text = ReadCapture(file);
    const Json body = Json::parse(text);
    const bool full = body["NodeNameToMetaVictims"].is_null();
    const Json& asked = body[full ? "NodeNameToVictims" : "NodeNameToMetaVictims"];
    ASSERT_GE(asked.size(), 2u);

    // All nodes are full, and the victims are where the scheduler says - but on the last node that
    // pod holds nothing.
    Json expected = Json::object();
    std::string last;
    for (const auto& [node, victims] : asked.items()) last = node;
    for (const auto& [node, victims] : asked.items()) {
      ASSERT_EQ(victims["Pods"].size(), 1u);
      const Json& victim = victims["Pods"][0];
      const std::string uid = full ? victim["metadata"]["uid"] : victim["UID"];
      node == last ? FillNode(node, "somebody-else", kHighest) : FillNode(node, uid, 0);
      if (node == last) continue;
      expected[node]["Pods"] = Json::array({{{"UID", uid}}});
      expected[node]["NumPDBViolations"] = victims["NumPDBViolations"];
    }
    const Json answer = service_->Ask("preempt", text);
    EXPECT_EQ(answer.size(), 1u);
    EXPECT_EQ(nlohmann::json(answer["NodeNameToMetaVictims"]), nlohmann::json(expected));
  }
}

TEST_P(CapturedCalls, PreemptChangesNothing) {
  for (const auto& file : Captures(GetParam(), "preempt")) {
    const auto before = service_->state().Everything();
    service_->Ask("preempt", ReadCapture(file));
    EXPECT_EQ(*service_->state().Current(), *before.snapshot) << file;
    EXPECT_EQ(service_->state().Everything().pods.size(), before.pods.size()) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(OfEverySchedulerVersion, CapturedCalls, testing::ValuesIn(kSchedulers),
                         [](const auto& tested) {
                           std::string name(tested.param);
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace berth::test::captured_bind_test
