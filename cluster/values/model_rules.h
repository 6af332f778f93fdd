// SPDX-License-Identifier: Apache-2.0
//
// ModelRules: parts of the names of GPU models that a pod accepts, or does not. Clusters have a
// dozen models and thousands of nodes, so the verdict on a model is found once and remembered.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace berth {

// A part of the name of a GPU model, whatever the case: models that have it are accepted, or are
// not.
struct ModelRule {
  bool refused = false;
  std::string part;  // lower case, not empty
  friend auto operator<=>(const ModelRule&, const ModelRule&) = default;
};

// A value; copies share what they remember. Any thread may ask.
class ModelRules {
 public:
  ModelRules() = default;
  // In any order, also several times the same.
  explicit ModelRules(std::vector<ModelRule> rules);

  [[nodiscard]] bool empty() const { return known_ == nullptr; }
  void clear() { known_.reset(); }
  // Sorted, unique.
  [[nodiscard]] std::span<const ModelRule> rules() const;

  // Whether models of that name are accepted: they have any of the parts that are not refused, if
  // there are such, and none of the others.
  [[nodiscard]] bool Admit(std::string_view model) const;

  // How often a part was compared with a model, by this one and its copies.
  [[nodiscard]] std::uint64_t compared() const;

  friend bool operator==(const ModelRules& a, const ModelRules& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const ModelRules& a, const ModelRules& b);

 private:
  static constexpr std::size_t kMostModels = 1000;  // that are remembered

  struct Known {
    explicit Known(std::vector<ModelRule> all) : rules(std::move(all)) {}
    const std::vector<ModelRule> rules;
    mutable Mutex mutex;
    mutable std::map<std::string, bool, std::less<>> verdicts BERTH_GUARDED_BY(mutex);
    mutable std::uint64_t compared BERTH_GUARDED_BY(mutex) = 0;
  };
  std::shared_ptr<const Known> known_;  // nullptr: all models are accepted
};

}  // namespace berth
