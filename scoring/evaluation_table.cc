// SPDX-License-Identifier: Apache-2.0
#include "scoring/evaluation_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scoring/device_picker.h"
#include "scoring/priority.h"
#include "scoring/registry.h"

namespace berth {

namespace {

bool Normalizes(const Profile& profile) {
  return std::ranges::any_of(profile.scorers, [](const Profile::Weighted& weighted) {
    return weighted.scorer->normalization() != Normalization::kNone;
  });
}

// A weighted sum of scores 0..100 as the mean in hundredths.
int MeanInHundredths(int sum, int weights) {
  return weights == 0 ? 0 : sum * (kMaxTotal / kMaxScore) / weights;
}

}  // namespace

EvaluationTable::EvaluationTable(const Profile& profile, RequestShape shape)
    : profile_(profile), shape_(std::move(shape)), normalizes_(Normalizes(profile)) {
  for (const Profile::Weighted& weighted : profile.scorers) weights_ += weighted.weight;
}

void EvaluationTable::Refresh(const std::shared_ptr<const Snapshot>& snapshot) {
  if (snapshot == snapshot_) return;
  if (snapshot_ != nullptr && snapshot->SameNodes(*snapshot_)) {
    snapshot->ForEachDifference(*snapshot_, [&](NodeIndex i) { Evaluate(i, snapshot->node(i)); });
  } else {
    Resize(snapshot->size());
    for (NodeIndex i = 0; i < snapshot->size(); ++i) Evaluate(i, snapshot->node(i));
  }
  snapshot_ = snapshot;
}

void EvaluationTable::Resize(std::size_t nodes) {
  reasons_.resize(nodes);
  choices_.resize(nodes);
  if (normalizes_) {
    raw_.resize(profile_.scorers.size());
    for (std::vector<int>& column : raw_) column.resize(nodes);
  } else {
    totals_.resize(nodes);
  }
}

void EvaluationTable::Evaluate(NodeIndex index, const Node& node) {
  reasons_[index] = FirstObjection(node, shape_);
  if (reasons_[index] != Reason::kFits) return;
  const std::vector<DeviceChoice> choices = DeviceChoices(node, shape_, profile_.devices);
  BERTH_CHECK(!choices.empty());  // a node that passed the filters has room

  const std::size_t scorers = profile_.scorers.size();
  scratch_.assign(choices.size() * (scorers + 1), 0);
  const std::span<int> totals(scratch_.data() + choices.size() * scorers, choices.size());
  for (std::size_t s = 0; s < scorers; ++s) {
    const Profile::Weighted& weighted = profile_.scorers[s];
    const std::span<int> scores(scratch_.data() + choices.size() * s, choices.size());
    weighted.scorer->Score(node, shape_, choices, scores);
    for (std::size_t c = 0; c < choices.size(); ++c) {
      BERTH_CHECK(weighted.scorer->normalization() != Normalization::kNone ||
                  (scores[c] >= 0 && scores[c] <= kMaxScore));
      totals[c] += weighted.weight * scores[c];
    }
  }
  const auto best = static_cast<std::size_t>(std::ranges::max_element(totals) - totals.begin());
  choices_[index] = choices[best];
  if (!normalizes_) {
    totals_[index] = MeanInHundredths(totals[best], weights_);
    return;
  }
  for (std::size_t s = 0; s < scorers; ++s) raw_[s][index] = scratch_[choices.size() * s + best];
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

std::vector<int> EvaluationTable::Totals(std::span<const NodeIndex> candidates) const {
  if (normalizes_) return NormalizedTotals(candidates);
  std::vector<int> totals(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) totals[i] = totals_[candidates[i]];
  return totals;
}

std::vector<int> EvaluationTable::NormalizedTotals(std::span<const NodeIndex> candidates) const {
  std::vector<int> totals(candidates.size(), 0);
  for (std::size_t s = 0; s < raw_.size(); ++s) {
    const Profile::Weighted& weighted = profile_.scorers[s];
    const std::vector<int>& raw = raw_[s];
    int low = 0, range = kMaxScore;
    if (weighted.scorer->normalization() == Normalization::kMinMax && !candidates.empty()) {
      const auto by_score = [&raw](NodeIndex a, NodeIndex b) { return raw[a] < raw[b]; };
      const auto [least, most] =
          std::minmax_element(candidates.begin(), candidates.end(), by_score);
      low = raw[*least];
      range = raw[*most] - low;
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const int score = range == 0 ? 0 : (raw[candidates[i]] - low) * kMaxScore / range;
      totals[i] += weighted.weight * score;
    }
  }
  for (int& total : totals) total = MeanInHundredths(total, weights_);
  return totals;
}

}  // namespace berth
