// SPDX-License-Identifier: Apache-2.0
//
// PendingPods: the requests of pods that were filtered and not yet bound. The bind verb names a pod
// and no more; what it asks for must have been kept. Bounded in pods and in bytes: the one not
// touched for longest is forgotten first.
//
// Any thread may call it.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/values/pod_request.h"

namespace berth {

class PendingPods {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  static constexpr std::size_t kMostSchedulers = 64;

  explicit PendingPods(std::size_t capacity, std::size_t most_bytes = kMostBytes)
      : recent_(capacity, most_bytes) {}

  // Returns whether it was not known.
  bool Remember(const PodRequest& pod) BERTH_EXCLUDES(mutex_);
  // nullptr when it is not known.
  [[nodiscard]] std::shared_ptr<const PodRequest> Find(const std::string& uid)
      BERTH_EXCLUDES(mutex_);
  // By its name; of several the one touched last. Counts as no touch.
  [[nodiscard]] std::shared_ptr<const PodRequest> FindNamed(std::string_view namespace_name,
                                                            std::string_view name) const
      BERTH_EXCLUDES(mutex_);
  void Forget(const std::string& uid) BERTH_EXCLUDES(mutex_);
  // The spec.schedulerName of all pods that it was ever told to remember; kMostSchedulers at most,
  // of at most 253 bytes.
  [[nodiscard]] std::set<std::string> Schedulers() const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const BERTH_EXCLUDES(mutex_);
  // About what the pods take.
  [[nodiscard]] std::size_t bytes() const BERTH_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Recent<std::string, std::shared_ptr<const PodRequest>> recent_
      BERTH_GUARDED_BY(mutex_);  // by UID
  std::set<std::string> schedulers_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
