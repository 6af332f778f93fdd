// SPDX-License-Identifier: Apache-2.0
//
// EmbeddedCluster: stands in for the API server where there is none. It holds which pod is bound
// where, and refuses what the API server would refuse.
#pragma once

#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "server/extender/ports.h"

namespace berth {

// Any thread may call it.
class EmbeddedCluster final : public PodBinder {
 public:
  // Error: kConflict when the pod is bound to another node, or when its name is taken by another
  // pod.
  Status Bind(const BindOrder& order) override { return Assign(order.pod, order.placement); }
  // Knows bound pods only.
  Result<PodTruth> Find(const PodId& id) override BERTH_EXCLUDES(mutex_);

  // A pod that is there from the beginning; errors as for Bind.
  Status Assign(const PodRequest& pod, const Placement& placement) BERTH_EXCLUDES(mutex_);

 private:
  struct Bound {
    PodRequest pod;
    Placement placement;
  };
  Mutex mutex_;
  std::unordered_map<std::string, Bound> by_name_ BERTH_GUARDED_BY(mutex_);  // "namespace/name"
};

}  // namespace berth
