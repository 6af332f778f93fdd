// SPDX-License-Identifier: Apache-2.0
//
// NodeEdits: nodes that are thought to come and go, for questions about a cluster as it could be. A
// pure function of a snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/state/snapshot.h"

namespace berth {

struct NodeCopies {
  std::string like;  // the name of a node of the snapshot, or of `shape`
  int count = 1;     // 1..kMostAddedNodes
  // A node that the snapshot need not have. Its wiring and MIG products are its own: tables of
  // them are made anew for every shape.
  std::optional<NodeSpec> shape = {};
};
struct NodeEdits {
  std::vector<NodeCopies> add;
  std::vector<std::string> remove;
};
inline constexpr int kMostAddedNodes = 1000;  // by all of the copies together

struct EditedNodes {
  std::shared_ptr<const Snapshot> snapshot;
  std::vector<std::string> added;    // their names: that of the node with "-new-1" and so on
  std::vector<std::string> removed;  // sorted
  // Pods of the nodes that are removed, those that have GPUs, and the names of these, sorted.
  std::int64_t pods_lost = 0;
  std::vector<std::string> gpu_pods_lost;  // "namespace/name"
};

// An added node has what the other one or the shape has, and of its pods those of DaemonSets and
// static ones. It is ready, its GPUs are in order, and it has no taint of a passing condition
// (node.kubernetes.io/...). Its domains are those of the other one. Nodes may be removed and copied
// at once. Error: kNotFound for a node that is not there, kInvalidArgument for a count out of
// range; the message begins with the field ("add[0].like: ").
Result<EditedNodes> Edit(const std::shared_ptr<const Snapshot>& snapshot, const NodeEdits& edits);

}  // namespace berth
