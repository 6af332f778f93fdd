// SPDX-License-Identifier: Apache-2.0
//
// Scorers that say what a test tells them to.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "scoring/profile.h"
#include "scoring/scorer.h"

namespace berth::test {

// Scores each choice by a function.
class FunctionScorer final : public Scorer {
 public:
  using Function = std::function<int(const Node&, const DeviceChoice&)>;

  explicit FunctionScorer(Function function, Normalization normalization = Normalization::kNone)
      : function_(std::move(function)), normalization_(normalization) {}

  void Score(const Node& node, const RequestShape&, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override {
    for (std::size_t i = 0; i < choices.size(); ++i) scores[i] = function_(node, choices[i]);
  }
  [[nodiscard]] Normalization normalization() const override { return normalization_; }

 private:
  Function function_;
  Normalization normalization_;
};

// The cores that the node has in all: a score that a test can give a node by building it so.
inline int CoresOf(const Node& node, const DeviceChoice&) {
  return static_cast<int>(node.spec().cpu_milli / 1000);
}

inline Profile::Weighted Weighted(FunctionScorer::Function function, int weight = 1,
                                  Normalization normalization = Normalization::kNone) {
  return {std::make_unique<FunctionScorer>(std::move(function), normalization), weight};
}

inline Profile ProfileOf(std::vector<Profile::Weighted> scorers,
                         DeviceRule devices = DeviceRule::kTightest,
                         TieRule ties = TieRule::kEqual) {
  return {"test", std::move(scorers), devices, ties};
}
// One scorer of weight 1.
inline Profile ProfileOf(FunctionScorer::Function function,
                         DeviceRule devices = DeviceRule::kTightest,
                         TieRule ties = TieRule::kEqual) {
  std::vector<Profile::Weighted> scorers;
  scorers.push_back(Weighted(std::move(function)));
  return ProfileOf(std::move(scorers), devices, ties);
}

}  // namespace berth::test
