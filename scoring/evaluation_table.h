// SPDX-License-Identifier: Apache-2.0
//
// EvaluationTable: what every node of a snapshot is to one request shape under one profile.
//
// Refreshing it evaluates only the nodes that are not the same objects as last time: after a
// placement that is one, so a decision costs a few evaluations and one pass over the rows. A memo,
// nothing more: it is a function of the snapshot that it was last refreshed to.
//
// Not thread-safe; Engine guards it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cluster/snapshot.h"
#include "scoring/profile.h"
#include "scoring/reason.h"

namespace berth {

class EvaluationTable {
 public:
  // Requires: the profile outlives the table.
  EvaluationTable(const Profile& profile, RequestShape shape);

  void Refresh(const std::shared_ptr<const Snapshot>& snapshot);

  // Of the snapshot of the last Refresh.
  [[nodiscard]] Reason reason(NodeIndex node) const { return reasons_[node]; }
  // Meaningful where the reason is kFits.
  [[nodiscard]] const DeviceChoice& choice(NodeIndex node) const { return choices_[node]; }
  // Weighted mean score of each candidate in hundredths, 0..kMaxTotal. Requires: all of them fit.
  [[nodiscard]] std::vector<int> Totals(std::span<const NodeIndex> candidates) const;

  // All nodes that fit, in order.
  [[nodiscard]] std::vector<NodeIndex> Fitting() const;

 private:
  void Evaluate(NodeIndex index, const Node& node);
  void Resize(std::size_t nodes);
  [[nodiscard]] std::vector<int> NormalizedTotals(std::span<const NodeIndex> candidates) const;

  const Profile& profile_;
  const RequestShape shape_;
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<Reason> reasons_;
  std::vector<DeviceChoice> choices_;
  // Scores that do not depend on the other candidates are summed up at once; of a profile with a
  // scorer that normalizes, the parts are kept.
  const bool normalizes_;
  int weights_ = 0;                    // sum
  std::vector<int> totals_;            // [node], unless normalizes_
  std::vector<std::vector<int>> raw_;  // [scorer][node], if normalizes_
  std::vector<int> scratch_;
};

}  // namespace berth
