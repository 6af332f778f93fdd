// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/evaluation_table.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/random.h"
#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"
#include "scoring/priority.h"
#include "scoring/registry.h"
#include "scoring/scorers/scorers.h"

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
constexpr std::size_t kLeastSwept = 64;  // outcomes
constexpr double kDearest = 1e9;         // no bundle costs more, so that scores stay in range

// Whether nodes of one kind may differ for it.
bool MindsMoreThanKind(const Profile& profile, const RequestShape& shape) {
  return profile.devices == DeviceRule::kRandom || shape.spread != Spread::kNone ||
         !shape.neighbours.empty() || !shape.gpu_rules.empty();
}

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
      minds_more_(MindsMoreThanKind(profile, shape_)),
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
  known_.Clear();  // it is about nodes of the snapshot before
  by_kind_ = false;
  if (snapshot_ != nullptr && snapshot->SameNodes(*snapshot_)) {
    snapshot->ForEachDifference(*snapshot_, [&](NodeIndex i) { LookAt(i, snapshot->node(i)); });
  } else {
    wishes_.clear();
    Resize(snapshot->size());
    known_ = LikenessMemo<Known>(snapshot->size());
    by_kind_ = !minds_more_ && snapshot->size() > kFew;
    for (NodeIndex i = 0; i < snapshot->size(); ++i) LookAt(i, snapshot->node(i));
  }
  snapshot_ = snapshot;
  ScoreWaiting(effort);
  if (outcomes_.size() > sweep_at_) Sweep();
}

void EvaluationTable::LookAt(NodeIndex index, const Node& node) {
  for (Wishes& kept : wishes_) {
    // Of the same spec they are the same; the snapshot before keeps the old one alive.
    if (&snapshot_->node(index).spec() == &node.spec()) break;
    kept.points[index] = PointsOn(node.spec(), kept.wishes);
  }
  const Known* const known = by_kind_ ? known_.Find(node) : nullptr;
  const std::uint32_t looked = known != nullptr ? known->looked : NumberOf(Looked(node));
  if (known == nullptr && by_kind_) known_.Put(node, {looked});
  Note(index, looked);
}

EvaluationTable::Outcome EvaluationTable::Looked(const Node& node) const {
  Outcome outcome{.reason = FirstObjection(node, shape_)};
  if (outcome.reason != Reason::kFits) return outcome;
  outcome.waits = true;
  if (compares_emptiness_) outcome.emptiness = EmptinessOf(node);
  if (some_come_last_) outcome.behind = BehindOn(node, shape_).rank();
  return outcome;
}

void EvaluationTable::Note(NodeIndex index, std::uint32_t outcome) {
  const Outcome &before = outcomes_[found_[index]], &now = outcomes_[outcome];
  waiting_ += now.waits ? 1U : 0U;
  waiting_ -= before.waits ? 1U : 0U;
  are_behind_ += now.behind > 0 ? 1U : 0U;
  are_behind_ -= before.behind > 0 ? 1U : 0U;
  waits_[index] = now.waits ? 1 : 0;
  found_[index] = outcome;
}

std::uint32_t EvaluationTable::NumberOf(Outcome outcome) {
  std::size_t hash = static_cast<std::size_t>(outcome.reason) * 2 + (outcome.waits ? 1 : 0);
  const auto add = [&hash](auto number) {
    hash = static_cast<std::size_t>(Mix64(hash ^ static_cast<std::uint64_t>(number)));
  };
  add(outcome.emptiness);
  add(outcome.behind);
  add(outcome.total);
  for (std::size_t o = 0; o < outcome.options; ++o) {
    add(outcome.option[o].choice.gpus);
    add(outcome.option[o].choice.milli);
    add(outcome.option[o].bundle);
    add(outcome.option[o].sum);
  }
  const auto [first, last] = by_hash_.equal_range(hash);
  const auto same = std::find_if(
      first, last, [&](const auto& entry) { return outcomes_[entry.second] == outcome; });
  if (same != last) return same->second;
  outcomes_.push_back(std::move(outcome));
  const auto number = static_cast<std::uint32_t>(outcomes_.size() - 1);
  by_hash_.emplace(hash, number);
  return number;
}

void EvaluationTable::Sweep() {
  constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> now(outcomes_.size(), kNone);
  std::vector<Outcome> old = std::move(outcomes_);
  const std::vector<Bundle> old_bundles = std::move(bundles_);
  outcomes_.clear();
  by_hash_.clear();
  bundles_.clear();
  numbers_.clear();
  known_.Clear();
  for (std::uint32_t& found : found_) {
    if (now[found] == kNone) {
      Outcome& kept = old[found];
      for (std::size_t o = 0; o < kept.options && market_ != nullptr; ++o) {
        kept.option[o].bundle = NumberOf(old_bundles[kept.option[o].bundle]);
      }
      now[found] = NumberOf(std::move(kept));
    }
    found = now[found];
  }
  sweep_at_ = kLeastSwept + 2 * outcomes_.size();
}

