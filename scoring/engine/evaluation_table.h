// SPDX-License-Identifier: Apache-2.0
//
// EvaluationTable: for one request shape and profile, each node's filter verdict, best device
// choice and score.
//
// A refresh examines only the nodes that are not the same objects as last time: after a placement
// that is one, so a decision costs a few evaluations and one pass over the nodes. Of nodes of one
// kind (cluster/node/likeness_memo.h) one is examined, unless the shape or the profile minds more,
// and nodes on which the same was found share one outcome: a node takes five bytes of a table.
//
// A refresh has a limited effort, so that no decision stalls on a new table: a number of nodes to
// score - others of a kind that was scored do not count - and, if scorers compute
// (Scorer::computed), a number of states to compute. The remaining
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

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "cluster/node/likeness_memo.h"
#include "cluster/state/snapshot.h"
#include "scoring/profile.h"
#include "scoring/reason.h"
#include "scoring/waste/market.h"

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
  [[nodiscard]] Reason reason(NodeIndex node) const { return outcomes_[found_[node]].reason; }
  // Meaningful if the reason is kFits. Prices: those of the profile's market; none without a
  // market.
  [[nodiscard]] const DeviceChoice& choice(NodeIndex node, std::span<const double> prices = {});
  // Weighted mean score of each candidate in hundredths, 0..kMaxTotal; 0 for a waiting one, unless
  // all of them wait. Some come last, with 0, behind the others, who have more: all but the least
  // behind (neighbours.h). Requires: all of them fit.
  //
  // wishes: of this pod, beside the table's shape; none unless takes_wishes().
  [[nodiscard]] std::vector<int> Totals(std::span<const NodeIndex> candidates,
                                        std::span<const double> prices = {},
                                        std::span<const TraitWish> wishes = {});

  [[nodiscard]] bool takes_wishes() const { return wish_weight_ > 0; }  // SharesWishes

  // The emptiness of each candidate (priority.h), if the profile's rule for ties compares it for
  // the shape; else empty.
  [[nodiscard]] std::vector<int> Emptiness(std::span<const NodeIndex> candidates) const;

  // What a total weighs beside other scores: the sum of the weights of the scorers that apply to
  // the shape or, where they are summed up in steps, the step.
  [[nodiscard]] int weights(std::span<const TraitWish> wishes = {}) const {
    return wishes.empty() ? weights_ : StepWithWishes();
  }

  // How many outcomes it keeps: of memory.
  [[nodiscard]] std::size_t outcomes() const { return outcomes_.size(); }
  [[nodiscard]] std::size_t bundles() const { return bundles_.size(); }

  // All nodes that fit, in order.
  [[nodiscard]] std::vector<NodeIndex> Fitting() const;

 private:
  // So many choices are kept of a node where the profile has a market.
  static constexpr std::size_t kOptions = 2;
  using Bundle = SomeGoods;  // that a choice takes

  struct Option {
    DeviceChoice choice;
    std::uint32_t bundle = 0;  // index into bundles_
    std::int64_t sum = 0;      // of the raw scores, weighted
    friend bool operator==(const Option&, const Option&) = default;
  };
  // What was found on a node.
  struct Outcome {
    Reason reason = Reason::kFits;
    bool waits = false;        // it fits and has not been scored
    std::uint8_t options = 0;  // how many there are; 0: it does not fit, or waits
    int emptiness = 0;         // if it fits and compares_emptiness_
    int behind = 0;            // if it fits and some_come_last_: how far it comes behind others
    int total = 0;             // unless normalizes_
    std::array<Option, kOptions> option = {};
    std::vector<int> raw = {};  // [option][scorer], if normalizes_
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };
  // The outcomes of a kind of nodes.
  struct Known {
    std::uint32_t looked = 0;
    std::optional<std::uint32_t> scored = {};
  };

  void LookAt(NodeIndex index, const Node& node);
  void ScoreWaiting(const RefreshEffort& effort);
  // False: the outcome of its kind was known.
  bool Score(NodeIndex index);
  [[nodiscard]] Outcome Looked(const Node& node) const;
  [[nodiscard]] Outcome Scored(const Node& node, const Outcome& looked);
  // Gives the node that outcome.
  void Note(NodeIndex index, std::uint32_t outcome);
  // The outcome's number; known ones keep theirs.
  [[nodiscard]] std::uint32_t NumberOf(Outcome outcome);
  // Drops the outcomes that no node has any more, and the bundles that no outcome has.
  void Sweep();
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
  void KeepBest(std::span<const DeviceChoice> choices, std::span<const int> totals,
                Outcome& outcome) const;
  void KeepOptions(const Node& node, std::span<const DeviceChoice> choices,
                   std::span<const int> totals, Outcome& outcome);
  void KeepOption(std::span<const DeviceChoice> choices, std::size_t choice,
                  Outcome& outcome) const;
  [[nodiscard]] std::uint32_t BundleOf(const Node& node, const DeviceChoice& choice);
  [[nodiscard]] std::uint32_t NumberOf(Bundle bundle);

  [[nodiscard]] std::vector<int> BundleCosts(std::span<const double> prices) const;
  // The better option of the node. Lower ones win ties.
  [[nodiscard]] std::size_t BestOption(const Outcome& outcome,
                                       std::span<const int> bundle_costs) const;
  // Weighted, the price off.
  [[nodiscard]] std::int64_t SumOf(const Option& option, std::span<const int> bundle_costs) const;
  [[nodiscard]] std::vector<int> NormalizedTotals(std::span<const NodeIndex> candidates,
                                                  std::span<const int> bundle_costs) const;

  const Profile& profile_;
  const RequestShape shape_;
  const std::vector<const Profile::Weighted*> scorers_;  // those that apply to the shape
  std::shared_ptr<const Snapshot> snapshot_;
  const bool compares_emptiness_;
  const bool some_come_last_;         // the shape says so
  const bool minds_more_;             // than the kinds of nodes
  std::vector<std::uint32_t> found_;  // [node] index into outcomes_
  std::vector<char> waits_;           // [node] as in its outcome
  std::size_t waiting_ = 0;           // how many
  std::size_t are_behind_ = 0;        // how many nodes' `behind` is not 0
  std::vector<Outcome> outcomes_;     // the distinct ones, and some that no node has any more
  std::unordered_multimap<std::size_t, std::uint32_t> by_hash_;  // of outcomes_
  std::size_t sweep_at_ = 0;                                     // so many outcomes
  bool by_kind_ = false;       // known_ is used: many nodes are new
  LikenessMemo<Known> known_;  // of the newest snapshot
  // Scores that do not depend on the other candidates are summed up at once. If the profile has a
  // scorer that normalizes, the parts are kept.
  const bool normalizes_;
  int weights_ = 0;  // as weights()
  int step_ = 0;     // of sums that are scaled as one (kBestFirst); 0: they are not

  struct Wishes {
    std::vector<TraitWish> wishes;
    std::vector<int> points;  // [node]
  };
  static constexpr std::size_t kMostWishes = 16;
  int wish_weight_ = 0;         // of the scorer; 0: the table takes no wishes
  std::vector<Wishes> wishes_;  // asked for last first

  const Market* market_ = nullptr;
  std::size_t priced_ = 0;                   // the scorer with the market
  std::vector<Bundle> bundles_;              // the distinct ones
  std::map<Bundle, std::uint32_t> numbers_;  // of bundles_
  std::vector<int> scratch_;
};

}  // namespace berth
