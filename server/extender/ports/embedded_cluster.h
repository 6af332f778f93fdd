// SPDX-License-Identifier: Apache-2.0
//
// EmbeddedCluster: stands in for the API server where there is none. It holds which pod is bound
// where, and refuses what the API server would refuse.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "base/mutex.h"
#include "cluster/values/pod_record.h"
#include "server/extender/ports/ports.h"

namespace berth {

// Any thread may call it.
class EmbeddedCluster final : public PodBinder {
 public:
  // Error: kConflict when the pod is bound to another node, or when its name is taken by another
  // pod.
  Status Bind(const BindOrder& order) override {
    return Assign(std::make_shared<const PodRecord>(PodRecord{order.pod, order.placement}));
  }
  // Knows bound pods only.
  Result<PodTruth> Find(const PodId& id) override BERTH_EXCLUDES(mutex_);

  // A pod that is there from the beginning, as the books have it; errors as for Bind.
  Status Assign(const std::shared_ptr<const PodRecord>& pod) BERTH_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<const PodRecord>> pods_
      BERTH_GUARDED_BY(mutex_);  // by full name
};

}  // namespace berth
