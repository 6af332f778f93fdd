// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/snapshot.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "base/check.h"
#include "cluster/values/node_constraints.h"

namespace berth {
namespace {

bool SameLabels(const Snapshot& a, const Snapshot& b) {
  if (!a.SameNodes(b)) return false;
  bool same = true;
  a.ForEachDifference(b, [&](NodeIndex i) {
    const NodeSpec& one = a.node(i).spec();
    const NodeSpec& other = b.node(i).spec();
    same = same && (&one == &other || one.labels == other.labels);
  });
  return same;
}

// A label key of a level; rank: which of its level's.
struct LevelKey {
  std::string_view key;
  std::size_t level, rank;
};

std::vector<LevelKey> SortedKeys(const TopologyLevels& levels) {
  std::vector<LevelKey> keys;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (std::size_t rank = 0; rank < levels[level].labels.size(); ++rank) {
      keys.push_back({levels[level].labels[rank], level, rank});
    }
  }
  std::ranges::sort(keys, {}, &LevelKey::key);
  return keys;
}

// Labels are many and sorted as well: one walk along both. ranks: scratch.
void ReadValues(const std::vector<LevelKey>& keys, const Labels& labels,
                std::span<std::string_view> values, std::vector<std::size_t>& ranks) {
  ranks.assign(values.size(), keys.size());
  auto label = labels.begin();
  for (const LevelKey& key : keys) {
    while (label != labels.end() && label->first < key.key) ++label;
    if (label == labels.end()) return;
    if (label->first != key.key || label->second.empty() || ranks[key.level] < key.rank) continue;
    values[key.level] = label->second;
    ranks[key.level] = key.rank;
  }
}

std::size_t Choosy(const Node& node) {
  const NodeSpec& spec = node.spec();
  return spec.taints.empty() && spec.refused_asks == nullptr ? 0U : 1U;
}
std::size_t SoftTainted(const Node& node) { return node.spec().soft_taints.empty() ? 0U : 1U; }

}  // namespace

NodeNameTable::NodeNameTable(const std::vector<std::string>& names)
    : buckets_(std::bit_ceil(names.size() * 2 + 1), kNoNode),
      successor_(std::make_unique<std::atomic<NodeIndex>[]>(names.size() + 1)) {
  ends_.reserve(names.size() + 1);
  ends_.push_back(0);
  for (const std::string& name : names) {
    text_ += name;
    ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  for (NodeIndex i = 0; i < names.size(); ++i) {
    std::size_t at = std::hash<std::string_view>{}(names[i]) & (buckets_.size() - 1);
    while (buckets_[at] != kNoNode) at = (at + 1) & (buckets_.size() - 1);
    buckets_[at] = i;
    successor_[i].store(i + 1 < names.size() ? i + 1 : 0, std::memory_order_relaxed);
  }
  successor_[names.size()].store(0, std::memory_order_relaxed);
}

NodeIndex NodeNameTable::Find(std::string_view wanted) const {
  std::size_t at = std::hash<std::string_view>{}(wanted) & (buckets_.size() - 1);
  while (buckets_[at] != kNoNode) {
    if (name(buckets_[at]) == wanted) return buckets_[at];
    at = (at + 1) & (buckets_.size() - 1);
  }
  return kNoNode;
}

Snapshot::Snapshot() : Snapshot(std::vector<std::shared_ptr<const Node>>{}) {}

Snapshot::Snapshot(const std::vector<std::shared_ptr<const Node>>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const auto& node : nodes) {
    names.push_back(node->spec().name);
    choosy_nodes_ += Choosy(*node);
    soft_tainted_nodes_ += SoftTainted(*node);
  }
  names_ = std::make_shared<const NodeNameTable>(names);
  for (std::size_t from = 0; from < nodes.size(); from += kChunkNodes) {
    auto chunk = std::make_shared<Chunk>();
    for (std::size_t i = from; i < nodes.size() && i < from + kChunkNodes; ++i) {
      (*chunk)[i - from] = nodes[i];
    }
    chunks_.push_back(std::move(chunk));
  }
}

std::size_t Snapshot::CountUnattributed() const {
  std::size_t count = 0;
  for (NodeIndex i = 0; i < size(); ++i) count += static_cast<std::size_t>(node(i).unattributed());
  return count;
}

