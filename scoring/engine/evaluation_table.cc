// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/evaluation_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "scoring/devices/device_picker.h"
#include "scoring/emptiness.h"
#include "scoring/engine/behind.h"
#include "scoring/priority.h"
#include "scoring/registry.h"
#include "scoring/scorers/workload_fit.h"
#include "scoring/waste/market.h"

namespace berth {

namespace {

using Scorers = std::vector<const Profile::Weighted*>;

Scorers ScorersFor(const Profile& profile, const RequestShape& shape) {
  Scorers scorers;
  for (const Profile::Weighted& weighted : profile.scorers) {
    if (weighted.scorer->Applies(shape)) scorers.push_back(&weighted);
  }
  return scorers;
}

bool Normalizes(const Scorers& scorers) {
  return std::ranges::any_of(scorers, [](const Profile::Weighted* weighted) {
    return weighted->scorer->normalization() != Normalization::kNone;
  });
}

// Whether their weighted sum can be scaled as one (Normalization::kBestFirst).
bool CountInSteps(const Scorers& scorers) {
  const auto counts = [](const Profile::Weighted* weighted) {
    return weighted->scorer->normalization() == Normalization::kBestFirst;
  };
  const auto has_market = [](const Profile::Weighted* weighted) {
    return weighted->scorer->market() != nullptr;
  };
  return std::ranges::all_of(scorers, counts) && std::ranges::any_of(scorers, has_market);
}

// Normalization::kBestFirst in hundredths.
std::vector<int> BestFirst(std::vector<int> raw) {
  const int best = raw.empty() ? 0 : *std::ranges::max_element(raw);
  for (int& score : raw) score = std::max(kMaxTotal - (best - score), 0);
  return raw;
}

// So few nodes are all scored at once, within about two milliseconds: on a small cluster the first
// pod of a kind must not take one of the two nodes that happened to be examined first.
constexpr std::size_t kFew = 16;
constexpr double kDearest = 1e9;  // no bundle costs more, so that scores stay in range

}  // namespace

bool EvaluationTable::SharesWishes(const Profile& profile, const RequestShape& shape) {
  return shape.nodes.wishes.empty() && GpusTakenAnywhere(shape) > 0 &&
         profile.WeightOf(kWorkloadClassScorer) > 0 && CountInSteps(ScorersFor(profile, shape));
}

EvaluationTable::EvaluationTable(const Profile& profile, RequestShape shape)
    : profile_(profile),
      shape_(std::move(shape)),
      scorers_(ScorersFor(profile, shape_)),
      compares_emptiness_(profile.ties == TieRule::kFullest && shape_.wants_gpu()),
      some_come_last_(MayPutBehind(shape_)),
      normalizes_(Normalizes(scorers_)) {
  for (std::size_t s = 0; s < scorers_.size(); ++s) {
    weights_ += scorers_[s]->weight;
    if (const Market* market = scorers_[s]->scorer->market()) {
      BERTH_CHECK(market_ == nullptr && normalizes_);
      market_ = market;
      priced_ = s;
    }
    step_ = std::gcd(step_, scorers_[s]->weight);
  }
  if (!CountInSteps(scorers_)) step_ = 0;
  if (step_ > 0) weights_ = step_;
  if (SharesWishes(profile_, shape_)) wish_weight_ = profile_.WeightOf(kWorkloadClassScorer);
}

void EvaluationTable::Refresh(const std::shared_ptr<const Snapshot>& snapshot,
                              const RefreshEffort& effort) {
  if (snapshot == snapshot_) return;
  if (snapshot_ != nullptr && snapshot->SameNodes(*snapshot_)) {
    snapshot->ForEachDifference(*snapshot_, [&](NodeIndex i) { LookAt(i, snapshot->node(i)); });
  } else {
    wishes_.clear();
    Resize(snapshot->size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) LookAt(i, snapshot->node(i));
  }
  snapshot_ = snapshot;
  ScoreWaiting(effort);
}

void EvaluationTable::LookAt(NodeIndex index, const Node& node) {
  for (Wishes& kept : wishes_) {
    // Of the same spec they are the same; the snapshot before keeps the old one alive.
    if (&snapshot_->node(index).spec() == &node.spec()) break;
    kept.points[index] = PointsOn(node.spec(), kept.wishes);
  }
  reasons_[index] = FirstObjection(node, shape_);
  const bool fits = reasons_[index] == Reason::kFits;
  waiting_ += fits ? 1U : 0U;
  waiting_ -= waits_[index] != 0 ? 1U : 0U;
  waits_[index] = fits ? 1 : 0;
  if (fits && compares_emptiness_) emptiness_[index] = EmptinessOf(node);
  if (!some_come_last_) return;
  const int behind = fits ? BehindOn(node, shape_).rank() : 0;
  are_behind_ += behind > 0 ? 1U : 0U;
  are_behind_ -= behind_[index] > 0 ? 1U : 0U;
  behind_[index] = behind;
}

void EvaluationTable::ScoreWaiting(const RefreshEffort& effort) {
  const std::uint64_t before = Computed();
  const bool are_few = waiting_ <= kFew;
  const auto may_compute = [&] { return are_few || Computed() - before < effort.states; };
  auto next = waits_.begin();
  for (std::size_t nodes = effort.nodes; waiting_ > 0 && nodes > 0 && may_compute(); --nodes) {
    next = std::find(next, waits_.end(), 1);
    Score(static_cast<NodeIndex>(next - waits_.begin()));
  }
}

std::uint64_t EvaluationTable::Computed() const {
  std::uint64_t sum = 0;
  for (const Profile::Weighted* weighted : scorers_) sum += weighted->scorer->computed();
  return sum;
}

void EvaluationTable::Resize(std::size_t nodes) {
  const std::size_t rows = market_ == nullptr ? nodes : nodes * kOptions;
  reasons_.resize(nodes);
  if (compares_emptiness_) emptiness_.resize(nodes);
  if (some_come_last_) behind_.assign(nodes, 0);
  are_behind_ = 0;
  waits_.assign(nodes, 0);
  waiting_ = 0;
  choices_.resize(rows);
  if (normalizes_) {
    raw_.resize(scorers_.size());
    for (std::vector<int>& column : raw_) column.resize(rows);
  } else {
    totals_.resize(nodes);
  }
  if (market_ == nullptr) return;
  options_.resize(nodes);
  bundle_.resize(rows);
}

void EvaluationTable::Score(NodeIndex index) {
  waits_[index] = 0;
  --waiting_;
  const Node& node = snapshot_->node(index);
  const std::vector<DeviceChoice> choices = DeviceChoices(node, shape_, profile_.devices);
  BERTH_CHECK(!choices.empty());  // a node that passed the filters has room

  const std::size_t scorers = scorers_.size();
  scratch_.assign(choices.size() * (scorers + 1), 0);
  const std::span<int> totals(scratch_.data() + choices.size() * scorers, choices.size());
  for (std::size_t s = 0; s < scorers; ++s) {
    const Profile::Weighted& weighted = *scorers_[s];
    const std::span<int> scores(scratch_.data() + choices.size() * s, choices.size());
    weighted.scorer->Score(node, shape_, choices, scores);
    for (std::size_t c = 0; c < choices.size(); ++c) {
      BERTH_CHECK(weighted.scorer->normalization() != Normalization::kNone ||
                  (scores[c] >= 0 && scores[c] <= kMaxScore));
      totals[c] += weighted.weight * scores[c];
    }
  }
  if (market_ == nullptr) {
    KeepBest(index, choices, totals);
  } else {
    KeepOptions(index, node, choices, totals);
  }
}

void EvaluationTable::KeepBest(NodeIndex index, std::span<const DeviceChoice> choices,
                               std::span<const int> totals) {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(totals) - totals.begin());
  KeepRow(index, choices, best);
  if (!normalizes_) totals_[index] = totals[best] * kHundredths / std::max(weights_, 1);
}

