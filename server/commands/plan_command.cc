// SPDX-License-Identifier: Apache-2.0
#include "server/commands/plan_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/node_domains.h"
#include "cluster/state/waiting_pods.h"
#include "config/policy.h"
#include "config/yaml_json.h"
#include "scoring/waste/learned_mix.h"
#include "server/commands/ask_server.h"
#include "server/dialects/registry.h"
#include "server/extender/embedded_cluster.h"
#include "server/extender/extender.h"
#include "server/extender/gang_table.h"
#include "server/pages/plan_page.h"
#include "server/settings/config_file.h"
#include "server/settings/config_reload.h"
#include "server/why/plan_request.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

constexpr std::size_t kMostClusterFileBytes = std::size_t{256} << 20;

Result<std::string> TextIn(const std::string& file) {
  if (file != "-") return ReadFile(file, wire::kMostPlanBytes);
  std::string text = ReadStandardInput(wire::kMostPlanBytes);
  if (text.size() > wire::kMostPlanBytes) {
    return tl::unexpected(TooLarge("standard input", wire::kMostPlanBytes));
  }
  return text;
}

Status Check(const PlanFlags& flags) {
  if (flags.files.empty() && flags.grow == 0) {
    return Invalid("plan: want a file of pods, -f FILE, or --grow COUNT");
  }
  if (!flags.machine_types.empty() && flags.grow == 0) {
    return Invalid("plan: want --grow COUNT with --machine-type");
  }
  if (flags.add_nodes.size() != flags.like.size()) {
    return Invalid("plan: want one --like for each --add-nodes, got " +
                   std::to_string(flags.like.size()) + " and " +
                   std::to_string(flags.add_nodes.size()));
  }
  if (std::ranges::count(flags.files, "-") + std::ranges::count(flags.like, "-") > 1) {
    return Invalid("plan: want standard input (-) only once");
  }
  return {};
}

// Adds what --like says: the name of a node, or the Node that is in a file.
Status AddLike(const std::string& like, std::string& body) {
  if (!IsShapeFile(like)) {
    wire::AppendString(body, like);
    return {};
  }
  BERTH_TRY(const std::string text, TextIn(like));
  BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, like));
  if (documents.size() != 1) {
    return Invalid("--like " + like + ": want one Node, got " + std::to_string(documents.size()) +
                   " documents");
  }
  if (!documents.front().starts_with('{')) return Invalid("--like " + like + ": want a Node");
  body += documents.front();
  return {};
}

// Adds a list after other fields; nothing where it is empty.
void AddNames(const char* field, const std::vector<std::string>& names, std::string& body) {
  if (names.empty()) return;
  body += std::string(",\"") + field + "\":[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) body += ',';
    wire::AppendString(body, names[i]);
  }
  body += ']';
}

// The namespace of objects that name none: as kubectl would create them.
Result<std::string> NamespaceFor(const PlanFlags& flags) {
  if (!flags.namespace_name.empty()) return flags.namespace_name;
  if (!flags.at.cluster || !flags.cluster.empty() || flags.files.empty()) return "default";
  return CurrentNamespace(*flags.at.cluster);
}

// The body of POST /plan.
Result<std::string> RequestOf(const PlanFlags& flags) {
  BERTH_TRY_STATUS(Check(flags));
  BERTH_TRY(const std::string space, NamespaceFor(flags));
  std::string body = "{";
  if (flags.grow > 0) body += R"("grow":)" + std::to_string(flags.grow);
  if (!flags.files.empty()) body += flags.grow > 0 ? R"(,"pods":[)" : R"("pods":[)";
  bool is_first = true;
  for (const std::string& file : flags.files) {
    BERTH_TRY(const std::string text, TextIn(file));
    BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, file));
    for (const std::string& document : documents) {
      if (!std::exchange(is_first, false)) body += ',';
      body += document;
    }
  }
  if (!flags.files.empty()) body += ']';
  for (std::size_t i = 0; i < flags.like.size(); ++i) {
    body += i == 0 ? R"(,"add":[{"like":)" : R"(,{"like":)";
    BERTH_TRY_STATUS(AddLike(flags.like[i], body));
    body += R"(,"count":)" + std::to_string(flags.add_nodes[i]) + "}";
  }
  if (!flags.like.empty()) body += ']';
  AddNames("remove", flags.remove, body);
  AddNames("machine_types", flags.machine_types, body);
  if (space != "default") {  // a Berth of version 0.1.0 knows no other
    body += R"(,"namespace":)";
    wire::AppendString(body, space);
  }
  return body + "}";
}

