// SPDX-License-Identifier: Apache-2.0
#include "server/commands/doctor_command.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "config/parse_yaml.h"
#include "server/commands/ask_server.h"
#include "server/dialects/cluster_loader.h"
#include "server/dialects/other_parts.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

using wire::In;
using wire::Json;
using wire::TextIn;

// Without who wrote which field, and the images of nodes: half of the text.
Json Parsed(const std::string& text) {
  const auto keep = [](int, Json::parse_event_t event, const Json& parsed) {
    return event != Json::parse_event_t::key || (parsed != "fieldsV1" && parsed != "images");
  };
  return Json::parse(text, keep, false);
}

// Pods that hold devices, schedule pods or offer GPUs. Of others there may be very many.
bool IsOfInterest(const Json& pod) {
  const std::string phase = TextIn(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return false;
  if (TextIn(pod, {"metadata", "labels", "app.kubernetes.io/name"}).starts_with("berth"))
    return true;
  for (const Json& container : In(pod, {"spec", "containers"})) {
    const Json& limits = In(container, {"resources", "limits"});
    const std::string text = TextIn(container, {"image"}) + " " + TextIn(container, {"name"});
    const auto says = [&](const char* part) { return text.find(part) != std::string::npos; };
    const bool has_devices = std::ranges::any_of(
        limits.items(), [](const auto& item) { return item.key().find('/') != std::string::npos; });
    if (has_devices || says("scheduler") || says("plugin") || says("autoscal") ||
        says("karpenter")) {
      return true;
    }
  }
  return false;
}

void Put(Json object, std::string kind, SeenCluster& seen) {
  if (const std::string own = TextIn(object, {"kind"}); !own.empty()) kind = own;
  if (kind == "Pod" && !IsOfInterest(object)) return;
  seen.objects[kind].push_back(std::move(object));
}

Status ReadList(const KubectlTarget& target, const std::string& path, const std::string& kind,
                SeenCluster& seen) {
  std::string more;
  do {
    const std::string from = more.empty() ? "" : "&continue=" + more;
    BERTH_TRY(const std::string text,
              KubectlPrints(target, {"get", "--raw", path + "?limit=500" + from},
                            dialects::kMostClusterFileBytes, kind == "Node" || kind == "Pod"));
    Json page = Parsed(text);
    more = TextIn(page, {"metadata", "continue"});
    if (!In(page, {"items"}).is_array()) return Invalid(path + ": want a list");
    for (Json& item : page["items"]) Put(std::move(item), kind, seen);
  } while (!more.empty());
  return {};
}

Result<SeenCluster> SeeCluster(const ServerAddress& at) {
  SeenCluster seen;
  seen.now = SystemClock().Wall();
  // Aloud: an exec plugin may have to ask the user to log in.
  BERTH_TRY(const std::string version,
            KubectlPrints(*at.cluster, {"get", "--raw", "/version"}, kMostFileBytes, true));
  seen.version = TextIn(Parsed(version), {"gitVersion"});
  for (const dialects::ObjectSource& source : dialects::DoctorSources()) {
    const std::string kind = source.kind;
    if (!seen.Of(kind).empty()) continue;  // in another version of the API
    std::set<std::string> spaces = {"kube-system"};
    for (const Json& pod : seen.Of("Pod")) {  // those of schedulers, and not those of users
      const std::string name = TextIn(pod, {"metadata", "name"});
      const bool schedules = name.starts_with("berth") || name.find("sched") != std::string::npos;
      if (schedules) spaces.insert(TextIn(pod, {"metadata", "namespace"}));
    }
    if (kind != "ConfigMap") spaces = {""};
    for (const std::string& space : spaces) {
      std::string path = source.path;
      if (!space.empty()) path.replace(path.find("NAMESPACE"), 9, space);
      const Status read = ReadList(*at.cluster, path, kind, seen);
      if (!read && (kind == "Node" || kind == "Pod")) return tl::unexpected(read.error());
      if (!read && source.is_always_there) seen.unread.insert(kind);
    }
  }
  if (auto metrics = AskServer(at, "GET", "/metrics")) seen.metrics = *std::move(metrics);
  return seen;
}

// A kind of cluster (docs/clusters.md): what its Nodes show, how Berth and its agent are set up.
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

// A values file of the chart, commands and steps.
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

}  // namespace

const std::vector<Json>& SeenCluster::Of(const std::string& kind) const {
  static const std::vector<Json> kNone;
  const auto found = objects.find(kind);
  return found == objects.end() ? kNone : found->second;
}

Result<SeenCluster> SeeText(const std::string& text, const std::string& origin, WallTime now) {
  BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, origin));
  SeenCluster seen;
  seen.now = now;
  for (const std::string& document : documents) {
    Json object = Parsed(document);
    const std::string kind = TextIn(object, {"kind"});
    if (!kind.ends_with("List")) Put(std::move(object), kind, seen);
    if (!kind.ends_with("List") || !In(object, {"items"}).is_array()) continue;
    for (Json& item : object["items"]) Put(std::move(item), kind.substr(0, kind.size() - 4), seen);
  }
  if (seen.Of("Node").empty()) {
    return Invalid(origin + ": want what `kubectl get nodes,pods -A -o json` prints, got no Node");
  }
  for (const dialects::ObjectSource& source : dialects::DoctorSources()) {
    if (source.is_always_there && seen.Of(source.kind).empty()) seen.unread.insert(source.kind);
  }
  return seen;
}

DoctorAnswer AnswerOn(const SeenCluster& seen, bool install) {
  const ClusterParts cluster(seen);
  if (install) return {.text = InstallSteps(cluster)};
  DoctorAnswer answer;
  for (const Finding& finding : FindingsOf(cluster)) {
    if (finding.is_wrong) answer.is_well = false;
    answer.text += finding.is_wrong ? "wrong: " : "note:  ";
    answer.text += finding.cure + ": " + finding.cause + ".\n";
  }
  if (answer.is_well) answer.text += "Nothing is wrong.\n";
  for (const std::string& fact : FactsOf(cluster)) answer.text += "       " + fact + ".\n";
  return answer;
}

Result<DoctorAnswer> DoctorCommand(const DoctorFlags& flags) {
  if (flags.cluster.empty()) {
    BERTH_TRY(const SeenCluster seen, SeeCluster(flags.at));
    return AnswerOn(seen, flags.install);
  }
  BERTH_TRY(const std::string text, ReadFile(flags.cluster, dialects::kMostClusterFileBytes));
  BERTH_TRY(const SeenCluster seen, SeeText(text, flags.cluster, SystemClock().Wall()));
  return AnswerOn(seen, flags.install);
}

}  // namespace berth
