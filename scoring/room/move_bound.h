// SPDX-License-Identifier: Apache-2.0
//
// BoundOfMoves: what any plan costs at least, and how many moves it has at least.
//
//   one pod       the cheapest set of pods that has to leave one node for it, over all nodes: what
//                 leaves must be moved, wherever it goes
//   n alike       the cheapest slots of all nodes: for each node what 1, 2, ... slots cost at least
//                 by amounts, from below made convex, and of these the n cheapest
//   idle nodes    the nodes whose pods with GPUs are the cheapest to move
//   several kinds the largest of these
//   impossible    no node takes the pod even with all residents gone, or fewer GPUs are free than
//                 the pods ask for: a move makes no GPU
//
// It assumes that a node that lacks room for a pod lacks it also when more pods have come.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "scoring/room/room_nodes.h"

namespace berth {

// LeavingSets: which residents of a node could leave for a pod, the cheapest sets first.
//
//   LeastCost      what it costs at least by the amounts that they hold, without a look at devices
//   LeavingSets    the sets that let the pod in, by the engine's own verdict, by cost; none of them
//                  has another one of them in it
//
// With unit costs (Prices::kMoves) a set costs as much as it has pods.

enum class Prices : std::uint8_t { kCosts, kMoves };

inline std::int64_t PriceOf(const Resident& resident, Prices prices) {
  return prices == Prices::kMoves ? 1 : resident.cost;
}

// The lowest sum of prices of residents, other than those of `gone`, that hold what is missing:
// exact for up to kMostExact of them, a lower bound for more. Nothing: all of them hold too little.
inline constexpr std::size_t kMostExact = 12;
std::optional<std::int64_t> LeastCost(std::span<const Resident> residents, RoomNodes::Set gone,
                                      const Amounts& missing, Prices prices);

struct LeavingSet {
  RoomNodes::Set leave = 0;
  std::int64_t price = 0;
  std::shared_ptr<const RoomNodes::State> state;  // with the arrival
};

// Valid as long as the nodes do not change but for moments: a set is a set for the nodes as they
// were at the beginning.
class LeavingSets {
 public:
  static constexpr std::size_t kMostSets = 4096;  // that are looked at, of one node

  // Requires: MayGo. It keeps a reference to the nodes.
  LeavingSets(const RoomNodes& nodes, NodeIndex node, const Arrival& arrival, Prices prices);

  [[nodiscard]] NodeIndex node() const { return node_; }
  // The next set, at a price below the limit; nothing: there is none.
  std::optional<LeavingSet> Next(std::int64_t below);
  // No other set costs less than this.
  [[nodiscard]] std::int64_t at_least() const { return at_least_; }
  // Not all sets were looked at: there are more than kMostSets.
  [[nodiscard]] bool is_cut() const { return looked_ >= kMostSets; }
  [[nodiscard]] std::size_t looked() const { return looked_; }

 private:
  struct Entry {
    std::int64_t price;
    std::size_t last;  // of the residents in the set: an index into order_
    RoomNodes::Set set;
    friend bool operator>(const Entry& a, const Entry& b) {
      return std::pair(a.price, a.set) > std::pair(b.price, b.set);
    }
  };
  void PushAfter(const Entry& entry);
  [[nodiscard]] bool HoldEnough(RoomNodes::Set set) const;

  const RoomNodes& nodes_;
  const NodeIndex node_;
  const Arrival arrival_;
  const Prices prices_;
  Amounts missing_{};
  std::vector<std::size_t> order_;  // residents that may leave, by price
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::vector<RoomNodes::Set> found_;
  std::int64_t at_least_ = 0;
  std::size_t looked_ = 0;
};

enum class BoundBy : std::uint8_t { kNothing, kOneNode, kSlots, kIdleNodes, kFreeGpus, kNoPlace };

struct RoomBound {
  std::int64_t price = 0;
  bool impossible = false;  // there is no plan
  BoundBy by = BoundBy::kNothing;
};

RoomBound BoundOfMoves(const RoomNodes& nodes, Prices prices);

}  // namespace berth
