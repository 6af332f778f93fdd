// SPDX-License-Identifier: Apache-2.0
//
// ApiPodWaker: makes kube-scheduler ask again about pods, by a condition on their status
// (wire/api/writes_json.h), with a thread of its own.
//
// The condition is the only thing that Berth writes to a pod that is not bound. If Berth has no
// right to write it, that is reported once, and kube-scheduler asks again about a pod after the
// next event of the cluster, or after some minutes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "server/extender/ports/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/write/work_queue.h"
#include "server/wire/node/node_traits.h"

namespace berth::kube {

// Called on the thread that writes, once for each kind of refusal.
using OnProblem = std::function<void(const std::string& problem)>;

// Any thread may call it.
class RefusalNews {
 public:
  explicit RefusalNews(OnProblem tell) : tell_(std::move(tell)) {}

  // Tells of it, unless it is as the last one but for the name behind the colon.
  void Refused(const std::string& problem) BERTH_EXCLUDES(mutex_);
  void Accepted() BERTH_EXCLUDES(mutex_);

 private:
  const OnProblem tell_;
  Mutex mutex_;
  std::string kind_ BERTH_GUARDED_BY(mutex_);
};

// Any thread may call it.
class ApiPodWaker final : public PodWaker {
 public:
  static constexpr std::size_t kMostWaiting = 1024;

  // References: they outlive the waker.
  ApiPodWaker(ApiClient& client, const Clock& clock, const WriteFence& fence, OnProblem on_problem);
  // A pod that is gone or bound by then is left alone, and so are all while another process leads.
  // False: as many wait to be woken as it keeps.
  [[nodiscard]] bool Wake(const PodId& pod) override;

  struct Stats {
    std::uint64_t woken = 0;
    std::uint64_t failed = 0;
  };
  [[nodiscard]] Stats stats() const { return {woken_.load(), failed_.load()}; }

 private:
  static constexpr int kAttempts = 3;

  void Post(const PodId& pod);

  ApiClient& client_;
  const Clock& clock_;
  const WriteFence& fence_;
  RefusalNews news_;
  std::atomic<std::uint64_t> woken_{0}, failed_{0};
  WorkQueue<PodId> queue_;
};

// ApiPodEvictor: evicts pods by the API server's Eviction (policy/v1), which keeps
// PodDisruptionBudgets and gives the pod its time to end.

// Any thread may call it.
class ApiPodEvictor final : public PodEvictor {
 public:
  static constexpr Duration kMostPerEviction = std::chrono::seconds(2);

  // References: they outlive the evictor. on_problem: not where a budget is the cause.
  ApiPodEvictor(ApiClient& client, const Clock& clock, WriteFence& fence, OnProblem on_problem)
      : client_(client), clock_(clock), fence_(fence), news_(std::move(on_problem)) {}

  // One attempt, which takes kMostPerEviction at most. None while another process leads.
  Outcome Evict(const PodId& pod) override;

 private:
  ApiClient& client_;
  const Clock& clock_;
  WriteFence& fence_;
  RefusalNews news_;
};

// ApiNodeHolder: holds nodes by their annotations (wire/node/node_traits.h), with a thread of its
// own. Without the right to write them, that is reported once, and nodes are not held.

// Any thread may call it.
class ApiNodeHolder final : public NodeHolder {
 public:
  static constexpr std::size_t kMostWaiting = 64;
  // After the API server has refused one it is asked for nothing for so long.
  static constexpr Duration kAfterRefusal = std::chrono::minutes(10);

  // References: they outlive the holder.
  ApiNodeHolder(ApiClient& client, const Clock& clock, const WriteFence& fence,
                OnProblem on_problem);

  [[nodiscard]] std::set<std::string> Held() const override BERTH_EXCLUDES(mutex_);
  // None while another process leads.
  void Hold(const std::string& node, bool hold) override;
  // What the API server has of the node now.
  void Saw(const std::string& node, const wire::NodeHold& hold) BERTH_EXCLUDES(mutex_);

 private:
  using Order = std::pair<std::string, bool>;
  void Post(const Order& order) BERTH_EXCLUDES(mutex_);

  ApiClient& client_;
  const Clock& clock_;
  const WriteFence& fence_;
  RefusalNews news_;
  Instant not_before_{};  // of the thread alone
  mutable Mutex mutex_;
  std::map<std::string, wire::NodeHold> seen_ BERTH_GUARDED_BY(mutex_);  // none that are empty
  WorkQueue<Order> queue_;
};

}  // namespace berth::kube
