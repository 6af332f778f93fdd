// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/other_parts.h"

#include <algorithm>

#include "scoring/explain/node_report.h"

namespace berth::dialects {
namespace {

using wire::Json;

constexpr ObjectSource kSources[] = {
    {"Node", "/api/v1/nodes"},
    {"Pod", "/api/v1/pods"},
    {"ConfigMap", "/api/v1/namespaces/NAMESPACE/configmaps"},
    {"Lease", "/apis/coordination.k8s.io/v1/leases"},
    {"ClusterRole", "/apis/rbac.authorization.k8s.io/v1/clusterroles"},
    {"ClusterRoleBinding", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"},
    {"ValidatingAdmissionPolicyBinding",
     "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"},
    {"ResourceSlice", "/apis/resource.k8s.io/v1/resourceslices", false},
    {"ResourceSlice", "/apis/resource.k8s.io/v1beta1/resourceslices", false},
    {"RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses", false},
    {"NodePool", "/apis/karpenter.sh/v1/nodepools", false},
    {"ClusterPolicy", "/apis/nvidia.com/v1/clusterpolicies", false},
};

// Keys of nodes that show an agent which hands out their GPUs.
constexpr struct {
  const char* key;  // its beginning, of annotations, labels and allocatable
  const char* agent;
  const char* offers = nullptr;  // by its own plugin: the beginning of resources; nullptr: none
} kAgents[] = {{"hami.io/node-", "HAMi", ""},
               {"volcano.sh/vgpu-number", "Volcano", "volcano.sh/"},
               {"volcano.sh/node-vgpu-register", "Volcano", "volcano.sh/"},
               {"aliyun.com/gpu-mem", "gpushare", "aliyun.com/"},
               {"koordinator.sh/gpu", "Koordinator"},
               {"gpu-fractioning.kai.scheduler/", "NVIDIA's GPU fractioning"},
               {"berth.dev/nri", "NVIDIA's NRI plugin"}};

constexpr NeededPart kParts[] = {
    {"base", "berth", "list", "pods", [](const Config&) { return true; }},
    {"base", "berth", "watch", "nodes", [](const Config&) { return true; }},
    {"base", "berth", "create", "pods/binding", [](const Config&) { return true; }},
    {"base", "berth", "patch", "pods/status", [](const Config&) { return true; }},
    {"components/dra-devices", "berth-dra-devices", "patch", "resourceclaims/status",
     [](const Config& config) { return config.dra.choose_devices; }},
    {"components/dra-preempt", "berth-dra-preempt", "create", "pods/eviction",
     [](const Config& config) { return config.dra.preempt; }},
    {"components/make-room", "berth-make-room", "create", "pods/eviction",
     [](const Config& config) { return config.make_room.mode == MakeRoomMode::kAct; }},
    {"components/hami-nodes", "berth-hami-nodes", "patch", "nodes",
     [](const Config& config) { return config.hami.give_devices; }},
};

}  // namespace

std::span<const ObjectSource> DoctorSources() { return kSources; }

std::span<const NeededPart> NeededParts() { return kParts; }

DevicePaths DevicePathsOf(const Json& node, std::span<const std::string> resources,
                          std::span<const std::string> drivers) {
  DevicePaths paths;
  std::vector<std::string> by_plugin(resources.begin(), resources.end());
  const Json& allocatable = wire::In(node, {"status", "allocatable"});
  for (const auto& [key, agent, own] : kAgents) {
    const std::string_view offers = own == nullptr ? "" : own;
    const auto has = [key = key](const Json& map) {
      return std::ranges::any_of(map.items(), [key](const auto& item) {
        return item.key().starts_with(key) && item.value() != "0";
      });
    };
    if (!has(wire::In(node, {"metadata", "annotations"})) &&
        !has(wire::In(node, {"metadata", "labels"})) && !has(allocatable)) {
      continue;
    }
    const bool is_silent = std::ranges::none_of(allocatable.items(), [offers](const auto& item) {
      return IsExtendedResource(item.key()) && !IsNetwork(item.key()) && item.value() != "0" &&
             item.key().starts_with(offers);
    });
    if (is_silent) {
      paths.silent_agent = own == nullptr ? "" : agent;
    } else if (std::ranges::find(paths.ways, agent) == paths.ways.end()) {
      paths.ways.emplace_back(agent);
      std::erase_if(by_plugin, [offers](const auto& of) { return of.starts_with(offers); });
    }
  }
  if (!by_plugin.empty()) paths.ways.emplace_back(kDevicePlugin);
  for (const std::string& driver : drivers) {
    if (driver.starts_with("gpu.")) paths.ways.push_back("DRA driver " + driver);
  }
  return paths;
}

bool RunsNoPlugin(const Json& node) {
  const auto label = [&node](const char* key) {
    return wire::TextIn(node, {"metadata", "labels", key});
  };
  return label("nvidia.com/gpu.workload.config").starts_with("vm-") ||
         label("nvidia.com/gpu.deploy.device-plugin") == "false";
}

std::string SwitchOver(const Json& pod, const std::string& daemon_set, bool by_operator) {
  const auto says = [&](const char* part) { return daemon_set.find(part) != std::string::npos; };
  if (!says("plugin") || !(says("nvidia") || says("gpu"))) return "";
  if (says("hami") || says("volcano") || says("gpushare")) return "";
  const std::string space = wire::TextIn(pod, {"metadata", "namespace"});
  constexpr const char* kSocket =
      "KUBELET_SOCKET=/var/lib/kubelet/device-plugins/berth/kubelet.sock";
  if (says("nvidia-gpu-device-plugin")) return "not possible, its cloud takes a change back";
  if (!says("nvidia")) {
    return "hostPath /var/lib/kubelet/device-plugins/berth in DaemonSet " + space + "/" +
           daemon_set;
  }
  if (by_operator) return std::string(kSocket) + " in spec.devicePlugin.env of the ClusterPolicy";
  return "kubectl -n " + space + " set env daemonset/" + daemon_set + " " + kSocket;
}

std::vector<std::string> AgentValues(std::span<const std::string> classes,
                                     std::span<const std::string> resources) {
  std::vector<std::string> lines = {"enabled: true"};
  if (std::ranges::find(classes, "nvidia") != classes.end()) {
    lines.emplace_back("runtimeClassName: nvidia");
  }
  if (std::ranges::any_of(resources,
                          [](const auto& name) { return name.starts_with("nvidia.com/mig-"); })) {
    lines.emplace_back("env: [{name: NVIDIA_MIG_MONITOR_DEVICES, value: all}]");
    lines.emplace_back("securityContext: {capabilities: {add: [SYS_ADMIN]}}");
  }
  return lines;
}

}  // namespace berth::dialects
