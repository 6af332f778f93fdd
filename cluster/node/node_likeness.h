// SPDX-License-Identifier: Apache-2.0
//
// NodeLikeness: a number that nodes share if all that pods can get of them is the same, GPU by GPU.
// A cluster of a hundred thousand nodes has few kinds: who has looked at one node knows the others.
//
// What it does not tell apart: names, labels, taints, UUIDs of GPUs, and pods but for the GPUs that
// they hold. Who looks at these has to look at each node. Two kinds have one number by chance alone
// (2^-64 a pair). A number counts in its process, while nodes of that kind live: of links it has
// where they are kept.
#pragma once

#include <atomic>
#include <cstdint>

namespace berth {

class Node;

using NodeLikeness = std::uint64_t;

// Of a node that is like no other: its MIG devices, places or claims would have to be compared too.
inline constexpr NodeLikeness kLikeNoOther = 1;

NodeLikeness LikenessOf(const Node& node);

// Remembers the kind of a node that does not change. Any thread may call it; a copy remembers what
// it was copied from.
class RememberedLikeness {
 public:
  RememberedLikeness() = default;
  RememberedLikeness(const RememberedLikeness& other) : likeness_(other.load()) {}
  RememberedLikeness& operator=(const RememberedLikeness& other) {
    likeness_.store(other.load(), std::memory_order_relaxed);
    return *this;
  }
  ~RememberedLikeness() = default;

  [[nodiscard]] NodeLikeness Of(const Node& node) const {
    NodeLikeness likeness = load();
    if (likeness == kUnknown) {
      likeness = LikenessOf(node);
      likeness_.store(likeness, std::memory_order_relaxed);
    }
    return likeness;
  }
  void Forget() { likeness_.store(kUnknown, std::memory_order_relaxed); }

 private:
  static constexpr NodeLikeness kUnknown = 0;
  [[nodiscard]] NodeLikeness load() const { return likeness_.load(std::memory_order_relaxed); }
  mutable std::atomic<NodeLikeness> likeness_{kUnknown};
};

}  // namespace berth
