// SPDX-License-Identifier: Apache-2.0
//
// What of a pod kube-scheduler alone judges.
#include <gtest/gtest.h>

#include "test/support/agent_world.h"

namespace berth::test::own_to_scheduler_test {
namespace {

class OwnToSchedulerTest : public ::testing::Test {
 protected:
  // Of a pod with that field of its spec.
  OwnToScheduler Of(const char* field, const Json& value) {
    Json pod = PodWithGpus("a", 1);
    pod["spec"][field] = value;
    const PodRequest request = world_.Decode(pod);
    EXPECT_EQ(request.refusal, "");
    return request.own_to_scheduler;
  }
  OwnToScheduler OfContainer(const char* field, const Json& value) {
    Json containers = PodWithGpus("a", 1)["spec"]["containers"];
    containers[0][field] = value;
    return Of("containers", containers);
  }

  AgentWorld world_{NodeWith({{"nvidia.com/gpu", "2"}}, {})};
};

TEST_F(OwnToSchedulerTest, ArePortsOfTheHost) {
  EXPECT_TRUE(OfContainer("ports", {{{"containerPort", 80}, {"hostPort", 80}}}).host_ports);
  EXPECT_FALSE(OfContainer("ports", {{{"containerPort", 80}}}).host_ports);
}

TEST_F(OwnToSchedulerTest, AreVolumesThatANodeAttaches) {
  const Json claim = {{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}};
  const Json config = {{"name", "config"}, {"configMap", {{"name", "config"}}}};
  const Json scratch = {{"name", "scratch"}, {"emptyDir", Json::object()}};
  EXPECT_FALSE(Of("volumes", {config, scratch}).volumes);
  EXPECT_TRUE(Of("volumes", {config, claim}).volumes);
}

TEST_F(OwnToSchedulerTest, AreResourcesThatBerthDoesNotRead) {
  const auto asks = [this](const char* resource) {
    return OfContainer("resources", {{"limits", {{"nvidia.com/gpu", "1"}, {resource, "1"}}}})
        .resources;
  };
  EXPECT_FALSE(asks("memory"));
  EXPECT_TRUE(asks("rdma/hca"));
  EXPECT_TRUE(asks("hugepages-2Mi"));
  EXPECT_TRUE(Of("resourceClaims", {{{"name", "c"}, {"resourceClaimName", "c"}}}).resources);
}

TEST_F(OwnToSchedulerTest, AreTheOtherPodsThatAreRequired) {
  const Json term = {{{"topologyKey", "kubernetes.io/hostname"}}};
  const Json required = {{"requiredDuringSchedulingIgnoredDuringExecution", term}};
  const Json preferred = {{"preferredDuringSchedulingIgnoredDuringExecution", term}};
  EXPECT_TRUE(Of("affinity", {{"podAffinity", required}}).minds_others);
  EXPECT_TRUE(Of("affinity", {{"podAntiAffinity", required}}).keeps_apart);
  const OwnToScheduler mild =
      Of("affinity", {{"podAffinity", preferred}, {"podAntiAffinity", preferred}});
  EXPECT_FALSE(mild.minds_others || mild.keeps_apart);
  const auto spread = [this](const char* otherwise) {
    const Json constraint = {{"topologyKey", "zone"}, {"whenUnsatisfiable", otherwise}};
    return Of("topologySpreadConstraints", Json::array({constraint})).minds_others;
  };
  EXPECT_TRUE(spread("DoNotSchedule"));
  EXPECT_FALSE(spread("ScheduleAnyway"));
}

}  // namespace
}  // namespace berth::test::own_to_scheduler_test
