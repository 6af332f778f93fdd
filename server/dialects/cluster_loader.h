// SPDX-License-Identifier: Apache-2.0
//
// LoadCluster: a cluster of a file (server/wire/file/cluster_file.h) into the parts of a Berth, as
// if an API server had shown it: also the objects that ecosystems watch (registry.h), such as
// ResourceClaims and Koordinator's Devices, where a List has them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/waste/request_mix.h"
#include "server/dialects/registry.h"
#include "server/wire/node/node_json.h"

namespace berth::dialects {

inline constexpr std::size_t kMostClusterFileBytes = std::size_t{256} << 20;

// What is filled. References: they outlive the call.
struct LoadedParts {
  ClusterState& state;
  WaitingPods& waiting;  // tells nobody of arrivals
  DisruptionBudgets& budgets;
  LearnedMix& mix;
  double most_learned;  // pods that stand for arrivals, where the file has no memory of these
  const wire::NodeRules& node_rules;
  ExtensionParts extensions;
  std::string* slim = nullptr;  // becomes the file as wire::SlimCluster has it
};

struct LoadedCluster {
  bool is_list = false;               // of objects of Kubernetes: the pods that wait are all known
  std::vector<std::string> problems;  // what cannot be read, each in a sentence
};

// Without a memory of the pods that arrived, those on nodes stand for them; those that wait have
// arrived after these. Error: kNotFound, kInvalidArgument, with the path and the place in the file.
Result<LoadedCluster> LoadCluster(const std::string& path, const LoadedParts& parts);

}  // namespace berth::dialects
