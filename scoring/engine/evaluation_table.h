// SPDX-License-Identifier: Apache-2.0
//
// EvaluationTable: for one request shape and profile, each node's filter verdict, best device
// choice and score.
//
// A refresh examines only the nodes that are not the same objects as last time: after a placement
// that is one, so a decision costs a few evaluations and one pass over the rows.
//
// A refresh has a limited effort, so that no decision stalls on a new table: a number of nodes to
// score and, if scorers compute (Scorer::computed), a number of states to compute. The remaining
// nodes, later ones by name, wait for the next refresh or for Continue. Until then they count as
// fitting and rank behind the scored ones. If none remain, the table is a function of the snapshot
// that it was last refreshed to.
//
// Prices (market.h) differ between decisions and come with the question. A node therefore keeps up
// to two options, the best choice for each of two ways to take priced goods: only the prices decide
// which of them is better.
//
// So do wishes (WorkloadFit), which depend on the spec of a node alone: shapes that differ in them
// can share a table, and a node is evaluated once for all classes of pods.
//
// Not thread-safe; ProfileTables guards it. A copy has nothing in common with the original but the
// profile.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/profile.h"
#include "scoring/reason.h"

namespace berth {

struct RefreshEffort {
  std::uint64_t states = 40;
  std::size_t nodes = std::numeric_limits<std::size_t>::max();
};

class EvaluationTable {
 public:
  static constexpr std::uint64_t kStatesPerRefresh = RefreshEffort().states;

  // Whether the table of that shape serves others too that wish something of nodes and are else the
  // same: the scorers count in the same steps as WorkloadFit, which the profile has, and what a pod
  // takes of GPUs is the same on all nodes.
  [[nodiscard]] static bool SharesWishes(const Profile& profile, const RequestShape& shape);

  // Requires: the profile outlives the table.
  EvaluationTable(const Profile& profile, RequestShape shape);

  void Refresh(const std::shared_ptr<const Snapshot>& snapshot, const RefreshEffort& effort = {});

  // Whether nodes wait to be scored / scores more of them. Requires: it was refreshed.
  [[nodiscard]] bool waits() const { return waiting_ > 0; }
  void Continue(const RefreshEffort& effort) { ScoreWaiting(effort); }

  // Of the snapshot of the last Refresh.
  [[nodiscard]] Reason reason(NodeIndex node) const { return reasons_[node]; }
  // Meaningful if the reason is kFits. Prices: those of the profile's market; none without a
  // market.
  [[nodiscard]] const DeviceChoice& choice(NodeIndex node, std::span<const double> prices = {});
  // Weighted mean score of each candidate in hundredths, 0..kMaxTotal; 0 for a waiting one, unless
  // all of them wait. Some come last, with 0, behind the others, who have more: all but the least
  // behind (behind.h). Requires: all of them fit.
  //
  // wishes: of this pod, beside the table's shape; none unless takes_wishes().
  [[nodiscard]] std::vector<int> Totals(std::span<const NodeIndex> candidates,
                                        std::span<const double> prices = {},
                                        std::span<const TraitWish> wishes = {});

  [[nodiscard]] bool takes_wishes() const { return wish_weight_ > 0; }  // SharesWishes

  // The emptiness of each candidate (emptiness.h), if the profile's rule for ties compares it for
  // the shape; else empty.
  [[nodiscard]] std::vector<int> Emptiness(std::span<const NodeIndex> candidates) const;

  // What a total weighs beside other scores: the sum of the weights of the scorers that apply to
  // the shape or, where they are summed up in steps, the step.
  [[nodiscard]] int weights(std::span<const TraitWish> wishes = {}) const {
    return wishes.empty() ? weights_ : StepWithWishes();
  }

  // All nodes that fit, in order.
  [[nodiscard]] std::vector<NodeIndex> Fitting() const;

 private:
  // Rows: one per node, or kOptions per node where the profile has a market.
  static constexpr std::size_t kOptions = 2;
  using Bundle = std::vector<int>;  // what a choice takes of each good

