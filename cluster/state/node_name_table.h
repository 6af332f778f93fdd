// SPDX-License-Identifier: Apache-2.0
//
// NodeNameTable: the names of a snapshot's nodes, sorted, with a fast way from name to index.
//
// Immutable except for a hint: the table remembers which name was asked for after which, because
// kube-scheduler sends its nodes in nearly the same order every time. The hint is only a guess that
// is compared with the text. Any thread may call it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace berth {

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

}  // namespace berth
