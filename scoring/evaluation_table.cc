// SPDX-License-Identifier: Apache-2.0
#include "scoring/evaluation_table.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scoring/device_picker.h"
#include "scoring/priority.h"
#include "scoring/registry.h"

namespace berth {

EvaluationTable::EvaluationTable(const Profile& profile, RequestShape shape)
    : profile_(profile), shape_(std::move(shape)), raw_(profile.scorers.size()) {}

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
  for (std::vector<int>& column : raw_) column.resize(nodes);
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
  for (std::size_t s = 0; s < scorers; ++s) raw_[s][index] = scratch_[choices.size() * s + best];
}

std::vector<int> EvaluationTable::Totals(std::span<const NodeIndex> candidates) const {
  std::vector<int> totals(candidates.size(), 0);
  int weights = 0;
  for (std::size_t s = 0; s < raw_.size(); ++s) {
    const Profile::Weighted& weighted = profile_.scorers[s];
    const std::vector<int>& raw = raw_[s];
    weights += weighted.weight;
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
  constexpr int kHundredths = kMaxTotal / kMaxScore;
  for (int& total : totals) total = weights == 0 ? 0 : total * kHundredths / weights;
  return totals;
}

}  // namespace berth
