// SPDX-License-Identifier: Apache-2.0
//
// ClusterOfFile: the parts of a Berth that serves a cluster of a file, for the commands that ask
// about a file in the place of a running Berth.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "cluster/claims/device_classes.h"
#include "cluster/claims/mig_offers.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/node_domains.h"
#include "cluster/state/waiting_pods.h"
#include "config/config.h"
#include "scoring/waste/learned_mix.h"
#include "server/dialects/registry.h"
#include "server/extender/embedded_cluster.h"
#include "server/extender/extender.h"
#include "server/extender/gang_table.h"
#include "server/settings/config_file.h"
#include "server/why/live.h"

namespace berth {

class ClusterOfFile {
 public:
  // config: a BerthConfiguration; empty: the built-in one. Prints on stderr what of the file cannot
  // be read. Error: as ConfigFile::Open and dialects::LoadCluster.
  static Result<std::unique_ptr<ClusterOfFile>> Load(const std::string& path,
                                                     const std::string& config);

  [[nodiscard]] const Live& live() const { return *live_; }

 private:
  class NoSink final : public DecisionSink {
   public:
    void Record(const Decision&) override {}
  };

  explicit ClusterOfFile(ConfigFile config) : file_(std::move(config)) {}
  Status Load(const std::string& path);

  const ConfigFile file_;
  const Config& config_ = file_.config();
  const std::shared_ptr<const wire::Dialects> dialects_ = dialects::AllDialects(config_);
  const wire::NodeRules nodes_{config_, dialects_};
  PodGroups groups_;
  MigOffers mig_offers_;
  DeviceClasses device_classes_;
  DeviceOffers devices_;
  OpenClaims open_claims_;
  const wire::PodRules rules_{dialects_, config_, &groups_, &device_classes_};
  ClusterState state_;
  EmbeddedCluster binder_;
  NoSink sink_;
  SystemClock clock_;
  WaitingPods waiting_;
  DisruptionBudgets budgets_;
  NodeDomains domains_{config_.topology_levels};
  GangTable gangs_{{state_, waiting_, domains_, &groups_}};
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters());
  const Readiness readiness_{nullptr};
  std::unique_ptr<Extender> extender_;
  std::unique_ptr<const Live> live_;
};

}  // namespace berth
