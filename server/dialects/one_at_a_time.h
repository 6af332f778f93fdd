// SPDX-License-Identifier: Apache-2.0
//
// OneAtATime: some agents are not told for which pod the kubelet asks them, and take the one that
// has waited longest for as much. Of two pods on their way to their GPUs one could so get the
// other's. So a pod is bound to a node of such an agent when no other pod there waits to be served.
//
// A pod that has waited for kExpires is passed over: the agent, or the kubelet, does not serve.
// Anybody who may write a pod may write its annotations: a pod waits only if it asks for what
// the agent hands out, and once: from when this process first saw it wait, or from the time that it
// says, whichever is earlier.
#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/watch/watch_source.h"
#include "server/wire/json/strict_json.h"

namespace berth::dialects {

// How the pods of one agent show that they wait.
struct Handover {
  std::string_view agent;     // NodeSpec::share_agent
  std::string_view resource;  // by which its pods ask for GPUs
  // Since when the pod with these annotations waits; nullopt: it has been served, or is not the
  // agent's. A time that cannot be read is the longest ago.
  std::optional<WallTime> (*waits_since)(const wire::Json& annotations) = nullptr;
};

// Any thread may call any function.
class OneAtATime final : public kube::ClusterExtension {
 public:
  static constexpr Duration kExpires = std::chrono::minutes(5);
  // More fail at once: threads that wait here cannot bind pods of other nodes.
  static constexpr int kMostWaiting = 8;
  // Pods that were seen waiting, of all nodes. Beyond, those of the node that was looked at longest
  // ago are forgotten, and of one node with more nobody waits for the others.
  static constexpr std::size_t kMostSeen = 10'000;

  OneAtATime(kube::WriteContext write, Handover handover)
      : write_(std::move(write)), handover_(handover) {}

  // Error, beside those of bind: kDeadline when another pod still waits at the deadline, or the API
  // server does not answer.
  Status AroundBind(const BindOrder& order, const std::function<Status()>& bind) override
      BERTH_EXCLUDES(mutex_);

  // How many pods are remembered.
  [[nodiscard]] std::size_t seen() const BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return seen_pods_;
  }

 private:
  // Waits until nobody else binds there, and no pod there waits to be served.
  Status Await(const BindOrder& order, bool& entered) BERTH_EXCLUDES(mutex_);
  kube::Attempt LookAt(const BindOrder& order, Duration left, bool& entered) BERTH_EXCLUDES(mutex_);
  // When pods of one node were first seen waiting, by UID.
  using Times = std::map<std::string, WallTime>;
  struct Seen {
    Instant looked{};
    Times since;
  };

  // The pod there that waits; "" = none.
  Result<std::string> WaitingOn(const std::string& node, const PodId& but, Duration timeout)
      BERTH_EXCLUDES(mutex_);
  // The first of the pods, all of the node, that waits and has not expired.
  std::string FirstWaiting(const std::string& node, const wire::Json& pods, const PodId& but)
      BERTH_EXCLUDES(mutex_);
  void KeepSeen(const std::string& node, Seen seen) BERTH_REQUIRES(mutex_);

  const kube::WriteContext write_;
  const Handover handover_;
  std::atomic<int> waiting_{0};
  mutable Mutex mutex_;
  std::set<std::string> binding_ BERTH_GUARDED_BY(mutex_);     // nodes
  std::map<std::string, Seen> seen_ BERTH_GUARDED_BY(mutex_);  // by node
  std::size_t seen_pods_ BERTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace berth::dialects