void EvaluationTable::ScoreWaiting(const RefreshEffort& effort) {
  const std::uint64_t before = Computed();
  const bool are_few = waiting_ <= kFew;
  by_kind_ = !minds_more_ && !are_few;
  // No larger than what waits: to empty one for all nodes takes longer than to score some.
  if (by_kind_ && known_.empty()) known_ = LikenessMemo<Known>(waiting_);
  std::size_t nodes = effort.nodes;
  const auto may_compute = [&] {
    return nodes > 0 && (are_few || Computed() - before < effort.states);
  };
  auto next = waits_.begin();
  while (waiting_ > 0 && may_compute()) {
    next = std::find(next, waits_.end(), 1);
    if (Score(static_cast<NodeIndex>(next - waits_.begin()))) --nodes;
  }
  if (waiting_ > 0) return;
  known_.Clear();
  by_kind_ = false;
}

std::uint64_t EvaluationTable::Computed() const {
  std::uint64_t sum = 0;
  for (const Profile::Weighted* weighted : scorers_) sum += weighted->scorer->computed();
  return sum;
}

void EvaluationTable::Resize(std::size_t nodes) {
  outcomes_.clear();
  by_hash_.clear();
  sweep_at_ = kLeastSwept;
  found_.assign(nodes, NumberOf({.reason = Reason::kNodeUnknown}));
  waits_.assign(nodes, 0);
  waiting_ = 0;
  are_behind_ = 0;
}

bool EvaluationTable::Score(NodeIndex index) {
  const Node& node = snapshot_->node(index);
  const Known* const known = by_kind_ ? known_.Find(node) : nullptr;
  if (known != nullptr && known->scored) {
    Note(index, *known->scored);
    return false;
  }
  const std::uint32_t looked = found_[index];
  const std::uint32_t scored = NumberOf(Scored(node, outcomes_[looked]));
  if (by_kind_) known_.Put(node, {looked, scored});
  Note(index, scored);
  return true;
}

EvaluationTable::Outcome EvaluationTable::Scored(const Node& node, const Outcome& looked) {
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
  Outcome outcome = looked;
  outcome.waits = false;
  if (market_ == nullptr) {
    KeepBest(choices, totals, outcome);
  } else {
    KeepOptions(node, choices, totals, outcome);
  }
  return outcome;
}

void EvaluationTable::KeepBest(std::span<const DeviceChoice> choices, std::span<const int> totals,
                               Outcome& outcome) const {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(totals) - totals.begin());
  KeepOption(choices, best, outcome);
  if (!normalizes_) outcome.total = totals[best] * kHundredths / std::max(weights_, 1);
}

void EvaluationTable::KeepOptions(const Node& node, std::span<const DeviceChoice> choices,
                                  std::span<const int> totals, Outcome& outcome) {
  struct Candidate {
    std::size_t choice;
    std::uint32_t bundle;
  };
  std::vector<Candidate> best;  // of each bundle
  for (std::size_t c = 0; c < choices.size(); ++c) {
    const std::uint32_t bundle = BundleOf(node, choices[c]);
    const auto same = std::ranges::find(best, bundle, &Candidate::bundle);
    if (same == best.end()) {
      best.push_back({c, bundle});
    } else if (totals[c] > totals[same->choice]) {
      same->choice = c;
    }
  }
  std::ranges::stable_sort(best, std::greater<>(),
                           [&](const Candidate& each) { return totals[each.choice]; });
  for (std::size_t o = 0; o < std::min(best.size(), kOptions); ++o) {
    KeepOption(choices, best[o].choice, outcome);
    outcome.option[o].bundle = best[o].bundle;
  }
}

void EvaluationTable::KeepOption(std::span<const DeviceChoice> choices, std::size_t choice,
                                 Outcome& outcome) const {
  Option& option = outcome.option[outcome.options++];
  option.choice = choices[choice];
  for (std::size_t s = 0; s < scorers_.size(); ++s) {
    const int raw = scratch_[choices.size() * s + choice];
    option.sum += std::int64_t{scorers_[s]->weight} * raw;
    if (normalizes_) outcome.raw.push_back(raw);
  }
}

std::uint32_t EvaluationTable::BundleOf(const Node& node, const DeviceChoice& choice) {
  std::vector<int> taken(market_->goods());
  market_->Taken(node, shape_, choice, taken);
  return NumberOf(WithoutZeros(taken));
}

std::uint32_t EvaluationTable::NumberOf(Bundle bundle) {
  const auto known = numbers_.find(bundle);
  if (known != numbers_.end()) return known->second;
  bundles_.push_back(bundle);  // first: where memory runs out, no number is without its bundle
  const auto number = static_cast<std::uint32_t>(bundles_.size() - 1);
  numbers_.emplace(std::move(bundle), number);
  return number;
}

