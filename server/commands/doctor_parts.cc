// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/padded_text.h"
#include "base/text.h"
#include "config/load.h"
#include "config/parse_yaml.h"
#include "scoring/admission.h"
#include "scoring/explain/node_report.h"
#include "scoring/mig/mig_tables.h"
#include "scoring/reason.h"
#include "server/commands/doctor_command.h"
#include "server/dialects/other_parts.h"
#include "server/dialects/registry.h"
#include "server/wire/json/json_text.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/dialect.h"

namespace berth {
namespace {

using wire::In;
using wire::Json;
using wire::TextIn;

std::string LabelOf(const Json& object, std::string_view key) {
  return TextIn(object, {"metadata", "labels", key});
}

// The FILE of --config=FILE or --config FILE.
std::string ConfigFileOf(const Json& container) {
  bool is_next = false;
  for (const char* list : {"command", "args"}) {
    for (const Json& word : In(container, {list})) {
      const std::string text = word.is_string() ? word.get<std::string>() : "";
      if (is_next) return text;
      if (text.starts_with("--config=")) return text.substr(text.find('=') + 1);
      is_next = text == "--config";
    }
  }
  return "";
}

// The content of a file that a container has of a ConfigMap; empty: it is not visible.
std::string MountedText(const SeenCluster& seen, const Json& pod, const Json& container,
                        const std::string& file) {
  for (const Json& mount : In(container, {"volumeMounts"})) {
    if (!file.starts_with(TextIn(mount, {"mountPath"}))) continue;
    for (const Json& volume : In(pod, {"spec", "volumes"})) {
      if (TextIn(volume, {"name"}) != TextIn(mount, {"name"})) continue;
      std::string key = file.substr(file.rfind('/') + 1);
      for (const Json& item : In(volume, {"configMap", "items"})) {
        if (TextIn(item, {"path"}) == key) key = TextIn(item, {"key"});
      }
      for (const Json& map : seen.Of("ConfigMap")) {
        if (TextIn(map, {"metadata", "name"}) == TextIn(volume, {"configMap", "name"}) &&
            TextIn(map, {"metadata", "namespace"}) == TextIn(pod, {"metadata", "namespace"})) {
          return TextIn(map, {"data", key});
        }
      }
    }
  }
  return "";
}

bool LeadsToBerth(const Json& extender) {
  const std::string host =
      TextIn(extender, {"urlPrefix"}) + TextIn(extender, {"tlsConfig", "serverName"});
  return host.find("berth") != std::string::npos ||
         std::ranges::any_of(In(extender, {"managedResources"}), [](const Json& resource) {
           return TextIn(resource, {"name"}).starts_with("berth.dev/");
         });
}

// When the condition became true; empty: it is not.
std::optional<WallTime> TrueSince(const Json& object, std::string_view type) {
  for (const Json& condition : In(object, {"status", "conditions"})) {
    if (TextIn(condition, {"type"}) != type || TextIn(condition, {"status"}) != "True") continue;
    return wire::ParseTime(TextIn(condition, {"lastTransitionTime"})).value_or(WallTime());
  }
  return std::nullopt;
}

// "ready", or the reason why a container waits, or the phase.
std::string WhyNotReady(const Json& pod) {
  if (TrueSince(pod, "Ready")) return "ready";
  for (const Json& status : In(pod, {"status", "containerStatuses"})) {
    const std::string reason = TextIn(status, {"state", "waiting", "reason"});
    if (!reason.empty()) return reason;
  }
  return TextIn(pod, {"status", "phase"});
}

std::vector<std::string> GpusIn(const Json& amounts, const Config& config) {
  const wire::GpuWords words(config.resources);
  std::vector<std::string> names;
  for (const auto& [name, amount] : amounts.items()) {
    const bool is_gpu = words.Find(name) || name.find("/mig-") != std::string::npos;
    if (is_gpu && amount != "0" && amount != 0) names.push_back(name);
  }
  return names;
}

std::string TroubleOf(const NodeSpec& spec) {
  if (!spec.gpu_contradiction.empty()) return "contradicted itself about its GPUs";
  const MigTrouble trouble = spec.mig_trouble();
  const bool is_over_soon = trouble == MigTrouble::kNone || trouble == MigTrouble::kChanging;
  return is_over_soon ? std::string() : std::string(PredicateOf(ReasonOf(trouble)));
}

}  // namespace

bool GpuNodePart::kubelet_chooses() const {
  return std::ranges::find(paths, dialects::kDevicePlugin) != paths.end();
}

ClusterParts::ClusterParts(const SeenCluster& cluster) : seen(cluster), since(cluster.now) {
  for (const Json& pod : seen.Of("Pod")) ReadPod(pod);
  if (!seen.Of("NodePool").empty()) autoscaler = "Karpenter";
  ReadSchedulers();
  ReadNodes();
  for (const Json& pod : seen.Of("Pod")) {
    const auto& containers = In(pod, {"spec", "containers"});
    if (std::ranges::all_of(containers, [&](const Json& container) {
          return GpusIn(In(container, {"resources", "limits"}), config).empty();
        })) {
      continue;
    }
    GpuPodPart part{
        .name = TextIn(pod, {"metadata", "namespace"}) + "/" + TextIn(pod, {"metadata", "name"}),
        .scheduler = TextIn(pod, {"spec", "schedulerName"}),
        .node = TextIn(pod, {"spec", "nodeName"}),
        .placed = TrueSince(pod, "PodScheduled")};
    if (part.scheduler.empty()) part.scheduler = "default-scheduler";
    part.by_berth = !TextIn(pod, {"metadata", "annotations", "berth.dev/devices"}).empty() ||
                    !TextIn(pod, {"metadata", "annotations", "berth.dev/decision"}).empty();
    if (part.by_berth) asking.insert(part.scheduler);
    pods.push_back(std::move(part));
  }
}

void ClusterParts::ReadPod(const Json& pod) {
  const std::string label = LabelOf(pod, "app.kubernetes.io/name");
  const std::string name = TextIn(pod, {"metadata", "name"});
  if (name.starts_with("cluster-autoscaler")) autoscaler = "cluster-autoscaler";
  has_agent = has_agent || label == "berth-node";
  if (label != "berth") return;
  ++berth_pods;
  space = TextIn(pod, {"metadata", "namespace"});
  const std::string state = WhyNotReady(pod);
  if (state != "ready") why_not = name + " is " + state;
  if (state == "ready") ready.push_back(name);
  if (state == "ready" && LabelOf(pod, "berth.dev/leader") == "true") leader = name;
  const auto created = wire::ParseTime(TextIn(pod, {"metadata", "creationTimestamp"}));
  since = std::min(since, created.value_or(since));
  for (const Json& container : In(pod, {"spec", "containers"})) {
    const std::string file = ConfigFileOf(container);
    const std::string text = MountedText(seen, pod, container, file);
    const auto read = LoadConfig(text, file);
    // Containers beside it may have configurations of their own.
    if (!read && TextIn(container, {"name"}) == "berth") config_problem = read.error().message;
    if (text.empty() || !read) continue;
    config = *read;
    has_config = true;
  }
}

void ClusterParts::ReadSchedulers() {
  for (const Json& pod : seen.Of("Pod")) {
    for (const Json& container : In(pod, {"spec", "containers"})) {
      const std::string image = TextIn(container, {"image"});
      if (image.find("kube-scheduler") == std::string::npos) continue;
      SchedulerPart part{
          .where = TextIn(pod, {"metadata", "namespace"}) + "/" + TextIn(pod, {"metadata", "name"}),
          .version = image.substr(image.rfind(':') + 1),
          .file = ConfigFileOf(container),
          .started = wire::ParseTime(TextIn(pod, {"status", "startTime"})).value_or(WallTime())};
      const auto yaml = JsonDocuments(MountedText(seen, pod, container, part.file), part.file);
      if (!yaml) part.problem = yaml.error().message;
      if (yaml && !yaml->empty()) part.config = Json::parse(yaml->front(), nullptr, false);
      if (part.config.is_discarded()) {
        part.config = nullptr;
        part.problem = part.file + ": want YAML or JSON, got JSON that ends early or is wrong";
      }
      for (const Json& profile : In(part.config, {"profiles"})) {
        part.names.push_back(TextIn(profile, {"schedulerName"}));
      }
      if (part.names.empty()) part.names = {"default-scheduler"};
      for (const Json& extender : In(part.config, {"extenders"})) {
        if (LeadsToBerth(extender)) part.berth.push_back(extender);
      }
      if (!part.berth.empty()) asking.insert(part.names.begin(), part.names.end());
      const auto same = std::ranges::find_if(schedulers, [&](const SchedulerPart& other) {
        return other.config == part.config && other.file.empty() == part.file.empty() &&
               other.problem == part.problem;
      });
      if (same == schedulers.end()) {
        schedulers.push_back(std::move(part));
      } else {
        same->started = std::max(same->started, part.started);
      }
    }
  }
}

void ClusterParts::ReadNodes() {
  std::map<std::string, std::set<std::string>> drivers;
  for (const Json& slice : seen.Of("ResourceSlice")) {
    drivers[TextIn(slice, {"spec", "nodeName"})].insert(TextIn(slice, {"spec", "driver"}));
  }
  const wire::NodeRules rules(config, dialects::AllDialects(config));
  for (const Json& node : seen.Of("Node")) {
    GpuNodePart part{.name = TextIn(node, {"metadata", "name"}),
                     .resources = GpusIn(In(node, {"status", "allocatable"}), config)};
    const auto& of = drivers[part.name];
    dialects::DevicePaths found =
        dialects::DevicePathsOf(node, part.resources, std::vector(of.begin(), of.end()));
    part.paths = std::move(found.ways);
    part.silent_agent = std::move(found.silent_agent);
    part.carries_out = !TextIn(node, {"metadata", "annotations", "berth.dev/carries-out"}).empty();
    // What cannot be read is said where a file is read as a cluster.
    const auto decoded = wire::DecodeNode(PaddedText(wire::JsonText(node)), rules);
    if (decoded) part.trouble = TroubleOf(decoded->spec);
    if (decoded) part.to_come = DriverUpgradeOf(decoded->spec);
    const auto created = wire::ParseTime(TextIn(node, {"metadata", "creationTimestamp"}));
    const bool is_new = created && *created > seen.now - std::chrono::minutes(10);
    if (part.to_come.text.empty() && is_new) part.to_come.text = "it joined a few minutes ago";
    // Nor does one run while MIG devices are changed.
    const bool has_none = (part.silent_agent.empty() && dialects::RunsNoPlugin(node)) ||
                          (decoded && decoded->spec.mig_trouble() == MigTrouble::kChanging);
    const bool had_gpus = !has_none && (!GpusIn(In(node, {"status", "capacity"}), config).empty() ||
                                        (decoded && IsGpuNode(decoded->spec)));
    if (!part.paths.empty() || had_gpus) {
      nodes.push_back(std::move(part));
    }
  }
  for (const Json& pod : seen.Of("Pod")) {
    const auto node =
        std::ranges::find(nodes, TextIn(pod, {"spec", "nodeName"}), &GpuNodePart::name);
    if (node == nodes.end()) continue;
    if (LabelOf(pod, "app.kubernetes.io/name") == "berth-node") node->agent = WhyNotReady(pod);
    std::string how;
    for (const Json& owner : In(pod, {"metadata", "ownerReferences"})) {
      how = dialects::SwitchOver(pod, TextIn(owner, {"name"}), !seen.Of("ClusterPolicy").empty());
    }
    if (how.empty()) continue;
    node->switch_over = how;
    const std::string spec = wire::JsonText(In(pod, {"spec"}));
    node->is_switched_over = spec.find("/device-plugins/berth") != std::string::npos;
  }
}

bool ClusterParts::Has(const std::string& role, const std::string& verb,
                       const std::string& resource) const {
  const auto is_it = [&](const Json& object) {
    return TextIn(object, {"metadata", "name"}) == role;
  };
  if (std::ranges::none_of(seen.Of("ClusterRoleBinding"), is_it)) return false;
  const auto has = [](const Json& list, const std::string& word) {
    return std::any_of(list.begin(), list.end(),
                       [&](const Json& one) { return one == word || one == "*"; });
  };
  for (const Json& object : seen.Of("ClusterRole")) {
    if (!is_it(object)) continue;
    for (const Json& rule : In(object, {"rules"})) {
      if (has(In(rule, {"verbs"}), verb) && has(In(rule, {"resources"}), resource)) return true;
    }
  }
  return false;
}

}  // namespace berth
