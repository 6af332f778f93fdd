// SPDX-License-Identifier: Apache-2.0
//
// WorkloadClasses: which of the configured classes a pod is of, and what it wants for that.
//
//   berth.dev/workload-class: NAME     whatever it matches
//   berth.dev/prefer: TRAIT, TRAIT     with the default weight, whatever its class says of them
//
// Else the first class that it matches (config.h, WorkloadClass). Only for pods with GPUs. Where
// the configuration has no classes the first says nothing. Immutable: any thread may ask.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "cluster/values/labels.h"
#include "cluster/values/node_wishes.h"
#include "config/config.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

// What a class says of nodes.
[[nodiscard]] NodeWishes WishesOf(const WorkloadClass& workload);

[[nodiscard]] bool IsClassKey(std::string_view key);

class WorkloadClasses {
 public:
  WorkloadClasses() = default;
  // Requires: Validate(config).
  explicit WorkloadClasses(const Config& config);

  // Sets the classes, the wishes and, where the pod does not say it itself, the spread of the
  // request. Error: kInvalidArgument "annotation KEY: want one of ...".
  Status Apply(const PodParts& parts, PodRequest& request) const;

 private:
  Status Choose(const PodParts& parts, PodRequest& request) const;
  Status Prefer(const std::string& said, NodeWishes& nodes) const;
  struct Class {
    std::string name;
    std::vector<std::string> namespaces;
    LabelSelector labels;
    std::vector<std::string> priority_classes;
    NodeWishes wishes;
    Spread spread = Spread::kNone;

    [[nodiscard]] bool Matches(const PodParts& parts) const;
  };

  std::vector<Class> classes_;
  std::vector<std::string> traits_;  // of the configuration
};

// The classes in use, which a running service may take over anew. Any thread may call it.
class CurrentClasses {
 public:
  explicit CurrentClasses(WorkloadClasses classes) { Use(std::move(classes)); }
  void Use(WorkloadClasses classes) BERTH_EXCLUDES(mutex_) {
    auto next = std::make_shared<const WorkloadClasses>(std::move(classes));
    const MutexLock lock(mutex_);
    std::swap(now_, next);  // the old ones are freed after the lock
  }
  [[nodiscard]] std::shared_ptr<const WorkloadClasses> Now() const BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return now_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const WorkloadClasses> now_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::wire
