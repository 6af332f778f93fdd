// SPDX-License-Identifier: Apache-2.0
//
// HamiNodeLock: HAMi's lock on a node (wire/hami_lock.h), which whoever binds a pod there holds
// until HAMi's agent has served the pod; the agent removes it then.
//
// A lock of our own pod is taken again; one that binds nobody any more is taken over: older than
// kExpires, or for a pod that is gone, over, or on another node. Any other is waited for.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/pod_request.h"
#include "server/kube/api_client.h"
#include "server/kube/retry.h"
#include "server/kube/write_context.h"
#include "server/wire/pod_rules.h"

namespace berth::dialects {

// Any thread may call any function.
class HamiNodeLock {
 public:
  static constexpr Duration kExpires = std::chrono::minutes(5);  // HAMi's --node-lock-timeout
  // Those beyond fail at once: the threads that wait are missing to binds of other nodes.
  static constexpr int kMostWaiting = 8;

  // A node, and its lock as it was written; empty = it was not.
  struct Held {
    std::string node;
    std::string text = {};
  };

  // rules outlive the object.
  HamiNodeLock(kube::WriteContext write, const wire::PodRules& rules)
      : write_(std::move(write)), rules_(rules) {}

  // Takes the lock of held.node. Error: kDeadline when it is held for another pod, or the API
  // server does not answer, until then; kNotFound when the node is gone; kInvalidArgument when the
  // node may not be changed or its lock cannot be read. With a held.text the lock may be taken all
  // the same: it was written, and no answer came.
  Status Take(const PodId& pod, Instant deadline, Held& held);

  // Success: it is not ours any more, whoever removed it. Error: kUnavailable.
  Status Release(const Held& held);

 private:
  // held_by_other: set when the attempt failed because the lock is held for another pod.
  kube::Attempt TryTake(const PodId& pod, Held& held, Duration timeout, bool& held_by_other);
  [[nodiscard]] kube::Backoff Waits() const;
  // Whether the lock may be taken; kInvalidArgument where it cannot be read.
  Result<bool> IsOpen(const std::string& text, const std::string& node, const PodId& pod,
                      Duration timeout);
  Result<kube::ApiResponse> Patch(const std::string& node, const std::string& version,
                                  std::string_view lock, Duration timeout);

  const kube::WriteContext write_;
  const wire::PodRules& rules_;
  std::atomic<int> waiting_{0};
};

}  // namespace berth::dialects
