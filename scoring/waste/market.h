// SPDX-License-Identifier: Apache-2.0
//
// Market: what is scarce in a cluster, and what it costs.
//
// A scorer looks at one node. What its placement takes of goods that are scarce in the whole
// cluster (slots for eight GPUs, GPUs of a rare model) is worth something else every time, so the
// two are kept apart: per node what a choice takes of each good, which stays true until the node
// changes; per decision one price for each good, a function of what all nodes have of it in sum. No
// node is evaluated anew when prices move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cluster/node.h"
#include "cluster/pod_request.h"
#include "scoring/scorer.h"

namespace berth {

// Immutable: any thread may call it.
class Market {
 public:
  virtual ~Market() = default;

  [[nodiscard]] virtual std::size_t goods() const = 0;

  // Writes what the node has of each good, >= 0. Requires: amounts.size() == goods().
  virtual void Supply(const Node& node, std::span<int> amounts) const = 0;

  // Writes what the choice takes of each good. Requires: as above, and the choice fits the node.
  virtual void Taken(const Node& node, const RequestShape& shape, const DeviceChoice& choice,
                     std::span<int> amounts) const = 0;

  // What one of each good costs, in raw points of the scorer, where the cluster has `supply` of
  // them. One price per good, >= 0.
  [[nodiscard]] virtual std::vector<double> Prices(std::span<const std::int64_t> supply) const = 0;
};

}  // namespace berth
