// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/node_domains.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/values/labels.h"

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

}  // namespace

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
