// SPDX-License-Identifier: Apache-2.0
//
// ApiBinder: binds pods through the API server - one Binding that carries the pod's UID and the
// grants as annotations, so that node and devices are written in one atomic step.
//
// A Binding that the API server refuses for now (429, 5xx, no answer) is sent again until the
// deadline. That is safe: a Binding that was carried out before is answered 409.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/state/cluster_event.h"
#include "server/extender/ports/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/write/work_queue.h"
#include "server/wire/api/api_json.h"
#include "server/wire/node/node_json.h"
#include "server/wire/node/node_traits.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube {

// EventRecorder: reports binds, and why a pod waits, as Events on the pod, where `kubectl describe
// pod` shows them.
//
// Events are a courtesy: they are posted by a thread of their own, at a limited rate, warnings
// first; what exceeds the rate or the queue is dropped and counted.

// Any thread may call it.
class EventRecorder final : public DecisionSink {
 public:
  // Called on the recorder's thread when the API server takes no events, once for each reason.
  using OnProblem = std::function<void(const std::string& problem)>;

  // References: they outlive the recorder. `instance` names this process.
  EventRecorder(ApiClient& client, const Clock& clock, std::string instance, OnProblem on_problem);

  void Record(const Decision& decision) override;
  void Record(const GangNews& news) override;
  void Record(const PodWaits& news) override;
  void Record(const PodsEvicted& news) override;
  void Record(const RoomNews& news) override;
  // A warning about a pod that no decision is about. reason: CamelCase, a few words.
  void Warn(const PodId& pod, std::string reason, std::string message);

  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(); }

 private:
  static constexpr std::size_t kMostWaiting = 512;
  static constexpr int kBurst = 50;      // events that may go at once
  static constexpr int kPerSecond = 50;  // and after that; pods that wait take 40 (waiting_whys.h)

  // Warnings go to the front.
  void Put(wire::PodEvent event);
  // At the limited rate.
  void Take(wire::PodEvent event);
  void Post(const wire::PodEvent& event);

  ApiClient& client_;
  const Clock& clock_;
  const std::string instance_;
  const OnProblem on_problem_;
  std::atomic<std::uint64_t> dropped_{0};
  // The queue's thread alone.
  double tokens_ = kBurst;
  Instant filled_ = std::chrono::steady_clock::now();
  std::uint64_t posted_ = 0;
  std::string problem_;  // the last one that was reported; empty = all is well since
  WorkQueue<wire::PodEvent> queue_;
};

// What the API server has of the pod; errors as PodBinder::Find has them.
Result<PodTruth> FindPod(ApiClient& client, const wire::PodRules& rules, const PodId& id);

// Any thread may call it.
class ApiBinder final : public PodBinder {
 public:
  // Does what agents need before and after the Binding, and calls `bind` at most once in between.
  using Surround =
      std::function<Status(const BindOrder& order, const std::function<Status()>& bind)>;

  // References: they outlive the binder.
  struct Parts {
    WriteContext write;
    const wire::PodRules& rules;
    Surround surround = {};
  };

  explicit ApiBinder(Parts parts) : parts_(std::move(parts)) {}

  Status Bind(const BindOrder& order) override;
  Result<PodTruth> Find(const PodId& id) override;

  struct Stats {
    std::uint64_t retries = 0;
    std::uint64_t in_doubt = 0;  // binds that ended with kUnavailable
  };
  [[nodiscard]] Stats stats() const { return {retries_.load(), in_doubt_.load()}; }

 private:
  Status Post(const BindOrder& order);
  // maybe_done: set when the attempt may have been carried out although it failed.
  Attempt TryOnce(const ApiRequest& request, bool& maybe_done);

  const Parts parts_;
  std::atomic<std::uint64_t> retries_{0};
  std::atomic<std::uint64_t> in_doubt_{0};
};

// The note of a bind on its way (server/kube/lead/write_journal.h): a file of the cluster
// (server/wire/file/cluster_file.h) that has this pod alone.

// Never empty. Of a pod that gets no devices it says only that.
std::string NoteOfBind(const BindOrder& order);

// The pod with its devices; nullopt: it gets none. Error: kInvalidArgument, it is no such note.
Result<std::optional<PodBound>> BindOfNote(const std::string& note, const wire::NodeRules& rules);

// ApiPodWaker: makes kube-scheduler ask again about pods, by a condition on their status
// (wire/api/api_json.h), with a thread of its own.
//
// The condition is the only thing that Berth writes to a pod that is not bound. If Berth has no
// right to write it, that is reported once, and kube-scheduler asks again about a pod after the
// next event of the cluster, or after some minutes.

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