  void LookAt(NodeIndex index, const Node& node);
  void ScoreWaiting(const RefreshEffort& effort);
  void Score(NodeIndex index);
  [[nodiscard]] std::vector<int> TotalsOfAll(std::span<const NodeIndex> candidates,
                                             std::span<const double> prices,
                                             std::span<const TraitWish> wishes);
  void PutSomeLast(std::span<const NodeIndex> candidates, std::span<int> totals) const;
  [[nodiscard]] std::vector<int> TotalsOfScored(std::span<const NodeIndex> candidates,
                                                std::span<const double> prices,
                                                std::span<const TraitWish> wishes);
  [[nodiscard]] std::vector<int> TotalsInSteps(std::span<const NodeIndex> candidates,
                                               std::span<const int> bundle_costs,
                                               std::span<const TraitWish> wishes);
  [[nodiscard]] int StepWithWishes() const;
  // The weighted points of the wishes, per node; kept for the wishes that were asked about last.
  [[nodiscard]] const std::vector<int>& PointsOfWishes(std::span<const TraitWish> wishes);
  [[nodiscard]] int PointsOn(const NodeSpec& spec, std::span<const TraitWish> wishes) const;
  void Resize(std::size_t nodes);
  [[nodiscard]] std::uint64_t Computed() const;
  void KeepBest(NodeIndex index, std::span<const DeviceChoice> choices,
                std::span<const int> totals);
  void KeepOptions(NodeIndex index, const Node& node, std::span<const DeviceChoice> choices,
                   std::span<const int> totals);
  void KeepRow(std::size_t row, std::span<const DeviceChoice> choices, std::size_t choice);
  [[nodiscard]] std::uint32_t BundleOf(const Node& node, const DeviceChoice& choice);

  [[nodiscard]] std::vector<int> BundleCosts(std::span<const double> prices) const;
  // The better option of the node: its row. Lower ones win ties.
  [[nodiscard]] std::size_t BestRow(NodeIndex node, std::span<const int> bundle_costs) const;
  // Weighted, the price off.
  [[nodiscard]] std::int64_t SumOf(std::size_t row, std::span<const int> bundle_costs) const;
  [[nodiscard]] std::vector<int> NormalizedTotals(std::span<const std::size_t> rows,
                                                  std::span<const int> bundle_costs) const;

  const Profile& profile_;
  const RequestShape shape_;
  const std::vector<const Profile::Weighted*> scorers_;  // those that apply to the shape
  std::shared_ptr<const Snapshot> snapshot_;
  std::vector<Reason> reasons_;
  const bool compares_emptiness_;
  std::vector<int> emptiness_;         // [node] of those that fit, if compares_emptiness_
  const bool some_come_last_;          // the shape says so
  std::vector<int> behind_;            // [node] if some_come_last_: how far it comes behind others
  std::size_t are_behind_ = 0;         // how many nodes that is not 0 of
  std::vector<char> waits_;            // [node] true: the node fits but has not been scored yet
  std::size_t waiting_ = 0;            // how many
  std::vector<DeviceChoice> choices_;  // [row]
  // Scores that do not depend on the other candidates are summed up at once. If the profile has a
  // scorer that normalizes, the parts are kept.
  const bool normalizes_;
  int weights_ = 0;          // as weights()
  int step_ = 0;             // of sums that are scaled as one (kBestFirst); 0: they are not
  std::vector<int> totals_;  // [node], unless normalizes_
  std::vector<std::vector<int>> raw_;  // [scorer][row], if normalizes_

  struct Wishes {
    std::vector<TraitWish> wishes;
    std::vector<int> points;  // [node]
  };
  static constexpr std::size_t kMostWishes = 16;
  int wish_weight_ = 0;         // of the scorer; 0: the table takes no wishes
  std::vector<Wishes> wishes_;  // asked for last first

  const Market* market_ = nullptr;
  std::size_t priced_ = 0;                   // the scorer with the market
  std::vector<std::uint8_t> options_;        // [node] how many there are
  std::vector<std::uint32_t> bundle_;        // [row] index into bundles_
  std::vector<Bundle> bundles_;              // the distinct ones
  std::map<Bundle, std::uint32_t> numbers_;  // of bundles_
  std::vector<int> scratch_;
};

}  // namespace berth