void EvaluationTable::KeepOptions(NodeIndex index, const Node& node,
                                  std::span<const DeviceChoice> choices,
                                  std::span<const int> totals) {
  struct Option {
    std::size_t choice;
    std::uint32_t bundle;
  };
  std::vector<Option> options;  // the best of each bundle
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const std::uint32_t bundle = BundleOf(node, choices[c]);
    const auto same = std::ranges::find(options, bundle, &Option::bundle);
    if (same == options.end()) {
      options.push_back({c, bundle});
    } else if (totals[c] > totals[same->choice]) {
      same->choice = c;
    }
  }
  std::ranges::stable_sort(options, std::greater<>(),
                           [&](const Option& option) { return totals[option.choice]; });
  options_[index] = static_cast<std::uint8_t>(std::min(options.size(), kOptions));
  for (std::size_t o = 0; o < options_[index]; ++o) {
    const std::size_t row = index * kOptions + o;
    KeepRow(row, choices, options[o].choice);
    bundle_[row] = options[o].bundle;
  }
}

void EvaluationTable::KeepRow(std::size_t row, std::span<const DeviceChoice> choices,
                              std::size_t choice) {
  choices_[row] = choices[choice];
  for (std::size_t s = 0; s < raw_.size(); ++s) {
    raw_[s][row] = scratch_[choices.size() * s + choice];
  }
}

