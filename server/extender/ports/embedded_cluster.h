// SPDX-License-Identifier: Apache-2.0
//
// EmbeddedCluster: stands in for the API server where there is none. It holds which pod is bound
// where, and refuses what the API server would refuse.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_set>

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
  // By namespace and name. It cannot throw, so that the set does not keep what it returned.
  struct ByName {
    using is_transparent = void;
    std::size_t operator()(const PodId& id) const noexcept;
    std::size_t operator()(const std::shared_ptr<const PodRecord>& pod) const noexcept {
      return (*this)(pod->pod.id);
    }
  };
  struct SameName {
    using is_transparent = void;
    bool operator()(const std::shared_ptr<const PodRecord>& a, const PodId& b) const {
      return a->pod.id.name == b.name && a->pod.id.namespace_name == b.namespace_name;
    }
    bool operator()(const PodId& a, const std::shared_ptr<const PodRecord>& b) const {
      return (*this)(b, a);
    }
    bool operator()(const std::shared_ptr<const PodRecord>& a,
                    const std::shared_ptr<const PodRecord>& b) const {
      return (*this)(a, b->pod.id);
    }
  };
  Mutex mutex_;
  std::unordered_set<std::shared_ptr<const PodRecord>, ByName, SameName> pods_
      BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
