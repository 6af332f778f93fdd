// SPDX-License-Identifier: Apache-2.0
//
// HamiBinds: a pod that gets devices of HAMi's agent is bound under that agent's lock on the node
// (hami_node_lock.h), and no other pod is. After a bind that failed the lock is released as soon as
// it is known that the pod is not on the node: the agent needs the lock for a pod that is.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "server/dialects/hami/hami_node_lock.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// Any thread may call any function.
class HamiBinds final : public kube::ClusterExtension {
 public:
  // rules outlive the object.
  HamiBinds(kube::WriteContext write, const wire::PodRules& rules)
      : write_(std::move(write)),
        rules_(rules),
        lock_(write_, rules, [this](const auto& pod) { return IsBinding(pod); }) {}

  Status AroundBind(const BindOrder& order, const std::function<Status()>& bind) override
      BERTH_EXCLUDES(mutex_);
  // Releases the locks that could not be released before; gives up for now when the API server does
  // not answer.
  void Upkeep() override BERTH_EXCLUDES(mutex_);

 private:
  // The lock of a bind that failed: it is the agent's, if the pod is on the node all the same.
  struct Locked {
    PodId pod;
    HamiNodeLock::Held held;
  };
  [[nodiscard]] bool IsBinding(const std::string& full_name) const BERTH_EXCLUDES(mutex_);
  Status BindUnderLock(const BindOrder& order, const std::function<Status()>& bind)
      BERTH_EXCLUDES(mutex_);
  // False: that is not known; Upkeep tries again.
  bool LetGo(Locked locked) BERTH_EXCLUDES(mutex_);

  const kube::WriteContext write_;
  const wire::PodRules& rules_;
  HamiNodeLock lock_;
  mutable Mutex mutex_;
  std::multiset<std::string> binding_ BERTH_GUARDED_BY(mutex_);  // pods, by full name
  std::vector<Locked> left_ BERTH_GUARDED_BY(mutex_);  // of binds whose outcome is unknown
};

}  // namespace berth::dialects
