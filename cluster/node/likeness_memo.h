// SPDX-License-Identifier: Apache-2.0
//
// LikenessMemo: remembers what was found on one node for the others of its kind. Of kinds that
// would have one place it remembers the last. What is remembered holds for nodes that live at the
// same time, as those of a snapshot do.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>
#include <vector>

#include "cluster/node/node.h"

namespace berth {

// T: a value. Not thread-safe.
template <class T>
class LikenessMemo {
 public:
  // nodes: about as many will be looked for. It takes nothing before the first Put.
  explicit LikenessMemo(std::size_t nodes = 0)
      : count_(std::bit_ceil(std::clamp(4 * nodes, kFewest, kMost))) {}

  // nullptr: nothing is remembered. Valid until the next Put or Clear.
  [[nodiscard]] T* Find(const Node& node) {
    if (places_.empty()) return nullptr;
    Place& place = PlaceOf(node);
    return place.likeness == node.likeness() ? &place.value : nullptr;
  }
  // Does nothing for a node that is like no other.
  void Put(const Node& node, T value) {
    if (node.likeness() == kLikeNoOther) return;
    if (places_.empty()) places_.resize(count_);
    PlaceOf(node) = {node.likeness(), std::move(value)};
  }
  void Clear() { places_ = {}; }
  [[nodiscard]] bool empty() const { return places_.empty(); }

 private:
  static constexpr std::size_t kFewest = 64, kMost = 65'536;
  struct Place {
    NodeLikeness likeness = 0;
    T value = {};
  };
  Place& PlaceOf(const Node& node) { return places_[node.likeness() & (count_ - 1)]; }

  std::size_t count_;
  std::vector<Place> places_;
};

}  // namespace berth
