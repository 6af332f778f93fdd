// SPDX-License-Identifier: Apache-2.0
//
// StartState: a cluster as it is, with the pods that are on it, for a trace to arrive on: a file
// that `berth serve --cluster` takes (server/wire/file/cluster_file.h).
//
// The existing pods stay to the end, so the capacity of the replay is what is free at the start.
// Loads, arrivals and results are fractions of it. Nodes that are not ready or have taints take no
// task; their capacity is 0.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/trace.h"
#include "cluster/state/cluster_event.h"

namespace berth::replay {

class StartState {
 public:
  // Whether the file is one of these, and not a table of nodes: it begins as a JSON object.
  static bool IsIn(const std::string& path);
  // With the configuration that is built in. Error: as DecodeCluster, with the path;
  // kInvalidArgument where nodes have GPUs and tasks can take none, with the reason.
  static Result<std::shared_ptr<const StartState>> Read(const std::string& path);

  // Sorted by name; with what is free of them.
  [[nodiscard]] const std::vector<TraceNode>& nodes() const { return nodes_; }
  [[nodiscard]] std::size_t pods() const { return pods_; }
  // What builds the cluster, its nodes under other names: names[i] is that of nodes()[i].
  [[nodiscard]] std::vector<ClusterEvent> Events(const std::vector<std::string>& names) const;

 private:
  std::vector<ClusterEvent> events_;
  std::vector<TraceNode> nodes_;
  std::size_t pods_ = 0;
};

}  // namespace berth::replay
