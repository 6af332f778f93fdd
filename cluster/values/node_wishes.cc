// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_wishes.h"

namespace berth {
namespace {

bool HasPart(std::string_view model, std::string_view lower_part) {
  const auto same = [](char c, char lower) {
    return (c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) == lower;
  };
  return std::search(model.begin(), model.end(), lower_part.begin(), lower_part.end(), same) !=
         model.end();
}

bool AdmittedBy(std::span<const ModelRule> rules, std::string_view model) {
  bool wanted = false, found = false;
  for (const ModelRule& rule : rules) {
    const bool has = HasPart(model, rule.part);
    if (rule.refused && has) return false;
    wanted = wanted || !rule.refused;
    found = found || (!rule.refused && has);
  }
  return found || !wanted;
}

}  // namespace

ModelRules::ModelRules(std::vector<ModelRule> rules) {
  std::ranges::sort(rules);
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  if (!rules.empty()) known_ = std::make_shared<const Known>(std::move(rules));
}

std::span<const ModelRule> ModelRules::rules() const {
  return known_ == nullptr ? std::span<const ModelRule>() : std::span(known_->rules);
}

bool ModelRules::Admit(std::string_view model) const {
  if (known_ == nullptr) return true;
  {
    const MutexLock lock(known_->mutex);
    const auto verdict = known_->verdicts.find(model);
    if (verdict != known_->verdicts.end()) return verdict->second;
  }
  const bool admitted = AdmittedBy(known_->rules, model);
  const MutexLock lock(known_->mutex);
  known_->compared += known_->rules.size();
  if (known_->verdicts.size() < kMostModels) known_->verdicts.emplace(model, admitted);
  return admitted;
}

std::uint64_t ModelRules::compared() const {
  if (known_ == nullptr) return 0;
  const MutexLock lock(known_->mutex);
  return known_->compared;
}

std::strong_ordering operator<=>(const ModelRules& a, const ModelRules& b) {
  if (a.known_ == b.known_) return std::strong_ordering::equal;
  const auto x = a.rules(), y = b.rules();
  return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
}

}  // namespace berth
