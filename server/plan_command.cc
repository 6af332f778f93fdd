// SPDX-License-Identifier: Apache-2.0
#include "server/plan_command.h"

#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "cluster/node_domains.h"
#include "cluster/pod_groups.h"
#include "cluster/waiting_pods.h"
#include "config/policy.h"
#include "config/yaml_json.h"
#include "scoring/waste/learned_mix.h"
#include "server/ask_server.h"
#include "server/config_file.h"
#include "server/config_reload.h"
#include "server/dialects/registry.h"
#include "server/extender/embedded_cluster.h"
#include "server/extender/extender.h"
#include "server/extender/gang_table.h"
#include "server/wire/cluster_file.h"
#include "server/wire/json_text.h"
#include "server/wire/plan_json.h"

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

// The body of POST /plan.
Result<std::string> RequestOf(const PlanFlags& flags) {
  if (flags.files.empty()) return Invalid("plan: want a file of pods, -f FILE");
  if ((flags.add_nodes > 0) != !flags.like.empty()) {
    return Invalid("plan: want --add-nodes K and --like NODE together");
  }
  std::string body = R"({"pods":[)";
  bool is_first = true;
  for (const std::string& file : flags.files) {
    BERTH_TRY(const std::string text, TextIn(file));
    BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, file));
    for (const std::string& document : documents) {
      if (!std::exchange(is_first, false)) body += ',';
      body += document;
    }
  }
  body += ']';
  if (flags.add_nodes > 0) {
    body += R"(,"add":[{"like":)";
    wire::AppendString(body, flags.like);
    body += R"(,"count":)" + std::to_string(flags.add_nodes) + "}]";
  }
  for (std::size_t i = 0; i < flags.remove.size(); ++i) {
    body += i == 0 ? R"(,"remove":[)" : ",";
    wire::AppendString(body, flags.remove[i]);
  }
  return body + (flags.remove.empty() ? "}" : "]}");
}

class NoSink final : public DecisionSink {
 public:
  void Record(const Decision&) override {}
};

// What a Berth would be that served the file, as far as plans need it.
class ClusterOfFile {
 public:
  explicit ClusterOfFile(const Config& config) : config_(config) {}

  Status Load(const std::string& path) {
    BERTH_TRY(std::string text, ReadFile(path, kMostClusterFileBytes));
    const wire::NodeRules nodes(config_, dialects_);
    auto cluster = wire::DecodeCluster(std::move(text), nodes, &rules_);
    if (!cluster) return tl::unexpected(std::move(cluster).error().Within(path));
    BERTH_TRY_STATUS(state_.Apply(cluster->events));
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
  Result<std::string> Plan(const std::string& request, bool json) const {
    BERTH_TRY(const wire::PlanRequest plan, wire::DecodePlan(request, rules_));
    BERTH_TRY(const WhatIfAnswer answer, extender_->WouldPlace(plan.pods, plan.nodes));
    return json ? wire::EncodePlan(plan, answer) : wire::TextOf(plan, answer);
  }

 private:
  const Config& config_;
  const std::shared_ptr<const wire::Dialects> dialects_ = dialects::AllDialects(config_);
  PodGroups groups_;
  const wire::PodRules rules_{dialects_, config_.resources, config_.topology_levels, &groups_};
  ClusterState state_;
  EmbeddedCluster binder_;
  NoSink sink_;
  SystemClock clock_;
  WaitingPods waiting_;
  NodeDomains domains_{config_.topology_levels};
  GangTable gangs_{{state_, waiting_, domains_, &groups_}};
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(config_.learning);
  std::unique_ptr<Extender> extender_;
};

}  // namespace

Result<std::string> PlanCommand(const PlanFlags& flags) {
  BERTH_TRY(const std::string request, RequestOf(flags));
  if (flags.cluster.empty()) {
    return AskServer(flags.at, "POST", flags.json ? "/plan" : "/plan?text", request);
  }
  BERTH_TRY(const ConfigFile config, ConfigFile::Open(flags.config, ""));
  ClusterOfFile cluster(config.config());
  BERTH_TRY_STATUS(cluster.Load(flags.cluster));
  return cluster.Plan(request, flags.json);
}

}  // namespace berth
