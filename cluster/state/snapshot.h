// SPDX-License-Identifier: Apache-2.0
//
// Snapshot: every node at one moment. Immutable: any number of threads read it without locks.
//
// Nodes are sorted by name and held in chunks, each shared with the previous snapshot as long as
// none of its nodes changed. So two snapshots compare in O(chunks + changed nodes): same pointer,
// same node.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "topology/domains/domain_tree.h"

namespace berth {

// NodeNameTable: the names of a snapshot's nodes, sorted, with a fast way from name to index.
using NodeIndex = std::uint32_t;
constexpr NodeIndex kNoNode = 0xffffffffU;

class NodeNameTable {
 public:
  // Requires: names sorted and unique.
  explicit NodeNameTable(const std::vector<std::string>& names);
  NodeNameTable(const NodeNameTable&) = delete;
  NodeNameTable& operator=(const NodeNameTable&) = delete;

  [[nodiscard]] std::size_t size() const { return ends_.size() - 1; }
  [[nodiscard]] std::string_view name(NodeIndex index) const {
    return std::string_view(text_).substr(ends_[index], ends_[index + 1] - ends_[index]);
  }

  // The index of that name, or kNoNode.
  [[nodiscard]] NodeIndex Find(std::string_view name) const;

  // The index that followed `previous` the last time (kNoNode = at the start of a list); a guess,
  // always a valid index while the table is not empty.
  [[nodiscard]] NodeIndex GuessAfter(NodeIndex previous) const {
    return successor_[Slot(previous)].load(std::memory_order_relaxed);
  }
  void RememberAfter(NodeIndex previous, NodeIndex index) const {
    successor_[Slot(previous)].store(index, std::memory_order_relaxed);
  }

 private:
  [[nodiscard]] std::size_t Slot(NodeIndex previous) const {
    return previous == kNoNode ? size() : previous;
  }

  std::string text_;                 // all names, one after the other
  std::vector<std::uint32_t> ends_;  // name i is text_[ends_[i], ends_[i + 1])
  std::vector<NodeIndex> buckets_;   // open addressing, a power of two, at most half full
  std::unique_ptr<std::atomic<NodeIndex>[]> successor_;
};

class Snapshot {
 public:
  static constexpr std::size_t kChunkNodes = 64;
  using Chunk = std::array<std::shared_ptr<const Node>, kChunkNodes>;

  Snapshot();  // no nodes
  // Requires: nodes sorted by name, names unique.
  explicit Snapshot(const std::vector<std::shared_ptr<const Node>>& nodes);
  // The same nodes, after so many departures.
  Snapshot(const Snapshot& nodes, std::uint64_t departed) : Snapshot(nodes) {
    departed_ = departed;
  }

  [[nodiscard]] std::size_t size() const { return names_->size(); }
  [[nodiscard]] const Node& node(NodeIndex index) const {
    return *(*chunks_[index / kChunkNodes])[index % kChunkNodes];
  }
  [[nodiscard]] const std::shared_ptr<const Node>& shared(NodeIndex index) const {
    return (*chunks_[index / kChunkNodes])[index % kChunkNodes];
  }
  [[nodiscard]] const NodeNameTable& names() const { return *names_; }
  // nullptr: there is none of that name.
  [[nodiscard]] const Node* FindNode(std::string_view name) const {
    const NodeIndex index = names_->Find(name);
    return index == kNoNode ? nullptr : &node(index);
  }

  // How many nodes have taints, or asks that their kubelet refused (NodeSpec::refused_asks).
  [[nodiscard]] std::size_t choosy_nodes() const { return choosy_nodes_; }
  [[nodiscard]] std::size_t soft_tainted_nodes() const { return soft_tainted_nodes_; }
  // How many pods have only assumed GPUs (node.h). Visits every node.
  [[nodiscard]] std::size_t CountUnattributed() const;
  // How many pods are reserved, not bound. Visits every pod.
  [[nodiscard]] std::size_t CountReserved() const;

  // How many pods that held GPUs have left since ClusterState was created.
  [[nodiscard]] std::uint64_t departed() const { return departed_; }

  // A copy in which one node is replaced by another one of the same name.
  [[nodiscard]] Snapshot With(NodeIndex index, std::shared_ptr<const Node> node) const;

  // Calls visit(index) for every node that is not the same object in both. Requires:
  // SameNodes(other).
  template <class Visit>
  void ForEachDifference(const Snapshot& other, Visit visit) const;

  // Calls visit(record, index) for every pod of every node.
  template <class Visit>
  void ForEachPod(Visit visit) const {
    for (NodeIndex i = 0; i < size(); ++i) {
      for (const auto& pod : node(i).pods()) visit(pod, i);
    }
  }

  // Whether both have the same node names, by identity: true for descendants through With().
  [[nodiscard]] bool SameNodes(const Snapshot& other) const { return names_ == other.names_; }

  // Whether both are of the same objects throughout.
  [[nodiscard]] bool IsSame(const Snapshot& other) const {
    return SameNodes(other) && chunks_ == other.chunks_;
  }

  // Equal in value: same names, same free amounts.
  friend bool operator==(const Snapshot& a, const Snapshot& b);

 private:
  std::shared_ptr<const NodeNameTable> names_;
  std::vector<std::shared_ptr<const Chunk>> chunks_;
  std::size_t choosy_nodes_ = 0;
  std::size_t soft_tainted_nodes_ = 0;
  std::uint64_t departed_ = 0;
};

template <class Visit>
void Snapshot::ForEachDifference(const Snapshot& other, Visit visit) const {
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    if (chunks_[c] == other.chunks_[c]) continue;
    for (std::size_t i = 0; i < kChunkNodes; ++i) {
      if ((*chunks_[c])[i] != (*other.chunks_[c])[i]) {
        visit(static_cast<NodeIndex>(c * kChunkNodes + i));
      }
    }
  }
}

// Transaction: a snapshot in the making - pods are put on nodes one after the other, each checked
// with those before it in place, and any of the steps can be taken back.
//
// A Snapshot shares with the one before it whatever did not change. So a step costs one node and
// one chunk, every moment of the transaction is a Snapshot that anybody may read, and going back is
// keeping the old one.

struct PodPlacement {
  PodRequest pod;
  Placement placement;
};

// A value; not thread-safe.
class Transaction {
 public:
  explicit Transaction(std::shared_ptr<const Snapshot> from) : now_(std::move(from)) {}

  // What the cluster would be.
  [[nodiscard]] const std::shared_ptr<const Snapshot>& now() const { return now_; }

  // The pod takes the placement, in place of what it has on that node. Error: kConflict when it
  // does not fit, kNotFound when the node is not known; nothing changes then.
  Status Put(const PodRequest& pod, Placement placement);

  // The pod leaves the node. A pod that is not there leaves nothing.
  void Take(std::string_view uid, NodeIndex node);

  // A moment to go back to. Marks nest: going back to one forgets those after it.
  struct Mark {
    std::shared_ptr<const Snapshot> snapshot;
    std::size_t placed = 0;
  };
  [[nodiscard]] Mark Here() const { return {now_, placed_.size()}; }
  void Return(const Mark& mark);

  // What was put, in order, and not taken back by Return.
  [[nodiscard]] std::span<const PodPlacement> placed() const { return placed_; }

 private:
  std::shared_ptr<const Snapshot> now_;
  std::vector<PodPlacement> placed_;
};

// NodeDomains: the tree of domains that the labels of a snapshot's nodes make.
//
// A memo: a function of the snapshot, rebuilt only when nodes come or go or labels change.
// Placements change no label, so decisions in between reuse the tree. Any thread may call it.

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
