// SPDX-License-Identifier: Apache-2.0
//
// DisruptionBudgets: the PodDisruptionBudgets of the cluster, as last seen.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/values/labels.h"
#include "cluster/values/pod_request.h"

namespace berth {

struct PodDisruptionBudget {
  std::string namespace_name;
  std::string name;
  std::optional<LabelSelector> selector;  // none = covers no pod (policy/v1)
  int disruptions_allowed = 0;            // how many of its pods may be evicted now

  [[nodiscard]] bool Covers(const PodRequest& pod) const;
  friend bool operator==(const PodDisruptionBudget&, const PodDisruptionBudget&) = default;
};

// Any thread may call any function; a list that was taken does not change.
class DisruptionBudgets {
 public:
  using Object = PodDisruptionBudget;
  using List = std::vector<Object>;  // sorted by namespace, then name

  [[nodiscard]] std::shared_ptr<const List> Current() const BERTH_EXCLUDES(mutex_);

  // Adds it, or replaces the one of that name.
  void Put(PodDisruptionBudget budget) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  // Replaces all of them by those of a list; of two with one name the last counts.
  void Reset(List budgets) BERTH_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const List> current_ BERTH_GUARDED_BY(mutex_) = std::make_shared<const List>();
};

}  // namespace berth
