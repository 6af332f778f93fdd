// SPDX-License-Identifier: Apache-2.0
//
// PlanTable: what one request shape finds where, along snapshots that are only thought of.
//
// A private copy of the engine's table of that shape (evaluation_table.h): the shared one follows
// the cluster, and following a plan as well would make every other decision evaluate the difference
// twice. The prices are those of the first snapshot: one plan, one price list. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "scoring/engine/evaluation_table.h"

namespace berth {

class PlanTable {
 public:
  // profile: whatever keeps the table's profile alive. The table is that of the snapshot.
  PlanTable(std::shared_ptr<const void> profile, std::shared_ptr<const Snapshot> snapshot,
            RequestShape shape, EvaluationTable table, std::vector<double> prices)
      : profile_(std::move(profile)),
        snapshot_(std::move(snapshot)),
        shape_(std::move(shape)),
        table_(std::move(table)),
        prices_(std::move(prices)) {}

  // Evaluates the nodes that are not the same objects as before.
  void Follow(const std::shared_ptr<const Snapshot>& snapshot);

  [[nodiscard]] bool Fits(NodeIndex node) const { return table_.reason(node) == Reason::kFits; }

  // The higher the better, comparable within one call. Requires: all of them fit.
  [[nodiscard]] std::vector<std::int64_t> Ranks(std::span<const NodeIndex> candidates);

  // Requires: it fits there.
  [[nodiscard]] Placement PlaceOn(NodeIndex node);

 private:
  std::shared_ptr<const void> profile_;
  std::shared_ptr<const Snapshot> snapshot_;
  RequestShape shape_;
  EvaluationTable table_;
  std::vector<double> prices_;
};

}  // namespace berth
