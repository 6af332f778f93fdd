// SPDX-License-Identifier: Apache-2.0
//
// `berth doctor` on made clusters: nothing is said of a right one, and of each wrong one the cause
// is in the first three lines.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "config/parse_yaml.h"
#include "server/commands/doctor_command.h"
#include "server/dialects/groups/pod_group.h"
#include "server/wire/json/json_text.h"
#include "test/support/build_paths.h"
#include "test/support/read_text.h"
#include "test/support/test_certificates.h"

namespace berth::test::doctor_test {
namespace {

using Json = nlohmann::ordered_json;

std::string Shipped(const std::string& file) {
  return ReadText(SourceDir() + "/manifests/" + file);
}

// A cluster of two GPU nodes with the second scheduler, the agent, and all as it is shipped.
class World {
 public:
  World() {
    for (const char* name : {"n1", "n2"}) AddNode(name);
    AddMap("berth", "berth.yaml", Shipped("base/config/berth.yaml"));
    AddMap("config", "config.yaml", Shipped("components/second-scheduler/config.yaml"));
    Json& berth = AddPod("berth-system", "berth-0", "cp", "berth:1");
    berth["metadata"]["labels"] = {{"app.kubernetes.io/name", "berth"},
                                   {"berth.dev/leader", "true"}};
    Mount(berth, "berth", "/etc/berth", "/etc/berth/berth.yaml");
    Json& scheduler =
        AddPod("berth-system", "berth-scheduler-0", "cp", "registry.k8s.io/kube-scheduler:v1.36.3");
    Mount(scheduler, "config", "/etc/berth-scheduler", "/etc/berth-scheduler/config.yaml");
    AddGpuPod("train", "berth-scheduler", "n1", true);
    for (const char* file : {"base/rbac.yaml", "components/node/policy.yaml"}) {
      const auto documents = JsonDocuments(Shipped(file), file);
      for (const std::string& document : documents.value())
        objects.push_back(Json::parse(document));
    }
  }

