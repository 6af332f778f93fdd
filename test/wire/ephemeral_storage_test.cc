// SPDX-License-Identifier: Apache-2.0
//
// Local ephemeral storage, from the JSON of nodes and pods to the answers that kube-scheduler gets.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/reason.h"
#include "server/wire/node/node_json.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::ephemeral_storage_test {
namespace {

// A node of four GPUs, as its kubelet writes it; without a disk: as one whose kubelet does not.
NodeSpec NodeWithDisk(const std::string& name, const std::optional<std::string>& disk) {
  Json node = {{"metadata", {{"name", name}}}};
  node["status"]["allocatable"] = {{"cpu", "64"}, {"memory", "256Gi"}, {"nvidia.com/gpu", "4"}};
  if (disk) node["status"]["allocatable"]["ephemeral-storage"] = *disk;
  return ReadNode(node).spec;
}

Json Scratch(const std::string& uid, const std::string& disk, int priority = 0) {
  Json pod = PodAsking(uid, {{"nvidia.com/gpu", "1"}, {"ephemeral-storage", disk}});
  pod["spec"]["priority"] = priority;
  return pod;
}

class EphemeralStorage : public testing::Test {
 protected:
  Json Filter(const Json& pod) {
    return service_.Ask("filter", ArgsWithNames(pod, Json::array({"large", "silent", "small"})));
  }
  void Upsert(const NodeSpec& node) {
    ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{NodeUpserted{node}}));
  }

  TestService service_{{NodeWithDisk("large", "500Gi"), NodeWithDisk("silent", std::nullopt),
                        NodeWithDisk("small", "50Gi")},
                       nullptr,
                       "best-fit",
                       true};
};

TEST_F(EphemeralStorage, IsMeasuredWhereTheNodeSaysHowMuchItHas) {
  const Json fresh = Filter(Scratch("p", "200Gi"));
  EXPECT_EQ(fresh["NodeNames"], Json::array({"large", "silent"}));
  EXPECT_EQ(fresh["FailedAndUnresolvableNodes"]["small"], TextOf(Reason::kTooLittleDisk));
  ASSERT_EQ(service_.Place(Scratch("a", "200Gi"), "large"), "");
  ASSERT_EQ(service_.Place(Scratch("b", "200Gi"), "large"), "");
  const Json full = Filter(Scratch("p", "200Gi"));
  EXPECT_EQ(full["NodeNames"], Json::array({"silent"}));
  EXPECT_EQ(full["FailedAndUnresolvableNodes"]["large"], TextOf(Reason::kDiskShort))
      << "nobody there may be evicted for it";
  EXPECT_EQ(Filter(Scratch("p", "100Gi"))["NodeNames"], Json::array({"large", "silent"}));
}

TEST_F(EphemeralStorage, CountsBoundPodsOnceTheKubeletReportsIt) {
  ASSERT_EQ(service_.Place(Scratch("a", "200Gi"), "silent"), "");
  Upsert(NodeWithDisk("silent", "300Gi"));
  EXPECT_EQ(Filter(Scratch("p", "200Gi"))["NodeNames"], Json::array({"large"}));
  EXPECT_EQ(Filter(Scratch("p", "100Gi"))["NodeNames"], Json::array({"large", "silent"}));
}

// The kubelet's reservations were raised, or a disk was taken away, while pods run.
TEST_F(EphemeralStorage, AllocatableBelowUsedRefusesOnlyPodsThatAskForIt) {
  ASSERT_EQ(service_.Place(Scratch("a", "200Gi"), "large"), "");
  Upsert(NodeWithDisk("large", "150Gi"));
  EXPECT_EQ(Filter(Scratch("p", "1Gi"))["NodeNames"], Json::array({"silent", "small"}));
  EXPECT_EQ(Filter(PodWithGpus("q", 3))["NodeNames"], Json::array({"large", "silent", "small"}));
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{PodGone{"a"}}));
  EXPECT_EQ(Filter(Scratch("p", "150Gi"))["NodeNames"], Json::array({"large", "silent"}));
}

TEST_F(EphemeralStorage, IsSetFreeByTheVictimsToo) {
  for (const char* uid : {"a", "b", "c"}) {
    ASSERT_EQ(service_.Place(Scratch(uid, "20Gi", 1), "large"), "");
  }
  ASSERT_EQ(service_.Place(Scratch("large-one", "400Gi", 1), "large"), "");
  const auto victims_for = [this](const std::string& disk) {
    const Json none = {{"Pods", Json::array()}, {"NumPDBViolations", 0}};
    const Json args = {{"Pod", Scratch("p", disk, 100)},
                       {"NodeNameToVictims", nullptr},
                       {"NodeNameToMetaVictims", {{"large", none}}}};
    const Json answer = service_.Ask("preempt", args.dump());
    const Json on_large = answer["NodeNameToMetaVictims"].value("large", none);
    std::vector<std::string> uids;
    for (const Json& pod : on_large["Pods"]) uids.push_back(pod["UID"]);
    return uids;
  };
  EXPECT_EQ(victims_for("60Gi"), std::vector<std::string>{"a"});
  EXPECT_EQ(victims_for("61Gi"), std::vector<std::string>{"large-one"}) << "its GPU is as good";
}

}  // namespace
}  // namespace berth::test::ephemeral_storage_test
