// SPDX-License-Identifier: Apache-2.0
//
// ApiBinder: binds pods through the API server - one Binding that carries the pod's UID and the
// grants as annotations, so that node and devices are written in one atomic step.
//
// What the API server refuses for now (429, 5xx, no answer) is sent again until the deadline; that
// is safe, because a Binding that was taken before is answered 409.
//
// A pod that gets devices of HAMi's agent is bound under that agent's lock on the node
// (hami_node_lock.h), and no other. Of a bind that failed the lock is released, as soon as it is
// known that the pod is not there: the agent needs it for one that is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/mutex.h"
#include "server/extender/ports.h"
#include "server/kube/api_client.h"
#include "server/kube/hami_node_lock.h"
#include "server/kube/write_fence.h"
#include "server/wire/pod_rules.h"

namespace berth::kube {

// Any thread may call it.
class ApiBinder final : public PodBinder {
 public:
  // References: they outlive the binder.
  struct Parts {
    ApiClient& client;
    const wire::PodRules& rules;
    const Clock& clock;
    WriteFence& fence;
    std::function<void(Duration)> sleep;
  };

  explicit ApiBinder(const Parts& parts)
      : parts_(parts), lock_({parts.client, parts.rules, parts.clock, parts.fence, parts.sleep}) {}

  Status Bind(const BindOrder& order) override;
  Result<PodTruth> Find(const PodId& id) override;

  // Releases the locks that could not be released before; gives up for now when the API server does
  // not answer. Blocks.
  void ReleaseLocks() BERTH_EXCLUDES(mutex_);

  struct Stats {
    std::uint64_t retries = 0;
    std::uint64_t in_doubt = 0;  // binds that ended with kUnavailable
  };
  [[nodiscard]] Stats stats() const { return {retries_.load(), in_doubt_.load()}; }

 private:
  // When the next attempt may start; nothing when the last word is spoken.
  struct Attempt {
    Status status;
    bool final = false;
    bool in_doubt = false;  // it may have been carried out
    Duration wait{};
  };
  Status Write(const BindOrder& order) BERTH_EXCLUDES(mutex_);
  Status Post(const BindOrder& order);
  Attempt TryOnce(const ApiRequest& request, int attempt);
  // The lock of a bind that failed: for the agent, if the pod is there all the same.
  struct Locked {
    PodId pod;
    HamiNodeLock::Held held;
  };
  // False: that is not known; ReleaseLocks tries again.
  bool LetGo(Locked locked) BERTH_EXCLUDES(mutex_);

  const Parts parts_;
  HamiNodeLock lock_;
  Mutex mutex_;
  std::vector<Locked> left_ BERTH_GUARDED_BY(mutex_);  // of which nothing is known yet
  std::atomic<std::uint64_t> retries_{0};
  std::atomic<std::uint64_t> in_doubt_{0};
};

}  // namespace berth::kube
