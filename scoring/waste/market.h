// SPDX-License-Identifier: Apache-2.0
//
// Market: the scarce goods of a cluster and their prices.
//
// A scorer evaluates one node. The goods that its placement takes and that are scarce in the whole
// cluster (slots for eight GPUs, GPUs of a rare model) change their value all the time. So the two
// are separate: per node the amount of each good that a choice takes, which stays true until the
// node changes; per decision one price for each good, a function of the total amount on all nodes.
// No node is evaluated again when prices move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

// Immutable: any thread may call it.
class Market {
 public:
  virtual ~Market() = default;

  [[nodiscard]] virtual std::size_t goods() const = 0;

  // Writes the node's amount of each good, >= 0: the same for nodes that are alike
  // (Node::likeness). Requires: amounts.size() == goods().
  virtual void Supply(const Node& node, std::span<int> amounts) const = 0;

  // Writes the amount of each good that the choice takes. Requires: as above, and the choice fits
  // the node.
  virtual void Taken(const Node& node, const RequestShape& shape, const DeviceChoice& choice,
                     std::span<int> amounts) const = 0;

  // What one of each good costs, in raw points of the scorer, where the cluster has `supply` of
  // them. One price per good, >= 0.
  [[nodiscard]] virtual std::vector<double> Prices(std::span<const std::int64_t> supply) const = 0;
};

}  // namespace berth