std::vector<int> EvaluationTable::BundleCosts(std::span<const double> prices) const {
  std::vector<int> costs(bundles_.size());
  if (prices.empty()) return costs;
  for (std::size_t b = 0; b < costs.size(); ++b) {
    double cost = 0;
    for (const auto& [good, amount] : bundles_[b]) cost += prices[good] * amount;
    costs[b] = static_cast<int>(std::lround(std::min(cost, kDearest)));
  }
  return costs;
}

std::int64_t EvaluationTable::SumOf(const Option& option, std::span<const int> bundle_costs) const {
  return option.sum - std::int64_t{scorers_[priced_]->weight} * bundle_costs[option.bundle];
}

std::size_t EvaluationTable::BestOption(const Outcome& outcome,
                                        std::span<const int> bundle_costs) const {
  std::size_t best = 0;
  for (std::size_t o = 1; o < outcome.options; ++o) {
    if (SumOf(outcome.option[o], bundle_costs) > SumOf(outcome.option[best], bundle_costs)) {
      best = o;
    }
  }
  return best;
}

const DeviceChoice& EvaluationTable::choice(NodeIndex node, std::span<const double> prices) {
  if (waits_[node] != 0) (void)Score(node);
  const Outcome& outcome = outcomes_[found_[node]];
  return outcome.option[market_ == nullptr ? 0 : BestOption(outcome, BundleCosts(prices))].choice;
}

std::vector<NodeIndex> EvaluationTable::Fitting() const {
  // Without a branch per node: every decision makes this pass.
  std::vector<NodeIndex> fitting(found_.size());
  std::size_t count = 0;
  for (NodeIndex i = 0; i < found_.size(); ++i) {
    fitting[count] = i;
    count += reason(i) == Reason::kFits ? std::size_t{1} : std::size_t{0};
  }
  fitting.resize(count);
  return fitting;
}

std::vector<int> EvaluationTable::Emptiness(std::span<const NodeIndex> candidates) const {
  std::vector<int> emptiness;
  if (!compares_emptiness_) return emptiness;
  emptiness.reserve(candidates.size());
  for (const NodeIndex node : candidates) emptiness.push_back(outcomes_[found_[node]].emptiness);
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
  const auto behind = [this](NodeIndex node) { return outcomes_[found_[node]].behind; };
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
    (void)Score(candidates.front());
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
    for (std::size_t i = 0; i < candidates.size(); ++i)
      totals[i] = outcomes_[found_[candidates[i]]].total;
    return totals;
  }
  if (market_ == nullptr) {
    return NormalizedTotals(candidates, {});
  }
  const std::vector<int> bundle_costs = BundleCosts(prices);
  if (step_ > 0) return TotalsInSteps(candidates, bundle_costs, wishes);
  return NormalizedTotals(candidates, bundle_costs);
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
    const Outcome& outcome = outcomes_[found_[node]];
    std::int64_t sum = SumOf(outcome.option[0], bundle_costs);
    if (outcome.options > 1) sum = std::max(sum, SumOf(outcome.option[1], bundle_costs));
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

std::vector<int> EvaluationTable::NormalizedTotals(std::span<const NodeIndex> candidates,
                                                   std::span<const int> bundle_costs) const {
  std::vector<int> totals(candidates.size(), 0), raw(candidates.size());
  std::vector<std::size_t> best(market_ == nullptr ? 0 : candidates.size());  // option
  for (std::size_t i = 0; i < best.size(); ++i) {
    best[i] = BestOption(outcomes_[found_[candidates[i]]], bundle_costs);
  }
  for (std::size_t s = 0; s < scorers_.size() && !candidates.empty(); ++s) {
    const Scorer& scorer = *scorers_[s]->scorer;
    const int weight = scorers_[s]->weight;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const Outcome& outcome = outcomes_[found_[candidates[i]]];
      const std::size_t option = best.empty() ? 0 : best[i];
      raw[i] = outcome.raw[option * scorers_.size() + s];
      if (scorer.market() != nullptr) raw[i] -= bundle_costs[outcome.option[option].bundle];
    }
    if (scorer.normalization() == Normalization::kBestFirst) {
      raw = BestFirst(std::move(raw));
      for (std::size_t i = 0; i < raw.size(); ++i) totals[i] += weight * raw[i];
      continue;
    }
    int low = 0, range = kMaxScore;
    if (scorer.normalization() == Normalization::kMinMax) {
      const auto [least, most] = std::ranges::minmax(raw);
      low = least;
      range = most - low;
    }
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const int score = range == 0 ? 0 : (raw[i] - low) * kMaxScore / range;
      totals[i] += weight * score * kHundredths;
    }
  }
  for (int& total : totals) total /= std::max(weights_, 1);
  return totals;
}

}  // namespace berth
