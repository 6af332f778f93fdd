// SPDX-License-Identifier: Apache-2.0
//
// Filter, prioritize, preempt and bind over nodes with MIG devices, from the JSON of the nodes to
// the annotation of the bound pods, and back after a restart.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "scoring/reason.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/annotating_binder.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::mig_placement_test {
namespace {

NodeSpec NodeWith(const std::string& name, const Json& allocatable, const std::string& annotation,
                  const Json& labels = Json::object()) {
  Json all = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"}, {"nvidia.com/gpu.count", "2"}};
  all.update(labels);
  Json node = {{"metadata", {{"name", name}, {"labels", all}}},
               {"status", {{"allocatable", {{"cpu", "96"}, {"memory", "900Gi"}}}}}};
  node["status"]["allocatable"].update(allocatable);
  if (!annotation.empty()) node["metadata"]["annotations"] = {{"berth.dev/mig", annotation}};
  return ReadNode(node).spec;
}

NodeSpec DynamicNode(const std::string& name) {
  return NodeWith(name, Json::object(),
                  R"({"partitioning":"dynamic","gpus":[{"index":0},{"index":1,"uuid":"GPU-1"}]})");
}

Json PodWithMig(const std::string& uid, const std::string& profile, int priority = 0) {
  Json pod = PodAsking(uid, {{"cpu", "1"}, {"nvidia.com/mig-" + profile, "1"}});
  pod["spec"]["priority"] = priority;
  return pod;
}

class MigPlacement : public testing::Test {
 protected:
  // Whether the pod got a node.
  bool Place(TestService& service, const Json& pod, const Json& nodes) {
    const Json passed = service.Ask("filter", ArgsWithNames(pod, nodes))["NodeNames"];
    if (passed.empty()) return false;
    const std::string best = service.BestOf(pod, passed);
    const std::string uid = pod["metadata"]["uid"];
    EXPECT_EQ(service.Ask("bind", BindingArgs(uid, best))["Error"], "");
    node_of_[uid] = best;
    pods_[uid] = pod;
    return true;
  }

  // What a list of the API server would tell of the bound pods.
  [[nodiscard]] std::vector<ClusterEvent> PodsAsListed() const {
    const wire::PodRules rules(AllDialects(), DefaultConfig().resources);
    std::vector<ClusterEvent> events;
    for (const auto& [uid, pod] : pods_) {
      Json listed = pod;
      listed["spec"]["nodeName"] = node_of_.at(uid);
      listed["metadata"]["annotations"]["berth.dev/devices"] = binder_.devices.at(uid);
      const auto observed = wire::DecodeObservedPod(Padded(listed.dump()), rules);
      EXPECT_TRUE(observed && observed->problem.empty()) << observed->problem;
      events.emplace_back(PodBound{observed->pod, observed->placement});
    }
    return events;
  }

  AnnotatingBinder binder_;
  std::map<std::string, std::string> node_of_;
  std::map<std::string, Json> pods_;
};

TEST_F(MigPlacement, SaysTheExactDeviceOnADynamicNodeAndFillsIt) {
  TestService service({DynamicNode("n1")}, &binder_, "expected-waste");
  const Json nodes = Json::array({"n1"});
  ASSERT_TRUE(Place(service, PodWithMig("a", "4g.20gb"), nodes));
  EXPECT_EQ(binder_.devices["a"], R"({"version":1,"node":"n1","containers":{"main":{"mig":[)"
                                  R"({"gpu":0,"profile":"4g.20gb","start":0}]}}})");
  ASSERT_TRUE(Place(service, PodWithMig("b", "3g.20gb"), nodes));
  EXPECT_NE(binder_.devices["b"].find(R"("gpu":0,"profile":"3g.20gb","start":4)"),
            std::string::npos)
      << binder_.devices["b"];
  ASSERT_TRUE(Place(service, PodWithMig("c", "7g.40gb"), nodes));
  EXPECT_NE(binder_.devices["c"].find(R"("gpu":1,"uuid":"GPU-1","profile":"7g.40gb","start":0)"),
            std::string::npos)
      << binder_.devices["c"];
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithMig("d", "1g.5gb"), nodes));
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"]["n1"], TextOf(Reason::kMigBusy));
}

TEST_F(MigPlacement, IsRebuiltExactlyFromWhatThePodsSay) {
  const std::vector<NodeSpec> nodes = {DynamicNode("n1"),
                                       NodeWith("n2", {{"nvidia.com/mig-1g.5gb", "14"}}, "")};
  TestService service(nodes, &binder_, "expected-waste");
  const std::vector<std::string> profiles = {"1g.5gb", "2g.10gb", "1g.10gb", "1g.5gb"};
  for (int i = 0; i < 12; ++i) {
    const std::string& profile = profiles[static_cast<std::size_t>(i) % profiles.size()];
    Place(service, PodWithMig("u" + std::to_string(i), profile), Json::array({"n1", "n2"}));
  }
  EXPECT_GT(pods_.size(), 8U);
  ClusterState again;
  std::vector<ClusterEvent> events;
  for (const NodeSpec& node : nodes) events.emplace_back(NodeUpserted{node});
  for (ClusterEvent& event : PodsAsListed()) events.push_back(std::move(event));
  ASSERT_TRUE(again.Apply(events));
  EXPECT_TRUE(*again.Current() == *service.state().Current());
}

TEST_F(MigPlacement, TellsWhyANodeIsKeptOut) {
  const Json devices = {{"nvidia.com/mig-1g.5gb", "14"}};
  const std::string state = "nvidia.com/mig.config.state";
  TestService service({NodeWith("changing", devices, "", {{state, "pending"}}),
                       NodeWith("failed", devices, "", {{state, "failed"}}),
                       NodeWith("stale", devices, "", {{"nvidia.com/mig-2g.10gb.count", "6"}})},
                      &binder_);
  const Json answer = service.Ask(
      "filter", ArgsWithNames(PodWithMig("a", "1g.5gb"), {"changing", "failed", "stale"}));
  const Json& failed = answer["FailedAndUnresolvableNodes"];
  EXPECT_EQ(failed["changing"], TextOf(Reason::kMigChanging));
  EXPECT_EQ(failed["failed"], TextOf(Reason::kMigFailed));
  EXPECT_EQ(failed["stale"], TextOf(Reason::kMigStale));
}

TEST_F(MigPlacement, EvictsTheFewestPodsOfOneGpu) {
  TestService service({DynamicNode("n1")}, &binder_, "expected-waste");
  const Json nodes = Json::array({"n1"});
  ASSERT_TRUE(Place(service, PodWithMig("big", "7g.40gb"), nodes));
  ASSERT_TRUE(Place(service, PodWithMig("a", "3g.20gb"), nodes));
  ASSERT_TRUE(Place(service, PodWithMig("b", "1g.5gb"), nodes));
  const Json pod = PodWithMig("new", "7g.40gb", 100);
  EXPECT_TRUE(service.Ask("filter", ArgsWithNames(pod, nodes))["NodeNames"].empty());
  const Json none = {{"n1", {{"Pods", Json::array()}, {"NumPDBViolations", 0}}}};
  const Json answer =
      service.Ask("preempt", Json{{"Pod", pod}, {"NodeNameToMetaVictims", none}}.dump());
  EXPECT_EQ(answer["NodeNameToMetaVictims"]["n1"]["Pods"], Json::array({{{"UID", "big"}}}))
      << answer;
}

}  // namespace
}  // namespace berth::test::mig_placement_test
