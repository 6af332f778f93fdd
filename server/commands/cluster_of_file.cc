// SPDX-License-Identifier: Apache-2.0
#include "server/commands/cluster_of_file.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "config/reload.h"
#include "server/dialects/cluster_loader.h"
#include "server/settings/config_file.h"

namespace berth {
namespace {

void PrintProblems(const std::string& path, const std::vector<std::string>& problems) {
  constexpr std::size_t kTold = 10;
  for (std::size_t i = 0; i < std::min(problems.size(), kTold); ++i) {
    std::fprintf(stderr, "berth: note: %s: %s\n", path.c_str(), problems[i].c_str());
  }
  if (problems.size() <= kTold) return;
  std::fprintf(stderr, "berth: note: %s: and %zu more\n", path.c_str(), problems.size() - kTold);
}

}  // namespace

Result<std::unique_ptr<ClusterOfFile>> ClusterOfFile::Load(const std::string& path,
                                                           const std::string& config) {
  BERTH_TRY(ConfigFile file, ConfigFile::Open(config, ""));
  std::unique_ptr<ClusterOfFile> cluster(new ClusterOfFile(std::move(file)));
  BERTH_TRY_STATUS(cluster->Load(path));
  return cluster;
}

Status ClusterOfFile::Load(const std::string& path) {
  BERTH_TRY(
      const dialects::LoadedCluster loaded,
      dialects::LoadCluster(path, {.state = state_,
                                   .waiting = waiting_,
                                   .budgets = budgets_,
                                   .mix = *mix_,
                                   .most_learned = double(LearningParameters().half_life_pods),
                                   .node_rules = nodes_,
                                   .extensions = {.groups = groups_,
                                                  .mig_offers = mig_offers_,
                                                  .device_classes = device_classes_,
                                                  .devices = devices_,
                                                  .open_claims = open_claims_,
                                                  .pod_rules = rules_,
                                                  .links = *nodes_.links}}));
  PrintProblems(path, loaded.problems);
  extender_ =
      std::make_unique<Extender>(Extender::Parts{.state = state_,
                                                 .binder = binder_,
                                                 .sink = sink_,
                                                 .clock = clock_,
                                                 .budgets = &budgets_,
                                                 .mix = mix_.get(),
                                                 .domains = &domains_,
                                                 .gangs = &gangs_,
                                                 .waiting = &waiting_},
                                 PolicyOf(config_, EngineFor(config_, mix_, *state_.Current())));
  extender_->TakeOverGangs();
  extender_->LookAtGangs();
  live_ = std::make_unique<const Live>(Live{.extender = *extender_,
                                            .state = state_,
                                            .waiting = waiting_,
                                            .gangs = gangs_,
                                            .domains = domains_,
                                            .pod_rules = rules_,
                                            .node_rules = nodes_,
                                            .readiness = readiness_,
                                            .shows_waiting = loaded.is_list,
                                            .mix = mix_.get(),
                                            .mig_offers = &mig_offers_});
  return {};
}

}  // namespace berth