std::uint32_t EvaluationTable::BundleOf(const Node& node, const DeviceChoice& choice) {
  Bundle bundle(market_->goods());
  market_->Taken(node, shape_, choice, bundle);
  const auto [at, is_new] =
      numbers_.emplace(std::move(bundle), static_cast<std::uint32_t>(bundles_.size()));
  if (is_new) bundles_.push_back(at->first);
  return at->second;
}

std::vector<int> EvaluationTable::BundleCosts(std::span<const double> prices) const {
  std::vector<int> costs(bundles_.size());
  for (std::size_t b = 0; b < costs.size(); ++b) {
    double cost = 0;
    for (std::size_t good = 0; good < prices.size(); ++good) {
      cost += prices[good] * bundles_[b][good];
    }
    costs[b] = static_cast<int>(std::lround(std::min(cost, kDearest)));
  }
  return costs;
}

std::int64_t EvaluationTable::SumOf(std::size_t row, std::span<const int> bundle_costs) const {
  std::int64_t sum = -std::int64_t{scorers_[priced_]->weight} * bundle_costs[bundle_[row]];
  for (std::size_t s = 0; s < raw_.size(); ++s) {
    sum += std::int64_t{scorers_[s]->weight} * raw_[s][row];
  }
  return sum;
}

std::size_t EvaluationTable::BestRow(NodeIndex node, std::span<const int> bundle_costs) const {
  const std::size_t first = node * kOptions;
  std::size_t best = first;
  std::int64_t best_total = std::numeric_limits<std::int64_t>::min();
  for (std::size_t row = first; row < first + options_[node]; ++row) {
    const std::int64_t total = SumOf(row, bundle_costs);
    if (total <= best_total) continue;
    best = row;
    best_total = total;
  }
  return best;
}

const DeviceChoice& EvaluationTable::choice(NodeIndex node, std::span<const double> prices) {
  if (waits_[node] != 0) Score(node);
  return choices_[market_ == nullptr ? node : BestRow(node, BundleCosts(prices))];
}

std::vector<NodeIndex> EvaluationTable::Fitting() const {
  // Without a branch per node: every decision makes this pass.
  std::vector<NodeIndex> fitting(reasons_.size());
  std::size_t count = 0;
  for (NodeIndex i = 0; i < reasons_.size(); ++i) {
    fitting[count] = i;
    count += reasons_[i] == Reason::kFits ? std::size_t{1} : std::size_t{0};
  }
  fitting.resize(count);
  return fitting;
}

std::vector<int> EvaluationTable::Emptiness(std::span<const NodeIndex> candidates) const {
  std::vector<int> emptiness;
  if (!compares_emptiness_) return emptiness;
  emptiness.reserve(candidates.size());
  for (const NodeIndex node : candidates) emptiness.push_back(emptiness_[node]);
  return emptiness;
}

std::vector<int> EvaluationTable::Totals(std::span<const NodeIndex> candidates,
                                         std::span<const double> prices,
                                         std::span<const TraitWish> wishes) {
  std::vector<int> totals = TotalsOfAll(candidates, prices, wishes);
  if (are_behind_ > 0 && !candidates.empty()) PutSomeLast(candidates, totals);
  return totals;
}

void EvaluationTable::PutSomeLast(std::span<const NodeIndex> candidates,
                                  std::span<int> totals) const {
  const auto behind = [this](NodeIndex node) { return behind_[node]; };
  const auto [first, last] = std::ranges::minmax_element(candidates, {}, behind);
  const int least = behind(*first);
  if (behind(*last) == least) return;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    totals[i] = behind(candidates[i]) > least ? 0 : std::max(totals[i], 1);
  }
}

std::vector<int> EvaluationTable::TotalsOfAll(std::span<const NodeIndex> candidates,
                                              std::span<const double> prices,
                                              std::span<const TraitWish> wishes) {
  if (waiting_ == 0 || candidates.empty()) return TotalsOfScored(candidates, prices, wishes);
  std::vector<NodeIndex> scored;
  std::ranges::copy_if(candidates, std::back_inserter(scored),
                       [this](NodeIndex node) { return waits_[node] == 0; });
  if (scored.empty()) {
    Score(candidates.front());
    scored.push_back(candidates.front());
  }
  const std::vector<int> known = TotalsOfScored(scored, prices, wishes);
  std::vector<int> totals(candidates.size(), 0);
  for (std::size_t i = 0, next = 0; i < candidates.size() && next < scored.size(); ++i) {
    if (candidates[i] == scored[next]) totals[i] = known[next++];
  }
  return totals;
}

