// SPDX-License-Identifier: Apache-2.0
//
// PendingPods: the requests of pods that were filtered and not yet bound. The bind verb names a pod
// and no more; what it asks for must have been kept. Bounded: the one not touched for longest is
// forgotten first.
//
// Any thread may call it.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "cluster/pod_request.h"

namespace berth {

class PendingPods {
 public:
  explicit PendingPods(std::size_t capacity) : capacity_(capacity) {}

  // Returns whether it was not known.
  bool Remember(const PodRequest& pod) BERTH_EXCLUDES(mutex_);
  // nullptr when it is not known.
  [[nodiscard]] std::shared_ptr<const PodRequest> Find(std::string_view uid) BERTH_EXCLUDES(mutex_);
  void Forget(std::string_view uid) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const BERTH_EXCLUDES(mutex_);

 private:
  using Recent = std::list<std::shared_ptr<const PodRequest>>;  // most recently touched first

  const std::size_t capacity_;
  mutable Mutex mutex_;
  Recent recent_ BERTH_GUARDED_BY(mutex_);
  // The keys are the UIDs inside the list's pods.
  std::unordered_map<std::string_view, Recent::iterator> by_uid_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
