// SPDX-License-Identifier: Apache-2.0
#include "cluster/groups/disruption_budgets.h"

namespace berth {

bool PodDisruptionBudget::Covers(const PodRequest& pod) const {
  if (!selector || namespace_name != pod.id.namespace_name) return false;
  static const Labels kNone;
  return Selects(*selector, pod.labels == nullptr ? kNone : *pod.labels);
}

std::shared_ptr<const DisruptionBudgets::List> DisruptionBudgets::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void DisruptionBudgets::Put(const PodDisruptionBudget& budget) {
  const MutexLock lock(mutex_);
  by_name_.insert_or_assign({budget.namespace_name, budget.name}, budget);
  Publish();
}

void DisruptionBudgets::Remove(const std::string& namespace_name, const std::string& name) {
  const MutexLock lock(mutex_);
  by_name_.erase({namespace_name, name});
  Publish();
}

void DisruptionBudgets::Reset(const List& budgets) {
  const MutexLock lock(mutex_);
  by_name_.clear();
  for (const Object& budget : budgets) {
    by_name_.insert_or_assign({budget.namespace_name, budget.name}, budget);
  }
  Publish();
}

void DisruptionBudgets::Publish() {
  auto list = std::make_shared<List>();
  for (const auto& [name, budget] : by_name_) list->push_back(budget);
  current_ = std::move(list);
}

}  // namespace berth
