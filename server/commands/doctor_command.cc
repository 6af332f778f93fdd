// SPDX-License-Identifier: Apache-2.0
#include "server/commands/doctor_command.h"

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "config/parse_yaml.h"
#include "server/cli/kubectl.h"
#include "server/commands/doctor_checks.h"
#include "server/dialects/cluster_loader.h"
#include "server/dialects/other_parts.h"

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
