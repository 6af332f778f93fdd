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
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/explain/kept_room.h"
#include "server/extender/extender.h"
#include "server/extender/ports/ports.h"
#include "server/telemetry/metrics.h"
#include "server/why/explain_json.h"
#include "server/why/live.h"
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

// WaitingNews: tells why pods keep waiting, each in the sentence of `berth explain pod`, so that
// `kubectl describe pod` has the answer too: once for each pod and cause.
//
// A cause is what weighs most, not the numbers: these change with every pod that comes or goes.
// A cause is reported again after kAgain, when the API server has forgotten its Event. Pods that
// are alike, as those of one Job, share one explanation, but for those for which room is kept.
//
// The pods are those of the schedulers that ask this Berth; others are placed by somebody else.

// One thread at a time.
class WaitingNews {
 public:
  // So many Events a look, which come a second apart: 1,000 pods have theirs within 30 s.
  static constexpr int kPerLook = 40;
  // An explanation takes milliseconds per thousand nodes: what a look may take of the clock's time,
  // but for the one explanation that it makes in any case.
  static constexpr Duration kBudget = std::chrono::milliseconds(40);
  static constexpr std::size_t kMostQueued = 200;
  static constexpr Duration kPatience = std::chrono::seconds(10);  // since the pod was created
  static constexpr Duration kRefill = std::chrono::seconds(5);
  static constexpr Duration kRecheck = std::chrono::minutes(5);  // whether the cause is another
  // After the last look, where a node has been reserved for the pod since, or is no longer.
  static constexpr Duration kRecheckTurn = std::chrono::minutes(1);
  static constexpr Duration kAgain = std::chrono::minutes(55);  // an API server keeps Events for
                                                                // an hour unless it says otherwise

  // References: they outlive the object.
  WaitingNews(const Live& live, DecisionSink& sink, const Clock& clock)
      : live_(live), sink_(sink), clock_(clock) {}

  // Call it about once a second where this process leads.
  void Look();

 private:
  struct Told {
    std::map<std::string, Instant> causes;  // when each was told, within kAgain
    std::string last;                       // the cause of the last look; empty: none was taken
    Instant next{};                         // look
  };

  // Pods that are alike, and what is said of them.
  struct Alike {
    std::vector<WaitingPod> pods;  // that are not told yet, the last one first
    std::string cause = {};
    std::string sentence = {};
    bool explained = false;
    bool has_room = false;  // room is kept for the one pod
  };

  void Refill(Instant now);
  // Whether to look at the pod again; told: what it was told last.
  static bool IsDue(const Told& told, const OwnRooms& rooms, const std::string& uid, Instant now);
  void Enqueue(std::vector<WaitingPod> due, const OwnRooms& rooms);
  // Explains what is next in the queue; false: there is no more time.
  [[nodiscard]] bool Explain(Alike& alike, Instant began);
  void Tell(const Alike& alike, const WaitingPod& pod, Instant now);

  const Live& live_;
  DecisionSink& sink_;
  const Clock& clock_;
  Instant refill_{};
  std::map<std::string, Told> told_;  // by UID
  std::deque<Alike> queue_;
  bool has_explained_ = false;  // in this look
};

}  // namespace berth