  Json& Find(const std::string& kind, const std::string& name) {
    for (Json& object : objects) {
      if (object["kind"] == kind && object["metadata"]["name"] == name) return object;
    }
    ADD_FAILURE() << "no " << kind << " " << name;
    return objects.front();
  }
  void Remove(const std::string& kind, const std::string& name) {
    std::erase_if(objects, [&](Json& object) {
      return object["kind"] == kind && object["metadata"]["name"] == name;
    });
  }
  // In the text of a ConfigMap.
  void Replace(const std::string& map, const std::string& key, const std::string& from,
               const std::string& to) {
    std::string text = Find("ConfigMap", map)["data"][key];
    std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    for (; at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
    Find("ConfigMap", map)["data"][key] = text;
  }
  void AddNode(const std::string& name) {
    objects.push_back({{"kind", "Node"},
                       {"metadata",
                        {{"name", name},
                         {"labels", {{"nvidia.com/gpu.present", "true"}}},
                         {"annotations", {{"berth.dev/carries-out", "nvidia.com/gpu"}}}}},
                       {"status",
                        {{"allocatable", {{"cpu", "8"}, {"nvidia.com/gpu", "8"}}},
                         {"capacity", {{"nvidia.com/gpu", "8"}}}}}});
    objects.push_back(
        {{"kind", "Lease"},
         {"metadata",
          {{"name", name},
           {"namespace", "kube-node-lease"},
           {"managedFields", {{{"time", "2026-11-01T10:00:00Z"}}}}}},
         {"spec", {{"holderIdentity", name}, {"renewTime", "2026-11-01T10:00:00.5Z"}}}});
    Json& agent = AddPod("berth-node", "agent-" + name, name, "berth:1");
    agent["metadata"]["labels"] = {{"app.kubernetes.io/name", "berth-node"}};
    Json& plugin =
        AddPod("kube-system", "plugin-" + name, name, "nvcr.io/nvidia/k8s-device-plugin:1");
    plugin["metadata"]["ownerReferences"] = {
        {{"kind", "DaemonSet"}, {"name", "nvidia-device-plugin-daemonset"}}};
    plugin["spec"]["containers"][0]["env"] = {
        {{"name", "KUBELET_SOCKET"},
         {"value", "/var/lib/kubelet/device-plugins/berth/kubelet.sock"}}};
  }
  Json& AddPod(const std::string& space, const std::string& name, const std::string& node,
               const std::string& image) {
    objects.push_back(
        {{"kind", "Pod"},
         {"metadata",
          {{"name", name}, {"namespace", space}, {"creationTimestamp", "2026-11-01T08:00:00Z"}}},
         {"spec", {{"nodeName", node}, {"containers", {{{"name", "main"}, {"image", image}}}}}},
         {"status",
          {{"phase", "Running"},
           {"startTime", "2026-11-01T08:00:00Z"},
           {"conditions",
            {{{"type", "Ready"}, {"status", "True"}},
             {{"type", "PodScheduled"},
              {"status", "True"},
              {"lastTransitionTime", "2026-11-01T09:00:00Z"}}}}}}});
    return objects.back();
  }
  Json& AddGpuPod(const std::string& name, const std::string& scheduler, const std::string& node,
                  bool by_berth) {
    Json& pod = AddPod("default", name, node, "train:1");
    pod["spec"]["schedulerName"] = scheduler;
    pod["spec"]["containers"][0]["resources"] = {{"limits", {{"nvidia.com/gpu", "1"}}}};
    if (by_berth) pod["metadata"]["annotations"] = {{"berth.dev/devices", "{}"}};
    return pod;
  }
  // The cluster's own scheduler, of a control plane node.
  Json& AddOwnScheduler(const std::string& name, bool has_config) {
    Json& pod = AddPod("kube-system", name, "cp", "registry.k8s.io/kube-scheduler:v1.36.3");
    pod["spec"]["containers"][0]["command"] = {"kube-scheduler"};
    if (has_config) {
      pod["spec"]["containers"][0]["command"].push_back("--config=/etc/kubernetes/berth/c.yaml");
    }
    return pod;
  }
  void UseOwnScheduler() {
    Remove("Pod", "berth-scheduler-0");
    Remove("ConfigMap", "config");
    Find("Pod", "train")["spec"]["schedulerName"] = "default-scheduler";
    AddOwnScheduler("kube-scheduler-cp1", true);
  }

  [[nodiscard]] DoctorAnswer Ask(bool install = false) const {
    const Json list = {{"kind", "List"}, {"items", objects}};
    auto seen = SeeText(list.dump(), "c.json", *wire::ParseTime("2026-11-01T10:00:00Z"));
    EXPECT_TRUE(seen) << seen.error().message;
    seen->version = version;
    seen->metrics = metrics;
    return AnswerOn(*seen, install);
  }

  std::vector<Json> objects;
  std::string version = "v1.36.3", metrics;

 private:
  void AddMap(const std::string& name, const std::string& key, const std::string& text) {
    objects.push_back({{"kind", "ConfigMap"},
                       {"metadata", {{"name", name}, {"namespace", "berth-system"}}},
                       {"data", {{key, text}}}});
  }
  static void Mount(Json& pod, const std::string& map, const std::string& folder,
                    const std::string& file) {
    Json& container = pod["spec"]["containers"][0];
    container["name"] = "berth";
    container["args"] = {"--config", file};
    container["volumeMounts"] = {{{"name", "c"}, {"mountPath", folder}}};
    pod["spec"]["volumes"] = {{{"name", "c"}, {"configMap", {{"name", map}}}}};
  }
};

std::string FirstLines(const std::string& text, int count) {
  std::istringstream lines(text);
  std::string first, line;
  while (count-- > 0 && std::getline(lines, line)) first += line + "\n";
  return first;
}

constexpr const char* kHamiRegister = "GPU-a,10,40960,100,NVIDIA-A100,0,true:";

// What is done to the right world, and what the first three lines say then.
struct Situation {
  const char* says;
  std::function<void(World&)> make;
};

const std::vector<Situation>& Situations() {
  static const std::vector<Situation> all = {
      {"wrong: Install Berth", [](World& w) { w.Remove("Pod", "berth-0"); }},
      {"no pod of Berth is ready, berth-0 is ImagePullBackOff",
       [](World& w) {
         Json& status = w.Find("Pod", "berth-0")["status"];
         status = {
             {"phase", "Pending"},
             {"containerStatuses", {{{"state", {{"waiting", {{"reason", "ImagePullBackOff"}}}}}}}}};
       }},
      {"no ready pod of Berth leads",
       [](World& w) { w.Find("Pod", "berth-0")["metadata"]["labels"].erase("berth.dev/leader"); }},
      {"no scheduler asks Berth, kube-system/kube-scheduler-cp1 has no --config",
       [](World& w) {
         w.UseOwnScheduler();
         w.Remove("Pod", "kube-scheduler-cp1");
         w.Remove("Pod", "train");
         w.AddOwnScheduler("kube-scheduler-cp1", false);
       }},
      {"every control plane node (docs/install.md, step 4): kube-system/kube-scheduler-cp2 has no",
       [](World& w) {
         w.UseOwnScheduler();
         w.AddOwnScheduler("kube-scheduler-cp2", false);
       }},
      {"Register Berth with default-scheduler (docs/install.md, step 4): 1 GPU pod placed without "
       "Berth: default/train",
       [](World& w) {
         w.UseOwnScheduler();
         w.Find("Pod", "train")["metadata"].erase("annotations");
       }},
      {"Give GPU pods schedulerName: berth-scheduler: 1 GPU pod of default-scheduler",
       [](World& w) {
         w.Remove("Pod", "train");
         w.AddGpuPod("other", "default-scheduler", "n1", false);
       }},
      {"on n1 GPU pods are of berth-scheduler and volcano",
       [](World& w) { w.AddGpuPod("other", "volcano", "n1", false); }},
      {"Set nodeCacheCapable: true in the configuration of berth-system/berth-scheduler-0",
       [](World& w) { w.Replace("config", "config.yaml", "nodeCacheCapable: true\n", "\n"); }},
      {"Set weight: 141",
       [](World& w) { w.Replace("config", "config.yaml", "weight: 141", "weight: 1"); }},
      {"Set httpTimeout: 60s for bindVerb",
       [](World& w) { w.Replace("config", "config.yaml", "httpTimeout: 60s", "httpTimeout: 5s"); }},
      {"Set httpTimeout: 610s for bindVerb in the configuration of berth-system/berth-scheduler-0: "
       "Berth holds binds of a gang up to 600 s",
       [](World& w) {
         w.Find("ConfigMap", "berth")["data"]["berth.yaml"] = "gangs: {holdSeconds: 600}\n";
       }},
      {"wrong: Correct Berth's ConfigMap in berth-system: /etc/berth/berth.yaml:2: nodeToScore: "
       "unknown key, did you mean nodesToScore?",
       [](World& w) {
         w.Find("ConfigMap", "berth")["data"]["berth.yaml"] = "profile: best-fit\nnodeToScore: 1\n";
       }},
      {"berth.yaml:1: nodesToScore: want an integer",
       [](World& w) { w.Find("ConfigMap", "berth")["data"]["berth.yaml"] = "nodesToScore: x\n"; }},
      {"wrong: Correct the configuration of berth-system/berth-scheduler-0: "
       "/etc/berth-scheduler/config.yaml:",
       [](World& w) {
         w.Find("ConfigMap", "config")["data"]["config.yaml"] = "profiles:\n- a: [\n";
       }},
      {"berth-scheduler-0: only one of them speaks TLS",
       [](World& w) { w.Replace("config", "config.yaml", "http://", "https://"); }},
      {"Add preemptVerb",
       [](World& w) { w.Replace("config", "config.yaml", "preemptVerb: preempt", "{}: {}"); }},
      {"a sample of 102 nodes",
       [](World& w) {
         w.Replace("config", "config.yaml", "percentageOfNodesToScore: 100", "parallelism: 16");
         for (int i = 0; i < 100; ++i) w.AddNode("m" + std::to_string(i));
       }},
      {"Add nvidia.com/mig-1g.5gb to managedResources",
       [](World& w) {
         w.Find("Node", "n2")["status"]["allocatable"]["nvidia.com/mig-1g.5gb"] = "7";
       }},
      {"berth-scheduler-0 the version of the API server (docs/second-scheduler.md): it is v1.36.3",
       [](World& w) { w.version = "v1.34.2"; }},
      {"the device plugin looks for berth-node on n2",
       [](World& w) { w.Remove("Pod", "agent-n2"); }},
      {"Switch the plugin over: kubectl -n kube-system set env "
       "daemonset/nvidia-device-plugin-daemonset KUBELET_SOCKET=",
       [](World& w) {
         w.Find("Node", "n2")["metadata"].erase("annotations");
         w.Find("Pod", "plugin-n2")["spec"]["containers"][0].erase("env");
       }},
      {"Start the device plugin there, or read its log on n2: the device plugin is gone, or offers "
       "no GPU, on 1 GPU node: n2",
       [](World& w) { w.Find("Node", "n2")["status"]["allocatable"]["nvidia.com/gpu"] = "0"; }},
      {"offers no GPU, on 2 GPU nodes: n3, n4",
       [](World& w) {
         w.AddNode("n3");
         Json& labelled = w.Find("Node", "n3");
         labelled["metadata"]["labels"] = {{"nvidia.com/gpu.count", "8"}};
         labelled["status"] = {{"allocatable", {{"cpu", "8"}}}};
         w.AddNode("n4");
         Json& forgotten = w.Find("Node", "n4");
         forgotten["metadata"]["labels"] = Json::object();
         forgotten["status"] = {{"allocatable", {{"cpu", "8"}, {"nvidia.com/gpu", "0"}}}};
       }},
      {"Start the device plugin there, or read its log on n2: the device plugin of HAMi is gone, "
       "or "
       "offers no GPU, on 1 GPU node: n2",
       [](World& w) {
         Json& node = w.Find("Node", "n2");
         node["metadata"]["annotations"] = {{"hami.io/node-nvidia-register", kHamiRegister}};
         node["metadata"]["labels"]["nvidia.com/gpu.deploy.device-plugin"] = "false";
         node["status"]["allocatable"] = {{"cpu", "8"}, {"rdma/hca", "1"}, {"nvidia.com/gpu", "0"}};
       }},
      {"the device plugin of HAMi is gone, or offers no GPU, on 1 GPU node: n2",
       [](World& w) {
         Json& node = w.Find("Node", "n2");
         node["metadata"]["annotations"] = {{"hami.io/node-nvidia-register", kHamiRegister}};
         node["status"] = {{"allocatable", {{"cpu", "8"}}}};
       }},
      {"the device plugin of Volcano is gone, or offers no GPU, on 2 GPU nodes: n2, n3",
       [](World& w) {
         w.AddNode("n3");
         for (const char* name : {"n2", "n3"}) {
           Json& node = w.Find("Node", name);
           node["metadata"]["annotations"] = {
               {"volcano.sh/node-vgpu-register", "GPU-a,10,40960,NVIDIA-A100,true,hami-core:"}};
           node["status"] = {{"allocatable", {{"cpu", "8"}}}};
         }
         w.Find("Node", "n3")["status"]["allocatable"]["volcano.sh/vgpu-number"] = "0";
       }},
      {"Volcano and the device plugin both do on n2",
       [](World& w) {
         w.Find("Node", "n2")["status"]["allocatable"]["volcano.sh/vgpu-number"] = "10";
       }},
      {"wrong: Look again at n2: no GPU is offered there yet, the upgrade of its GPU driver failed",
       [](World& w) {
         Json& node = w.Find("Node", "n2");
         node["metadata"]["labels"]["nvidia.com/gpu-driver-upgrade-state"] = "upgrade-failed";
         node["status"]["allocatable"]["nvidia.com/gpu"] = "0";
       }},
      {"the device plugin and DRA driver gpu.nvidia.com both do on n1",
       [](World& w) {
         w.objects.push_back({{"kind", "ResourceSlice"},
                              {"metadata", {{"name", "s"}}},
                              {"spec", {{"nodeName", "n1"}, {"driver", "gpu.nvidia.com"}}}});
       }},
      {"1 GPU node had a failed MIG configuration: n2",
       [](World& w) {
         Json& node = w.Find("Node", "n2");
         node["metadata"]["labels"]["nvidia.com/mig.config.state"] = "failed";
         node["status"]["allocatable"] = {{"cpu", "8"}, {"nvidia.com/mig-1g.5gb", "7"}};
         w.Replace("config", "config.yaml", "- name: nvidia.com/gpu\n",
                   "- name: nvidia.com/gpu\n      - name: nvidia.com/mig-1g.5gb\n");
       }},
      {"Look at `kubectl berth explain node n1` (docs/my-pod-waits.md): 1 GPU node "
       "contradicted itself about its GPUs: n1",
       [](World& w) { w.Find("Node", "n1")["metadata"]["labels"]["nvidia.com/gpu.count"] = "2"; }},
      {"no policy limits Berth's rights: berth-given",
       [](World& w) { w.Remove("ValidatingAdmissionPolicyBinding", "berth-given"); }},
      {"Apply manifests/components/dra-devices again: Berth may not patch resourceclaims/status",
       [](World& w) {
         w.Find("ConfigMap", "berth")["data"]["berth.yaml"] = "dra: {chooseDevices: true}\n";
       }},
      {"Karpenter deletes the nodes that makeRoom.idleNodes keeps",
       [](World& w) {
         w.objects.push_back({{"kind", "NodePool"}, {"metadata", {{"name", "gpu"}}}});
         w.Find("ConfigMap", "berth")["data"]["berth.yaml"] =
             "makeRoom: {mode: advise, idleNodes: 1}\n";
       }},
      {"Set the clock of n2 by NTP: it is 40 s ahead of",
       [](World& w) { w.Find("Lease", "n2")["spec"]["renewTime"] = "2026-11-01T10:00:40Z"; }},
      {"Berth's certificate ends in 3 days",
       [](World& w) {
         w.metrics = "# x\nberth_tls_certificate_expiry_timestamp_seconds 1793790000\n";
       }},
  };
  return all;
}

TEST(Doctor, FindsNothingWrongWithARightCluster) {
  const DoctorAnswer answer = World().Ask();
  EXPECT_TRUE(answer.is_well) << answer.text;
  EXPECT_TRUE(answer.text.starts_with("Nothing is wrong.\n")) << answer.text;
  EXPECT_NE(answer.text.find("GPU nodes by the device plugin behind berth-node: 2."),
            std::string::npos)
      << answer.text;
  EXPECT_NE(answer.text.find("GPU pods of berth-scheduler, which asks Berth: 1."),
            std::string::npos);
}

TEST(Doctor, ReadsTimeoutsAsGoDoes) {
  const std::pair<const char*, double> kSeconds[] = {
      {"1h", 3600},  {"1m30s", 90}, {"1.5m", 90},  {".5h", 1800}, {"2.s", 2},
      {"500ms", .5}, {"7us", 7e-6}, {"7ns", 7e-9}, {"0", 0},      {"0m0s", 0}};
  for (const auto& [text, seconds] : kSeconds) {
    EXPECT_DOUBLE_EQ(dialects::GoSeconds(text).value_or(-1), seconds) << text;
  }
  for (const char* text : {"", "60", "s", "-1s", "1 h", "nans", "infs", "1e3s", "1d", "."}) {
    EXPECT_FALSE(dialects::GoSeconds(text)) << text;
  }
  for (const char* timeout : {"1h", "1m30s", "1.5m", "90000ms"}) {
    World world;
    world.Replace("config", "config.yaml", "httpTimeout: 60s",
                  std::string("httpTimeout: ") + timeout);
    const DoctorAnswer answer = world.Ask();
    EXPECT_TRUE(answer.is_well) << timeout << ": " << answer.text;
  }
}

TEST(Doctor, MissesNoPluginWhereNoneIsToRun) {
  for (const Json& labels : {Json{{"nvidia.com/gpu.workload.config", "vm-passthrough"}},
                             Json{{"nvidia.com/gpu.deploy.device-plugin", "false"}},
                             Json{{"nvidia.com/mig.config.state", "pending"}}}) {
    World world;
    world.AddNode("n3");
    Json& node = world.Find("Node", "n3");
    node["metadata"]["labels"] = labels;
    node["metadata"]["labels"]["nvidia.com/gpu.present"] = "true";
    node["status"] = {{"capacity", {{"nvidia.com/gpu", "8"}}},
                      {"allocatable", {{"cpu", "8"}, {"nvidia.com/gpu", "0"}}}};
    const DoctorAnswer answer = world.Ask();
    EXPECT_EQ(answer.text.find("device plugin is gone"), std::string::npos) << answer.text;
  }
}

TEST(Doctor, WaitsForGpusThatAreOnTheirWay) {
  for (const bool is_new : {true, false}) {
    World world;
    Json& node = world.Find("Node", "n2");
    node["status"]["allocatable"]["nvidia.com/gpu"] = "0";
    if (is_new) node["metadata"]["creationTimestamp"] = "2026-11-01T09:55:00Z";
    if (!is_new) {
      node["metadata"]["labels"]["nvidia.com/gpu-driver-upgrade-state"] = "drain-required";
    }
    const DoctorAnswer answer = world.Ask();
    EXPECT_TRUE(answer.is_well) << answer.text;
    const std::string why = is_new ? "it joined a few minutes ago"
                                   : "its GPU driver is being upgraded (drain-required)";
    EXPECT_NE(
        answer.text.find("note:  Look again at n2 later: no GPU is offered there yet, " + why),
        std::string::npos)
        << answer.text;
    node["metadata"]["creationTimestamp"] = "2026-11-01T08:00:00Z";
    node["metadata"]["labels"].erase("nvidia.com/gpu-driver-upgrade-state");
    EXPECT_FALSE(world.Ask().is_well);
  }
}

TEST(Doctor, MissesNoPluginOfAnAgentWhoseResourceHasAnotherName) {
  World world;
  Json& node = world.Find("Node", "n2");
  node["metadata"]["annotations"] = {{"hami.io/node-nvidia-register", kHamiRegister}};
  node["status"] = {{"allocatable", {{"cpu", "8"}, {"mycorp.com/vgpu", "10"}}}};
  const std::string text = world.Ask().text;
  EXPECT_EQ(text.find("is gone"), std::string::npos) << text;
}

TEST(Doctor, FindsNothingWrongWithTheClustersOwnSchedulerThatAsksBerth) {
  World world;
  world.UseOwnScheduler();
  const DoctorAnswer answer = world.Ask();
  EXPECT_TRUE(answer.is_well) << answer.text;
  EXPECT_EQ(answer.text.find("note:"), std::string::npos) << answer.text;
}

TEST(Doctor, TakesPodsFromBeforeBerthForNoFault) {
  World world;
  world.UseOwnScheduler();
  Json& old = world.AddGpuPod("old", "default-scheduler", "n2", false);
  old["status"]["conditions"][1]["lastTransitionTime"] = "2026-10-01T09:00:00Z";
  EXPECT_TRUE(world.Ask().is_well) << world.Ask().text;
}

TEST(Doctor, TakesAnotherSchedulerOnItsOwnNodesForNoFault) {
  World world;
  world.AddOwnScheduler("kube-scheduler-cp1", true);
  world.AddGpuPod("other", "default-scheduler", "n2", false);
  const DoctorAnswer answer = world.Ask();
  EXPECT_TRUE(answer.is_well) << answer.text;
  EXPECT_NE(answer.text.find("note:  Give GPU pods schedulerName: berth-scheduler"),
            std::string::npos)
      << answer.text;
}

TEST(Doctor, SaysTheCauseOfEachSituationInTheFirstThreeLines) {
  EXPECT_GE(Situations().size(), 20U);
  for (const Situation& situation : Situations()) {
    World world;
    situation.make(world);
    const DoctorAnswer answer = world.Ask();
    EXPECT_FALSE(answer.is_well) << situation.says;
    EXPECT_NE(FirstLines(answer.text, 3).find(situation.says), std::string::npos)
        << "want " << situation.says << "\ngot " << answer.text;
  }
}

TEST(Doctor, SaysOfAFileWithFewKindsWhatItDidNotLookAt) {
  World world;
  std::erase_if(world.objects, [](const Json& object) {
    return object["kind"] != "Node" && object["kind"] != "Pod";
  });
  const DoctorAnswer answer = world.Ask();
  EXPECT_TRUE(answer.is_well) << answer.text;
  EXPECT_NE(answer.text.find("not looked at: ClusterRole, ClusterRoleBinding, ConfigMap, Lease"),
            std::string::npos)
      << answer.text;
  EXPECT_FALSE(SeeText(R"({"kind":"List","items":[]})", "c.json", WallTime()));
  EXPECT_FALSE(SeeText("[1, 2", "c.json", WallTime()));
}

// kubectl is a script: two pages of nodes, and nothing else may be read but pods.
TEST(Doctor, ReadsListsPageByPageAndWhatItMayRead) {
  const TemporaryFolder folder;
  const std::string node =
      R"({"metadata":{"name":"n1"},"status":{"allocatable":{"amd.com/gpu":"1"}}})";
  const std::string script = folder.WriteText("kubectl", R"(#!/bin/sh
case "$*" in
  *continue=next) echo '{"items":[)" + node + R"(]}';;
  */nodes*) echo '{"metadata":{"continue":"next"},"items":[)" +
                                                             node + R"(]}';;
  */pods*) echo '{"items":[]}';;
  */version) echo '{"gitVersion":"v1.30.1"}';;
  *) exit 1;;
