// SPDX-License-Identifier: Apache-2.0
//
// Beside which pods a pod says that its GPUs are to be, and that it asks for RDMA devices.
#include <gtest/gtest.h>

#include <string>

#include "test/support/agent_world.h"

namespace berth::test::pod_neighbours_test {
namespace {

class PodNeighbours : public ::testing::Test {
 protected:
  static Json Pod(const std::string& key, const std::string& value) {
    Json pod = PodWithGpus("p", 1);
    pod["metadata"]["namespace"] = "serving";
    pod["metadata"]["annotations"][key] = value;
    return pod;
  }
  PodRequest Read(const Json& pod) { return world_.Decode(pod); }

  AgentWorld world_{NodeWith({{"nvidia.com/gpu", "2"}}, {})};
};

TEST_F(PodNeighbours, AreThoseOfItsNamespaceWithTheseLabels) {
  const PodRequest far = Read(Pod("berth.dev/far", "role=prefill, !canary"));
  EXPECT_EQ(far.refusal, "");
  const LabelSelector selector = {{"canary", LabelOperator::kDoesNotExist, {}},
                                  {"role", LabelOperator::kIn, {"prefill"}}};
  EXPECT_EQ(far.shape.neighbours, (Neighbours{"serving", {}, selector}));
  EXPECT_EQ(Read(Pod("berth.dev/far", "!canary,role=prefill")).shape, far.shape)
      << "one shape, in whatever order";
  EXPECT_EQ(Read(Pod("berth.dev/near", "role=prefill")).shape.neighbours.near.size(), 1u);
  EXPECT_NE(Read(Pod("berth.dev/near", "role=prefill, !canary")).shape, far.shape);
  Json elsewhere = Pod("berth.dev/far", "role=prefill, !canary");
  elsewhere["metadata"]["namespace"] = "other";
  EXPECT_NE(Read(elsewhere).shape, far.shape);
}

TEST_F(PodNeighbours, OfPodsWithoutGpusSayNothing) {
  Json pod = PodAsking("p", {{"cpu", "1"}});
  pod["metadata"]["annotations"]["berth.dev/near"] = "role=prefill";
  EXPECT_TRUE(Read(pod).shape.neighbours.empty());
  EXPECT_EQ(Read(pod).refusal, "");
}

TEST_F(PodNeighbours, ThatCannotBeReadAreToldWhatIsWanted) {
  EXPECT_EQ(Read(Pod("berth.dev/far", "role in (a)")).refusal,
            "annotation berth.dev/far: [0]: want KEY=VALUE, KEY!=VALUE, KEY or !KEY, got \"role in "
            "(a)\"");
  EXPECT_EQ(Read(Pod("berth.dev/near", " ,")).refusal,
            "annotation berth.dev/near: want 1..16 labels of pods, such as app=prefill, got 0");
  std::string many;
  for (int i = 0; i < 17; ++i) many += "k" + std::to_string(i) + ",";
  EXPECT_EQ(Read(Pod("berth.dev/near", many)).refusal,
            "annotation berth.dev/near: want 1..16 labels of pods, such as app=prefill, got 17");
}

TEST_F(PodNeighbours, AreNicsForWhoAsksForRdmaDevices) {
  const auto beside_nic = [this](const Json& resources) {
    return Read(PodAsking("p", resources)).shape.beside_nic;
  };
  EXPECT_TRUE(beside_nic({{"nvidia.com/gpu", "1"}, {"rdma/hca_shared_devices_a", "1"}}));
  EXPECT_TRUE(beside_nic({{"berth.dev/gpu-milli", "300"}, {"rdma/hca", "1"}}));
  EXPECT_FALSE(beside_nic({{"nvidia.com/gpu", "1"}, {"example.com/nic", "1"}}));
  EXPECT_FALSE(beside_nic({{"cpu", "1"}, {"rdma/hca", "1"}})) << "it has no GPU";
}

}  // namespace
}  // namespace berth::test::pod_neighbours_test
