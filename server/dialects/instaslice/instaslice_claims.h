// SPDX-License-Identifier: Apache-2.0
//
// InstasliceClaims: the devices that AllocationClaims of instaslice hold, by node. Those of a node
// are published to ClusterState, all together, whenever one of them changes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/state/cluster_state.h"
#include "server/dialects/instaslice/instaslice_json.h"

namespace berth::dialects {

// A table as a TableSink wants it. Any thread may call any function.
class InstasliceClaims {
 public:
  using Object = AllocationClaim;

  // state outlives the object.
  explicit InstasliceClaims(ClusterState& state) : state_(state) {}

  void Put(Object claim) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  void Reset(std::vector<Object> claims) BERTH_EXCLUDES(mutex_);

 private:
  using Nodes = std::set<std::string>;

  // These add the nodes on which something may have changed.
  void Hold(Object claim, Nodes& changed) BERTH_REQUIRES(mutex_);
  void Drop(const std::string& name, Nodes& changed) BERTH_REQUIRES(mutex_);
  void Publish(const Nodes& nodes) BERTH_REQUIRES(mutex_);

  ClusterState& state_;
  Mutex mutex_;
  std::map<std::string, std::string> node_of_ BERTH_GUARDED_BY(mutex_);  // by "namespace/name"
  std::map<std::string, std::map<std::string, ClaimedGpu>> on_node_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::dialects
