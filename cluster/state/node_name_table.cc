// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/node_name_table.h"

#include <bit>
#include <functional>

namespace berth {

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

}  // namespace berth
