// SPDX-License-Identifier: Apache-2.0
//
// HamiNodeLock: HAMi's lock on a node (hami_lock_annotation.h). A scheduler that binds a pod there
// takes it, and HAMi's agent removes it when it has served the pod.
//
// A lock of the same pod is taken again. A stale lock is taken over: one that is older than
// kExpires, or for a pod that is gone, over, or on another node. So is one that Berth has left
// behind, killed between lock and Binding: it is older than kAbandoned, its pod is bound nowhere,
// HAMi's scheduler has not placed it (it writes hami.io/vgpu-node on a pod before it takes the
// lock), and this process does not bind it. Any other lock is waited for.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/values/pod_request.h"
#include "server/kube/client/api_client.h"
#include "server/kube/write/retry.h"
#include "server/kube/write/write_context.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::dialects {

// Any thread may call any function.
class HamiNodeLock {
 public:
  static constexpr Duration kExpires = std::chrono::minutes(5);  // HAMi's --node-lock-timeout
  // By then a Binding that was sent before the process died has been carried out, or never will be.
  static constexpr Duration kAbandoned = std::chrono::seconds(10);
  // More fail at once: threads that wait here cannot bind pods of other nodes.
  static constexpr int kMostWaiting = 8;

  // A node, and its lock as it was written; empty = it was not.
  struct Held {
    std::string node;
    std::string text = {};
  };

  // Whether this process binds the pod of that "namespace/name", or does not know whether it has.
  using IsBinding = std::function<bool(const std::string& full_name)>;

  // rules outlive the object.
  HamiNodeLock(kube::WriteContext write, const wire::PodRules& rules, IsBinding is_binding)
      : write_(std::move(write)), rules_(rules), is_binding_(std::move(is_binding)) {}

  // Takes the lock of held.node. Error: kDeadline when until the deadline it is held for another
  // pod, or the API server does not answer; kNotFound when the node is gone; kInvalidArgument when
  // Berth may not change the node, or its lock cannot be read. After an error, a held.text that is
  // not empty means that the lock may be taken: it was written, and no answer came.
  Status Take(const PodId& pod, Instant deadline, Held& held);

  // Success: the lock is not held.text any more. Error: kUnavailable.
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
  const IsBinding is_binding_;
  std::atomic<int> waiting_{0};
};

}  // namespace berth::dialects
