// SPDX-License-Identifier: Apache-2.0
//
// DisruptionBudgets: the PodDisruptionBudgets of the cluster, as last seen.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/values/node_constraints.h"
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
  void Put(const PodDisruptionBudget& budget) BERTH_EXCLUDES(mutex_);
  void Remove(const std::string& namespace_name, const std::string& name) BERTH_EXCLUDES(mutex_);
  // Replaces all of them by those of a list; of two with one name the last counts.
  void Reset(const List& budgets) BERTH_EXCLUDES(mutex_);

 private:
  void Publish() BERTH_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::pair<std::string, std::string>, Object> by_name_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<const List> current_ BERTH_GUARDED_BY(mutex_) = std::make_shared<const List>();
};

}  // namespace berth