std::vector<int> EvaluationTable::TotalsOfScored(std::span<const NodeIndex> candidates,
                                                 std::span<const double> prices,
                                                 std::span<const TraitWish> wishes) {
  if (!normalizes_) {
    std::vector<int> totals(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) totals[i] = totals_[candidates[i]];
    return totals;
  }
  if (market_ == nullptr) {
    return NormalizedTotals(std::vector<std::size_t>(candidates.begin(), candidates.end()), {});
  }
  const std::vector<int> bundle_costs = BundleCosts(prices);
  if (step_ > 0) return TotalsInSteps(candidates, bundle_costs, wishes);
  std::vector<std::size_t> rows(candidates.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = BestRow(candidates[i], bundle_costs);
  return NormalizedTotals(rows, bundle_costs);
}

std::vector<int> EvaluationTable::TotalsInSteps(std::span<const NodeIndex> candidates,
                                                std::span<const int> bundle_costs,
                                                std::span<const TraitWish> wishes) {
  constexpr std::int64_t kMost = 1'000'000'000;
  const int step = wishes.empty() ? step_ : StepWithWishes();
  const int* const points = wishes.empty() ? nullptr : PointsOfWishes(wishes).data();
  std::vector<int> totals(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const NodeIndex node = candidates[i];
    const std::size_t row = node * kOptions;
    std::int64_t sum = SumOf(row, bundle_costs);
    if (options_[node] > 1) sum = std::max(sum, SumOf(row + 1, bundle_costs));
    if (points != nullptr) sum += points[node];
    totals[i] = static_cast<int>(std::clamp(sum / step, -kMost, kMost));
  }
  return BestFirst(std::move(totals));
}

int EvaluationTable::StepWithWishes() const {
  BERTH_CHECK(takes_wishes());
  return std::gcd(step_, wish_weight_);
}

int EvaluationTable::PointsOn(const NodeSpec& spec, std::span<const TraitWish> wishes) const {
  return wish_weight_ * PointsOf(WorthPerGpu(spec, wishes), GpusTakenAnywhere(shape_));
}

const std::vector<int>& EvaluationTable::PointsOfWishes(std::span<const TraitWish> wishes) {
  const auto known = std::ranges::find_if(
      wishes_, [wishes](const Wishes& kept) { return std::ranges::equal(kept.wishes, wishes); });
  if (known != wishes_.end()) {
    std::rotate(wishes_.begin(), known, known + 1);
    return wishes_.front().points;
  }
  if (wishes_.size() == kMostWishes) wishes_.pop_back();
  Wishes added{{wishes.begin(), wishes.end()}, std::vector<int>(snapshot_->size())};
  for (NodeIndex node = 0; node < snapshot_->size(); ++node) {
    added.points[node] = PointsOn(snapshot_->node(node).spec(), wishes);
  }
  return wishes_.insert(wishes_.begin(), std::move(added))->points;
}

std::vector<int> EvaluationTable::NormalizedTotals(std::span<const std::size_t> rows,
                                                   std::span<const int> bundle_costs) const {
  std::vector<int> totals(rows.size(), 0), raw(rows.size());
  for (std::size_t s = 0; s < raw_.size() && !rows.empty(); ++s) {
    const Scorer& scorer = *scorers_[s]->scorer;
    const int weight = scorers_[s]->weight;
    for (std::size_t i = 0; i < rows.size(); ++i) raw[i] = raw_[s][rows[i]];
    if (scorer.market() != nullptr) {
      for (std::size_t i = 0; i < rows.size(); ++i) raw[i] -= bundle_costs[bundle_[rows[i]]];
    }
    if (scorer.normalization() == Normalization::kBestFirst) {
      raw = BestFirst(std::move(raw));
      for (std::size_t i = 0; i < rows.size(); ++i) totals[i] += weight * raw[i];
      continue;
    }
    int low = 0, range = kMaxScore;
    if (scorer.normalization() == Normalization::kMinMax) {
      const auto [least, most] = std::ranges::minmax(raw);
      low = least;
      range = most - low;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const int score = range == 0 ? 0 : (raw[i] - low) * kMaxScore / range;
      totals[i] += weight * score * kHundredths;
    }
  }
  for (int& total : totals) total /= std::max(weights_, 1);
  return totals;
}

}  // namespace berth