esac
)");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", (std::filesystem::path(script).parent_path().string() + ":" + path).c_str(), 1);
  DoctorFlags flags;
  flags.at.cluster.emplace();
  const auto answer = DoctorCommand(flags);
  setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(answer) << answer.error().message;
  for (const char* part : {"wrong: Install Berth", "the API server is v1.30.1",
                           "not looked at: ClusterRole, ClusterRoleBinding, ConfigMap, Lease",
                           "GPU nodes by the device plugin: 2."}) {
    EXPECT_NE(answer->text.find(part), std::string::npos)
        << "want " << part << "\ngot " << answer->text;
  }
}

TEST(Doctor, PrintsTheStepsOfThisCluster) {
  World world;
  world.objects.push_back({{"kind", "RuntimeClass"}, {"metadata", {{"name", "nvidia"}}}});
  world.Find("Node", "n1")["status"]["allocatable"]["nvidia.com/mig-1g.5gb"] = "7";
  world.Find("Pod", "plugin-n1")["spec"]["containers"][0].erase("env");
  world.AddOwnScheduler("kube-scheduler-cp1", false);
  std::string text = world.Ask(true).text;
  for (const char* part :
       {"# This cluster is kubeadm, Kubernetes v1.36.3.\n", "scheduler: {kind: own}\n",
        "  runtimeClassName: nvidia\n", "NVIDIA_MIG_MONITOR_DEVICES",
        "(docs/install.md, step 4: on one control plane node after the other)",
        "# Add to managedResources: {name: nvidia.com/mig-1g.5gb, ignoredByScheduler: false}\n",
        "\nkubectl -n kube-system set env daemonset/nvidia-device-plugin-daemonset "}) {
    EXPECT_NE(text.find(part), std::string::npos) << "want " << part << "\ngot " << text;
  }
  world.Find("Node", "n2")["metadata"]["labels"]["eks.amazonaws.com/nodegroup"] = "a";
  text = world.Ask(true).text;
  EXPECT_NE(text.find("This cluster is EKS"), std::string::npos) << text;
  EXPECT_NE(text.find("scheduler: {kind: second}\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace berth::test::doctor_test
