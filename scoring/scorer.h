// SPDX-License-Identifier: Apache-2.0
//
// Scorer: how good is it to put a pod of this shape on these devices of this node?
#pragma once

#include <cstdint>
#include <span>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/reason.h"

namespace berth {

constexpr int kMaxScore = 100;

// One way to place a pod on a node: the same amount of every GPU in the set. (Where a share takes
// other amounts of unequal GPUs, the largest.) Empty for a pod without GPU.
struct DeviceChoice {
  std::uint64_t gpus = 0;       // bit i = GPU i
  int milli = 0;                // thousandths taken of each
  std::int64_t memory_mib = 0;  // taken of each; 0 where not known
  friend bool operator==(const DeviceChoice&, const DeviceChoice&) = default;
};

// How the raw scores of a scorer are scaled once all feasible nodes are known.
enum class Normalization {
  kNone,       // they are 0..100 already
  kMinMax,     // any integers: 100 * (s - min) / (max - min), truncated; 0 where all are equal
  kBestFirst,  // any integers: 100 for the best, a hundredth less for each point below it, at least
               // 0; if all scorers that apply are of this kind and one has a market, their weighted
               // sum is scaled so, in steps of the weights' greatest common divisor
};

class Market;

// Immutable after construction: any thread may call it.
class Scorer {
 public:
  virtual ~Scorer() = default;

  // Writes one score per choice; higher is better. Requires: every choice fits the node, and
  // scores.size() == choices.size() > 0. With Normalization::kNone a score outside 0..100 is a bug.
  virtual void Score(const Node& node, const RequestShape& shape,
                     std::span<const DeviceChoice> choices, std::span<int> scores) const = 0;

  // Whether it applies to pods of that shape. One that does not is not called, and its weight does
  // not count.
  [[nodiscard]] virtual bool Applies(const RequestShape&) const { return true; }

  [[nodiscard]] virtual Normalization normalization() const { return Normalization::kNone; }

  // The deduction from the raw score in every decision: the price of everything that the choice
  // takes (market.h). nullptr: none. A profile has at most one scorer with a market.
  [[nodiscard]] virtual const Market* market() const { return nullptr; }

  // How many states of nodes it has computed so far, without those that it remembered. Only counted
  // if computing is costly, some microseconds each, so that a caller that evaluates many nodes
  // knows when to stop.
  [[nodiscard]] virtual std::uint64_t computed() const { return 0; }
};

}  // namespace berth
