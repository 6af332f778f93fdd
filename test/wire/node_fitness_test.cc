// SPDX-License-Identifier: Apache-2.0
//
// What nodes say of the state of their GPUs and of their software, from the JSON of the node to the
// answer that kube-scheduler gets.
#include <gtest/gtest.h>

#include <string>

#include "scoring/reason.h"
#include "server/wire/node/node_json.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::test::node_fitness_test {
namespace {

Json GpuNodeJson(const std::string& name) {
  Json node = {{"metadata", {{"name", name}, {"labels", Json::object()}}}};
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list] = {{"cpu", "64"}, {"memory", "256Gi"}, {"nvidia.com/gpu", "4"}};
  }
  node["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}}};
  return node;
}

Json WithCondition(const std::string& type, const char* status) {
  Json node = GpuNodeJson("n");
  node["status"]["conditions"].push_back({{"type", type}, {"status", status}});
  return node;
}

NodeSpec Read(const Json& node, const Config& config = DefaultConfig()) {
  return ReadNode(node, config).spec;
}

std::string WhyNot(const TestService& service, const Json& pod) {
  const Json answer = service.Ask("filter", ArgsWithNames(pod, {"n"}));
  if (answer["NodeNames"] == Json{"n"}) return "";
  return answer["FailedAndUnresolvableNodes"].value("n", "resolvable");
}

TEST(GpuConditions, CloseANodeToPodsWithGpus) {
  EXPECT_EQ(Read(GpuNodeJson("n")).gpu_condition, "");
  EXPECT_EQ(Read(WithCondition("XIDErrors", "True")).gpu_condition, "XIDErrors=True");
  EXPECT_EQ(Read(WithCondition("XIDErrors", "False")).gpu_condition, "");
  EXPECT_EQ(Read(WithCondition("XIDErrors", "Unknown")).gpu_condition, "");
  EXPECT_EQ(Read(WithCondition("AcceleratedHardwareReady", "False")).gpu_condition,
            "AcceleratedHardwareReady=False");
  EXPECT_EQ(Read(WithCondition("AcceleratedHardwareReady", "True")).gpu_condition, "");
  EXPECT_EQ(Read(WithCondition("IBLinkFlapping", "True")).gpu_condition, "")
      << "not every pod uses InfiniBand";

  const TestService service({Read(WithCondition("XIDErrors", "True"))}, nullptr, "best-fit", true);
  EXPECT_EQ(WhyNot(service, PodWithGpus("p", 1)), TextOf(Reason::kGpuCondition));
  EXPECT_EQ(WhyNot(service, PodAsking("c", {{"cpu", "1"}})), "");
}

TEST(GpuConditions, AreThoseOfTheConfiguration) {
  Config config = DefaultConfig();
  config.gpu_nodes.conditions = {"IBLinkFlapping", "GpuReady=False"};
  EXPECT_EQ(Read(WithCondition("XIDErrors", "True"), config).gpu_condition, "");
  EXPECT_EQ(Read(WithCondition("IBLinkFlapping", "True"), config).gpu_condition,
            "IBLinkFlapping=True");
  EXPECT_EQ(Read(WithCondition("GpuReady", "False"), config).gpu_condition, "GpuReady=False");
}

TEST(MinVersions, ArePartOfWhatAPodNeeds) {
  Json node = GpuNodeJson("n");
  node["metadata"]["labels"] = {{"nvidia.com/cuda.driver-version.major", "550"},
                                {"nvidia.com/cuda.driver-version.minor", "54"},
                                {"nvidia.com/cuda.driver-version.revision", "15"},
                                {"nvidia.com/cuda.runtime-version.major", "12"},
                                {"nvidia.com/cuda.runtime-version.minor", "4"},
                                {"nvidia.com/gpu.compute.major", "8"},
                                {"nvidia.com/gpu.compute.minor", "0"}};
  const TestService service({Read(node)}, nullptr, "best-fit", true);
  const auto asked = [&](const char* key, const char* version) {
    Json pod = PodWithGpus("p", 1);
    pod["metadata"]["annotations"][key] = version;
    return WhyNot(service, pod);
  };
  EXPECT_EQ(asked("berth.dev/min-driver", "550.54.14"), "");
  EXPECT_EQ(asked("berth.dev/min-driver", "560"), TextOf(Reason::kDriverTooOld));
  EXPECT_EQ(asked("berth.dev/min-cuda", "12.4"), "");
  EXPECT_EQ(asked("berth.dev/min-cuda", "12.10"), TextOf(Reason::kCudaTooOld));
  EXPECT_EQ(asked("berth.dev/min-compute-capability", "9.0"), TextOf(Reason::kCapabilityTooLow));
  Json odd = PodWithGpus("p", 1);
  odd["metadata"]["annotations"]["berth.dev/min-cuda"] = "newest";
  const std::string told = service.Ask("filter", ArgsWithNames(odd, {"n"})).dump();
  EXPECT_NE(told.find("annotation berth.dev/min-cuda: want a version such as 550, 12.4"),
            std::string::npos)
      << told;
}

TEST(MinVersions, OfAPodWithoutGpusMeanNothing) {
  const TestService service({Read(GpuNodeJson("n"))}, nullptr, "best-fit", true);
  Json pod = PodAsking("c", {{"cpu", "1"}});
  pod["metadata"]["annotations"]["berth.dev/min-driver"] = "999";
  EXPECT_EQ(WhyNot(service, pod), "");
}

}  // namespace
}  // namespace berth::test::node_fitness_test