std::size_t Snapshot::CountReserved() const {
  std::size_t count = 0;
  for (NodeIndex i = 0; i < size(); ++i) {
    for (const auto& pod : node(i).pods()) count += pod->state == PodState::kReserved ? 1U : 0U;
  }
  return count;
}

Snapshot Snapshot::With(NodeIndex index, std::shared_ptr<const Node> node) const {
  Snapshot copy = *this;
  copy.choosy_nodes_ -= Choosy(this->node(index));
  copy.choosy_nodes_ += Choosy(*node);
  copy.soft_tainted_nodes_ -= SoftTainted(this->node(index));
  copy.soft_tainted_nodes_ += SoftTainted(*node);
  auto chunk = std::make_shared<Chunk>(*chunks_[index / kChunkNodes]);
  (*chunk)[index % kChunkNodes] = std::move(node);
  copy.chunks_[index / kChunkNodes] = std::move(chunk);
  return copy;
}

bool operator==(const Snapshot& a, const Snapshot& b) {
  if (a.size() != b.size()) return false;
  for (NodeIndex i = 0; i < a.size(); ++i) {
    if (!(a.node(i) == b.node(i))) return false;
  }
  return true;
}

Status Transaction::Put(const PodRequest& pod, Placement placement) {
  const NodeIndex index = now_->names().Find(placement.node);
  if (index == kNoNode) return Fail(Errc::kNotFound, "node " + placement.node + ": not known");
  auto node = std::make_shared<Node>(now_->node(index));
  node->Remove(pod.id.uid);
  BERTH_TRY_STATUS(node->CanTake(placement, pod));
  auto record = std::make_shared<PodRecord>();
  record->pod = pod;
  record->placement = placement;
  record->state = PodState::kPlanned;
  node->Put(std::move(record));
  now_ = std::make_shared<const Snapshot>(now_->With(index, std::move(node)));
  placed_.push_back({pod, std::move(placement)});
  return {};
}

void Transaction::Take(std::string_view uid, NodeIndex node) {
  if (now_->node(node).FindPod(uid) == nullptr) return;
  auto without = std::make_shared<Node>(now_->node(node));
  without->Remove(uid);
  now_ = std::make_shared<const Snapshot>(now_->With(node, std::move(without)));
}

void Transaction::Return(const Mark& mark) {
  BERTH_CHECK(mark.placed <= placed_.size());
  now_ = mark.snapshot;
  placed_.resize(mark.placed);
}

std::shared_ptr<const DomainTree> NodeDomains::Of(const std::shared_ptr<const Snapshot>& snapshot) {
  std::shared_ptr<const Snapshot> before;
  std::shared_ptr<const DomainTree> tree;
  {
    const MutexLock lock(mutex_);
    if (snapshot == snapshot_) return tree_;
    before = snapshot_;
    tree = tree_;
  }
  if (tree == nullptr || !SameLabels(*snapshot, *before)) {  // without the lock: it may take long
    tree = std::make_shared<const DomainTree>(DomainsOf(*snapshot, levels_));
  }
  const MutexLock lock(mutex_);
  snapshot_ = snapshot;
  return tree_ = tree;
}

DomainTree DomainsOf(const Snapshot& snapshot, const TopologyLevels& levels) {
  const std::vector<LevelKey> keys = SortedKeys(levels);
  std::vector<std::string_view> values(snapshot.size() * levels.size());
  std::vector<std::size_t> ranks;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    ReadValues(keys, snapshot.node(i).spec().labels,
               std::span(values).subspan(i * levels.size(), levels.size()), ranks);
  }
  return {snapshot.size(), levels.size(), values};
}

std::string DomainName(const Snapshot& snapshot, const TopologyLevels& levels,
                       const DomainTree& tree, TopologyDomain domain) {
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const DomainTree::Range of_level = tree.Level(level);
    if (domain < of_level.first || domain >= of_level.last) continue;
    for (NodeIndex node = 0; node < snapshot.size(); ++node) {
      if (tree.DomainOf(node, level) != domain) continue;
      for (const std::string& key : levels[level].labels) {
        if (const std::string* const value = FindLabel(snapshot.node(node).spec().labels, key)) {
          return levels[level].name + " " + *value;
        }
      }
    }
  }
  return "";
}

}  // namespace berth
