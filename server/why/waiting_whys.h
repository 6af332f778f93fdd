// SPDX-License-Identifier: Apache-2.0
//
// WaitingWhys: why each pod that waits does so, for a list of all of them. An explanation takes
// milliseconds per thousand nodes, so pods that are alike share one, a call makes no more than fit
// into kBudget, and what was found stays until it is kFresh old and the cluster or the policy has
// changed. Where room is kept for a pod that is all that is said of it.
//
// Any thread may call it, one at a time works.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/extender.h"
#include "server/telemetry/metrics.h"
#include "server/why/explain_json.h"
#include "server/why/live_json.h"

namespace berth {

class WaitingWhys {
 public:
  static constexpr Duration kBudget = std::chrono::milliseconds(20);  // one is made in any case
  static constexpr Duration kFresh = std::chrono::seconds(10);
  // Of pods of further kinds nothing is said.
  static constexpr std::size_t kMostKinds = 100;

  using Explain =
      std::function<wire::WaitingWhy(const Extender::Moment& now, const WaitingPod& pod)>;
  using Now = std::function<Instant()>;

  explicit WaitingWhys(
      Explain explain, Now now = [] { return std::chrono::steady_clock::now(); })
      : explain_(std::move(explain)), now_(std::move(now)) {}

  struct Told {
    std::vector<wire::WaitingWhy> whys;  // one per pod; without a text: not known (yet)
    bool more = false;                   // another call would say more
  };
  Told Of(std::span<const WaitingPod> pods, const Extender::Moment& now) BERTH_EXCLUDES(mutex_);

 private:
  struct Kind {
    WaitingPod like;
    wire::WaitingWhy why = {};
    Extender::Moment moment = {};  // that it is of; without a snapshot: not explained yet
    Instant found{};
  };

  // Kinds without a waiting pod.
  void Forget(std::span<const WaitingPod> pods) BERTH_REQUIRES(mutex_);
  [[nodiscard]] std::size_t KindOf(const WaitingPod& pod) BERTH_REQUIRES(mutex_);
  // Explains kinds until the budget is spent, those without an explanation first.
  bool Work(const Extender::Moment& now) BERTH_REQUIRES(mutex_);

  const Explain explain_;
  const Now now_;
  Mutex mutex_;
  std::vector<Kind> kinds_ BERTH_GUARDED_BY(mutex_);
};

// Why a pod waits at that moment, in short: what decides and on how many nodes, and the nearest
// miss.
wire::WaitingWhy WhyWaiting(const Live& live, const Extender::Moment& now,
                            const WaitingPod& waiting);

// The pods that wait for GPUs, by what they ask for: berth_waiting_gpu_pods{asks,age},
// berth_waiting_gpu_pod_oldest_seconds{asks}, and the lines of /debug/top.

// By number of GPUs, then shares, then MIG devices. Without pods whose gates are closed: no room
// would let them in.
std::vector<wire::WaitingClass> WaitingClasses(std::span<const WaitingPod> pods, WallTime now);

// The classes that clusters are watched for are there without pods too.
void AddWaitingMetrics(std::span<const WaitingPod> pods, WallTime now, MetricsText& text);

}  // namespace berth
