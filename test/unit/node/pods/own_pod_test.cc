// SPDX-License-Identifier: Apache-2.0
#include "node/pods/own_pods.h"

#include <gtest/gtest.h>

#include <string>

#include "node/kubelet/registrar.h"
#include "node/pods/given.h"

namespace berth::test::own_pod_test {
namespace {

constexpr const char* kPod = R"({
  "metadata": {"namespace": "a", "name": "p", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z",
    "annotations": {"berth.dev/decision": "0123456789abcdef", "berth.dev/devices":
      "{\"version\":1,\"node\":\"n1\",\"containers\":{\"main\":{\"gpus\":[{\"index\":0,\"uuid\":\"g0\"}]}}}"}},
  "spec": {
    "initContainers": [{"name": "side", "restartPolicy": "Always",
                        "resources": {"limits": {"nvidia.com/gpu": "1"}}},
                       {"name": "init", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
    "containers": [{"name": "none", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
                   {"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
  "status": {"phase": "Running", "containerStatuses": [
    {"name": "main", "state": {"running": {}},
     "allocatedResourcesStatus": [{"name": "nvidia.com/gpu", "resources": []}]}]}})";

TEST(ParseOwnPod, KeepsContainersThatAskForDevicesInTheKubeletsOrder) {
  const Result<node::OwnPod> pod = node::ParseOwnPod(kPod, "n1");
  ASSERT_TRUE(pod);
  ASSERT_EQ(pod->containers.size(), 3U);
  EXPECT_EQ(pod->containers[0].name, "side");
  EXPECT_FALSE(pod->containers[0].ends_first);
  EXPECT_TRUE(pod->containers[1].ends_first);
  EXPECT_EQ(pod->containers[1].asks.at("nvidia.com/gpu"), 2U);
  EXPECT_TRUE(pod->containers[2].running);
  EXPECT_TRUE(pod->containers[2].reports_devices);
  ASSERT_TRUE(pod->plan);
  EXPECT_EQ(pod->plan->containers.at("main").gpus[0].uuid, "g0");
}

TEST(ParseOwnPod, APlanForAnotherNodeIsNone) {
  const Result<node::OwnPod> pod = node::ParseOwnPod(kPod, "n2");
  ASSERT_TRUE(pod);
  EXPECT_FALSE(pod->plan);
  EXPECT_EQ(pod->plan_problem, "berth.dev/devices.node: want n2, got \"n1\"");
}

TEST(ParseOwnPod, APlanOfAPodThatBerthDidNotBindIsNone) {
  std::string forged = kPod;
  const std::string bound = R"("berth.dev/decision": "0123456789abcdef", )";
  forged.erase(forged.find(bound), bound.size());
  const Result<node::OwnPod> pod = node::ParseOwnPod(forged, "n1");
  ASSERT_TRUE(pod);
  EXPECT_FALSE(pod->plan);
  EXPECT_EQ(pod->plan_problem,
            "berth.dev/devices: want berth.dev/decision beside it, which says that Berth bound the "
            "pod");
}

TEST(ParseOwnPod, TakesAnyBytes) {
  for (const char* text :
       {"", "[]", "{}", "null", "{\"metadata\":7}", "\xff\xfe",
        R"({"metadata":{"name":"p","uid":"u"},"spec":{"containers":[null,3]}})"}) {
    node::ParseOwnPod(text, "n1");
  }
  EXPECT_FALSE(node::ParseOwnPod("{}", "n1"));
}

TEST(GivenText, IsThereWhereTheKubeletGaveOtherDevicesAndDoesNotSaySo) {
  node::OwnPod pod = *node::ParseOwnPod(kPod, "n1");
  pod.containers[2].reports_devices = false;
  const node::ListedPod as_planned = {"a", "p", {{"main", {{"nvidia.com/gpu", {"g0"}}}}}};
  const node::ListedPod other = {"a", "p", {{"main", {{"nvidia.com/gpu", {"g5"}}}}}};
  const std::set<std::string> all = {"nvidia.com/gpu"};
  EXPECT_FALSE(node::GivenText(pod, as_planned, all, {}, false));
  const std::string text = R"({"containers":{"main":{"nvidia.com/gpu":["g5"]}},"version":1})";
  EXPECT_EQ(node::GivenText(pod, other, all, {}, false), text);
  EXPECT_FALSE(node::GivenText(pod, other, {}, {}, false));  // not carried by this agent
  EXPECT_FALSE(node::GivenText(pod, other, all, {}, true));  // the status may say it yet
  pod.containers[0].running = pod.containers[1].running = pod.containers[2].running = true;
  EXPECT_EQ(node::GivenText(pod, other, all, {}, true), text);
  pod.given = text;
  EXPECT_FALSE(node::GivenText(pod, other, all, {}, false));
  pod.given.clear();
  pod.containers[2].reports_devices = true;
  EXPECT_FALSE(node::GivenText(pod, other, all, {}, false));
}

TEST(KubeletVersions, SayWhatTheKubeletDoes) {
  EXPECT_TRUE(node::ReportsDevices("v1.36.0"));
  EXPECT_FALSE(node::ReportsDevices("v1.35.9-gke.100"));
  EXPECT_FALSE(node::ReportsDevices(""));
  EXPECT_TRUE(node::KeepsBothPlugins("v1.37.2"));
  EXPECT_FALSE(node::KeepsBothPlugins("v1.36.3"));
}

TEST(PluginNames, ArePathsOfNothingElse) {
  for (const char* good : {"nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "amd.com/gpu_0"}) {
    EXPECT_TRUE(node::CheckResourceName(good)) << good;
  }
  for (const char* bad :
       {"", "gpu", "/gpu", "nvidia.com/", "a/b/c", "a b/c", "../x", "n.com/../x"}) {
    EXPECT_FALSE(node::CheckResourceName(bad)) << bad;
  }
  EXPECT_TRUE(node::CheckEndpoint("nvidia-gpu.sock"));
  for (const char* bad : {"", "..", ".", "../a.sock", "/a.sock", "a/b.sock", "kubelet.sock",
                          "berth-nvidia-com-gpu.sock", ".hidden"}) {
    EXPECT_FALSE(node::CheckEndpoint(bad)) << bad;
  }
  EXPECT_FALSE(node::CheckEndpoint(std::string(64, 'a')));
  EXPECT_EQ(node::EndpointFor("nvidia.com/gpu"), "berth-nvidia-com-gpu.sock");
  EXPECT_EQ(node::EndpointFor("nvidia.com/gpu", 2), "berth-nvidia-com-gpu-2.sock");
}

TEST(PluginFile, ReadsBackWhatItWroteAndLeavesTheRestOut) {
  const std::vector<node::PluginAddress> plugins = {
      {"nvidia.com/gpu", "nvidia-gpu.sock", {true, false}, ""},
      {"amd.com/gpu", "berth/amd.sock", {false, true}, "17-18"}};
  EXPECT_EQ(node::ParsePlugins(node::PluginsText(plugins)), plugins);
  EXPECT_TRUE(node::ParsePlugins("nvidia.com/gpu ../../etc/x pre-start=0 preferred=1\n"
                                 "gpu a.sock pre-start=0 preferred=1\n"
                                 "a.b/c d.sock pre-start=0 preferred=1 more\n\n\xff\n")
                  .empty());
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "a.com/r" + std::to_string(i) + " a.sock x y\n";
  EXPECT_EQ(node::ParsePlugins(many).size(), node::kMostResources);
}

}  // namespace
}  // namespace berth::test::own_pod_test
