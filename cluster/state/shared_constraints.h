// SPDX-License-Identifier: Apache-2.0
//
// SharedConstraints: pods that may go to the same nodes share one object that says so: replicas
// do, and nearly all pods that say nothing but the tolerations that Kubernetes gives each pod.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_set>

#include "cluster/values/pod_request.h"

namespace berth {

// One thread at a time.
class SharedConstraints {
 public:
  using Shared = std::shared_ptr<const NodeConstraints>;

  // Returns the object that stands for all that are alike. nullptr: nullptr.
  Shared Share(const Shared& constraints) {
    if (constraints == nullptr) return nullptr;
    if (known_.size() >= sweep_at_) {
      std::erase_if(known_, [](const Shared& one) { return one.use_count() == 1; });
      sweep_at_ = known_.size() * 2 + kLeastSweep;
    }
    return *known_.insert(constraints).first;
  }
  [[nodiscard]] std::size_t size() const { return known_.size(); }

 private:
  static constexpr std::size_t kLeastSweep = 1000;
  struct Hash {
    std::size_t operator()(const Shared& one) const { return HashValue(*one); }
  };
  struct Same {
    bool operator()(const Shared& a, const Shared& b) const { return a == b || *a == *b; }
  };

  std::unordered_set<Shared, Hash, Same> known_;
  std::size_t sweep_at_ = kLeastSweep;
};

}  // namespace berth
