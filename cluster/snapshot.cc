// SPDX-License-Identifier: Apache-2.0
#include "cluster/snapshot.h"

#include <utility>

namespace berth {

Snapshot::Snapshot() : Snapshot(std::vector<std::shared_ptr<const Node>>{}) {}

Snapshot::Snapshot(const std::vector<std::shared_ptr<const Node>>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const auto& node : nodes) names.push_back(node->spec().name);
  names_ = std::make_shared<const NodeNameTable>(names);
  for (std::size_t from = 0; from < nodes.size(); from += kChunkNodes) {
    auto chunk = std::make_shared<Chunk>();
    for (std::size_t i = from; i < nodes.size() && i < from + kChunkNodes; ++i) {
      (*chunk)[i - from] = nodes[i];
    }
    chunks_.push_back(std::move(chunk));
  }
}

Snapshot Snapshot::With(NodeIndex index, std::shared_ptr<const Node> node) const {
  Snapshot copy = *this;
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

}  // namespace berth
