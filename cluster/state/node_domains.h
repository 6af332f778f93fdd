// SPDX-License-Identifier: Apache-2.0
//
// NodeDomains: the tree of domains that the labels of a snapshot's nodes make.
//
// A memo: a function of the snapshot, rebuilt only when nodes come or go or labels change.
// Placements change no label, so decisions in between reuse the tree. Any thread may call it.
#pragma once

#include <memory>
#include <string>

#include "base/mutex.h"
#include "cluster/state/snapshot.h"
#include "topology/domains/domain_tree.h"
#include "topology/domains/topology_levels.h"

namespace berth {

class NodeDomains {
 public:
  // Requires: Validate(levels).
  explicit NodeDomains(TopologyLevels levels) : levels_(std::move(levels)) {}

  [[nodiscard]] const TopologyLevels& levels() const { return levels_; }

  // By the indices of the snapshot's nodes and of the levels.
  std::shared_ptr<const DomainTree> Of(const std::shared_ptr<const Snapshot>& snapshot)
      BERTH_EXCLUDES(mutex_);

 private:
  const TopologyLevels levels_;
  Mutex mutex_;
  std::shared_ptr<const Snapshot> snapshot_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<const DomainTree> tree_ BERTH_GUARDED_BY(mutex_);  // of snapshot_
};

// Builds it; the label of a level is the first of its keys that the node has with a value.
DomainTree DomainsOf(const Snapshot& snapshot, const TopologyLevels& levels);

// "rack r7": what the nodes of the domain call it. "" = the cluster. Requires: the tree is that of
// the snapshot and the levels.
std::string DomainName(const Snapshot& snapshot, const TopologyLevels& levels,
                       const DomainTree& tree, TopologyDomain domain);

}  // namespace berth