// An error about a field of the request, in the words in which it was asked.
Error AsAsked(Error error, const PlanFlags& flags) {
  for (std::size_t i = 0; i < flags.machine_types.size(); ++i) {
    const std::string field = "machine_types[" + std::to_string(i) + "]";
    const std::size_t at = error.message.find(field);
    if (at != std::string::npos) error.message.replace(at, field.size(), "--machine-type");
  }
  for (std::size_t i = 0; i < flags.like.size(); ++i) {
    const std::string field = "add[" + std::to_string(i) + "].like";
    const std::size_t at = error.message.find(field);
    if (at == std::string::npos) continue;
    const bool goes_on = error.message.compare(at + field.size(), 1, ".") == 0;
    error.message.replace(at, field.size() + (goes_on ? 1 : 0),
                          "--like " + flags.like[i] + (goes_on ? ": " : ""));
  }
  return error;
}

class NoSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
};

// The parts of a Berth that serves the file which plans need.
class ClusterOfFile {
 public:
  explicit ClusterOfFile(const Config& config) : config_(config) {}

  Status Load(const std::string& path) {
    BERTH_TRY(std::string text, ReadFile(path, kMostClusterFileBytes));
    auto cluster = wire::DecodeCluster(std::move(text), nodes_, &rules_, &groups_);
    if (!cluster) return tl::unexpected(std::move(cluster).error().Within(path));
    BERTH_TRY_STATUS(state_.Apply(cluster->events));
    for (WaitingPod& pod : cluster->waiting) waiting_.Put(std::move(pod));
    const auto snapshot = state_.Current();
    // Without a memory of the pods that came, those that are there stand for them.
    mix_->Restore(cluster->learned ? *cluster->learned
                                   : BoundPods(*snapshot, config_.learning.half_life_pods));
    extender_ = std::make_unique<Extender>(Extender::Parts{.state = state_,
                                                           .binder = binder_,
                                                           .sink = sink_,
                                                           .clock = clock_,
                                                           .mix = mix_.get(),
                                                           .domains = &domains_,
                                                           .gangs = &gangs_,
                                                           .waiting = &waiting_},
                                           PolicyOf(config_, EngineFor(config_, mix_, *snapshot)));
    return {};
  }

  // Requires: Load.
  Result<std::string> Plan(const std::string& request, bool json) {
    const Live live{*extender_, state_, waiting_, gangs_, domains_, rules_, nodes_, readiness_};
    return MakePlan(live, request, !json);
  }

 private:
  const Config& config_;
  const std::shared_ptr<const wire::Dialects> dialects_ = dialects::AllDialects(config_);
  const wire::NodeRules nodes_{config_, dialects_};
  PodGroups groups_;
  const wire::PodRules rules_{dialects_, config_, &groups_};
  ClusterState state_;
  EmbeddedCluster binder_;
  NoSink sink_;
  SystemClock clock_;
  WaitingPods waiting_;
  NodeDomains domains_{config_.topology_levels};
  GangTable gangs_{{state_, waiting_, domains_, &groups_}};
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(config_.learning);
  std::unique_ptr<Extender> extender_;
  const Readiness readiness_{nullptr};
};

Result<std::string> Ask(const PlanFlags& flags, const std::string& request) {
  if (flags.cluster.empty()) {
    return AskServer(flags.at, "POST", flags.json ? "/plan" : "/plan?text", request);
  }
  BERTH_TRY(const ConfigFile config, ConfigFile::Open(flags.config, ""));
  ClusterOfFile cluster(config.config());
  BERTH_TRY_STATUS(cluster.Load(flags.cluster));
  return cluster.Plan(request, flags.json);
}

}  // namespace

bool IsShapeFile(const std::string& like) {
  if (like == "-" || like.find('/') != std::string::npos) return true;
  for (const char* ending : {".yaml", ".yml", ".json"}) {
    if (like.ends_with(ending)) return true;
  }
  std::error_code ignored;  // what cannot be asked about is no file
  return std::filesystem::is_regular_file(like, ignored);
}

Result<std::string> PlanCommand(const PlanFlags& flags) {
  BERTH_TRY(const std::string request, RequestOf(flags));
  auto told = Ask(flags, request);
  if (!told) return tl::unexpected(AsAsked(std::move(told).error(), flags));
  return told;
}

}  // namespace berth
