// SPDX-License-Identifier: Apache-2.0
#include "cluster/groups/disruption_budgets.h"

#include <algorithm>
#include <utility>

namespace berth {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

Key KeyOf(const PodDisruptionBudget& budget) { return {budget.namespace_name, budget.name}; }

void PutInto(DisruptionBudgets::List& list, PodDisruptionBudget budget) {
  const auto at = std::ranges::lower_bound(list, KeyOf(budget), {}, KeyOf);
  if (at != list.end() && KeyOf(*at) == KeyOf(budget)) {
    *at = std::move(budget);
  } else {
    list.insert(at, std::move(budget));
  }
}

}  // namespace

bool PodDisruptionBudget::Covers(const PodRequest& pod) const {
  if (!selector || namespace_name != pod.id.namespace_name) return false;
  static const Labels kNone;
  return Selects(*selector, pod.labels == nullptr ? kNone : *pod.labels);
}

std::shared_ptr<const DisruptionBudgets::List> DisruptionBudgets::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void DisruptionBudgets::Put(PodDisruptionBudget budget) {
  const MutexLock lock(mutex_);
  List list = *current_;
  PutInto(list, std::move(budget));
  current_ = std::make_shared<const List>(std::move(list));
}

void DisruptionBudgets::Remove(std::string_view namespace_name, std::string_view name) {
  const MutexLock lock(mutex_);
  List list = *current_;
  std::erase_if(list, [&](const PodDisruptionBudget& budget) {
    return KeyOf(budget) == Key{namespace_name, name};
  });
  current_ = std::make_shared<const List>(std::move(list));
}

void DisruptionBudgets::Reset(List budgets) {
  std::ranges::stable_sort(budgets, {}, KeyOf);
  List list;
  for (PodDisruptionBudget& budget : budgets) {
    if (!list.empty() && KeyOf(list.back()) == KeyOf(budget)) list.pop_back();
    list.push_back(std::move(budget));
  }
  const MutexLock lock(mutex_);
  current_ = std::make_shared<const List>(std::move(list));
}

}  // namespace berth
