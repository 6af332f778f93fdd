// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "server/commands/doctor_checks.h"
#include "server/dialects/other_parts.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

using wire::Json;
using wire::TextIn;

// A kind of cluster: what a Node of it shows, how Berth is registered, what the agent needs
// (docs/clusters.md).
struct ClusterKind {
  const char *name, *label, *text;  // text: in the kubelet's version, the system or providerID
  const char* door = "";            // to its own scheduler; empty: a second scheduler
  const char* agent = "";           // values of the chart, one a line
};
constexpr ClusterKind kKinds[] = {
    {"OpenShift", "node.openshift.io/os_id", "", "",
     "openshift: true\nsecurityContext: {seLinuxOptions: {type: container_device_plugin_t}}"},
    {"AKS", "kubernetes.azure.com/cluster", "azure://"},
    {"EKS", "eks.amazonaws.com/nodegroup", "-eks-"},
    {"GKE", "cloud.google.com/gke-nodepool", "-gke."},
    {"kind", "", "kind://"},
    {"RKE2", "", "+rke2", "docs/clusters.md, RKE2: two arguments of each server"},
    {"k3s", "", "+k3s", "docs/clusters.md, k3s: an argument of each server"},
    {"k0s", "", "+k0s", "docs/clusters.md, k0s: spec.scheduler.extraArgs",
     "podResources: /var/lib/k0s/kubelet/pod-resources"},
    {"microk8s", "microk8s.io/cluster", "", "docs/clusters.md, microk8s: args/kube-scheduler"},
    {"Talos", "", "Talos", "docs/clusters.md, Talos: a patch of the machine configuration"},
    {"kubeadm", "", "", "docs/install.md, step 4: on one control plane node after the other"},
    {"of an unknown kind", "", ""},
};

const ClusterKind& KindOf(const ClusterParts& cluster) {
  for (const Json& node : cluster.seen.Of("Node")) {
    const std::string text = TextIn(node, {"status", "nodeInfo", "kubeletVersion"}) + " " +
                             TextIn(node, {"status", "nodeInfo", "osImage"}) + " " +
                             TextIn(node, {"spec", "providerID"});
    for (const ClusterKind& kind : kKinds) {
      const std::string_view label = kind.label, shown = kind.text;
      if ((!label.empty() && wire::In(node, {"metadata", "labels", label}).is_string()) ||
          (!shown.empty() && text.find(shown) != std::string::npos)) {
        return kind;
      }
    }
  }
  const bool is_kubeadm = std::ranges::any_of(cluster.schedulers, [](const auto& part) {
    return part.where.starts_with("kube-system/kube-scheduler-");
  });
  return *(std::end(kKinds) - (is_kubeadm ? 2 : 1));
}

}  // namespace

std::string InstallSteps(const ClusterParts& cluster) {
  const ClusterKind& kind = KindOf(cluster);
  const bool is_second = *kind.door == '\0';
  std::set<std::string> resources, switches;
  bool has_plugin = false;
  for (const GpuNodePart& node : cluster.nodes) {
    resources.insert(node.resources.begin(), node.resources.end());
    has_plugin = has_plugin || node.kubelet_chooses();
    if (node.kubelet_chooses() && !node.is_switched_over) switches.insert(node.switch_over);
  }
  std::vector<std::string> classes;
  for (const Json& one : cluster.seen.Of("RuntimeClass")) {
    classes.push_back(TextIn(one, {"metadata", "name"}));
  }
  const std::string& version = cluster.seen.version;
  std::string text = "# This cluster is " + std::string(kind.name) +
                     (version.empty() ? "" : ", Kubernetes " + version) + ".\n";
  for (const std::string& fact : FactsOf(cluster)) text += "# " + fact + ".\n";
  text +=
      "# Nothing was changed. Run these steps in a checkout of Berth, one after the other.\n\n"
      "# 1. Put your image into the values (docs/install.md, step 1).\n"
      "cat > values.yaml <<'EOF'\nimage: REGISTRY/berth:TAG\n";
  text += is_second ? "scheduler: {kind: second}\n" : "scheduler: {kind: own}\ntls: {mode: own}\n";
  if (!cluster.autoscaler.empty()) text += "keepNodes: {enabled: true}\n";
  if (has_plugin) {
    text += "node:\n";
    const std::vector<std::string> names(resources.begin(), resources.end());
    for (const std::string& line : dialects::AgentValues(classes, names))
      text += "  " + line + "\n";
    for (const std::string_view line : PartsOf(kind.agent, '\n')) {
      text.append("  ").append(line).append("\n");
    }
  }
  text += "EOF\n\n# 2. Install.\nkubectl apply -f manifests/base/namespace.yaml\n";
  if (!is_second) text += "manifests/components/mtls/make-certs.sh --apply\n";
  text +=
      "helm upgrade --install berth manifests/helm/berth -n berth-system -f values.yaml\n"
      "kubectl -n berth-system rollout status deployment/berth\n\n";
  text += is_second ? "# 3. Give GPU pods schedulerName: berth-scheduler.\n"
                    : "# 3. Register Berth with kube-scheduler (" + std::string(kind.door) + ").\n";
  for (const std::string& name : resources) {
    const GpuResource* const row = FindGpuResource(name);
    if (row != nullptr && !row->family) continue;  // shipped
    text += "# Add to managedResources: {name: " + name + ", ignoredByScheduler: false}\n";
  }
  if (has_plugin) {
    text +=
        "\n# 4. Start the agent, then switch the device plugin over.\n"
        "kubectl -n berth-node rollout status daemonset/berth-node\n";
  }
  for (const std::string& how : switches) {
    text += how.starts_with("kubectl") ? how + "\n"
            : how.empty()              ? "# docs/make-the-choice-real.md, step 3\n"
                                       : "# " + how + "\n";
  }
  return text + "\n# 5. Look again.\nkubectl berth doctor\n";
}

}  // namespace berth
