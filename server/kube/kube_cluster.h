// SPDX-License-Identifier: Apache-2.0
//
// KubeCluster: Berth's side of a real cluster - who leads, what is watched, what is bound, and
// whether the books agree with the API server.
//
// Where it knows its pod (Options::label), the pod of the process that answers verbs has a label,
// by which the Service leads to it, and the others are ready as standbys. Where it does not,
// a process that does not lead is not ready.
//
// A process that goes on where another was killed (Options::election.journal) holds the devices of
// binds that may have been on their way then, until the cluster says what became of them.
//
// Only the process that leads watches. It begins with full lists, so that a new leader decides on
// the newest state and not on what it remembers. It is not ready until the lists are complete.
//
// Nodes, pods and PodDisruptionBudgets are watched here; what an ecosystem adds comes as a list of
// extensions (watch_source.h). Not every cluster serves their APIs: they are watched where they are
// served, from when they are. What is not served, or what Berth may not read, keeps nobody waiting.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/state/audit.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/waiting_pods.h"
#include "server/kube/client/api_client.h"
#include "server/kube/lead/leader_elector.h"
#include "server/kube/watch/cluster_sync.h"
#include "server/kube/watch/gang_history.h"
#include "server/kube/watch/kubelet_refusals.h"
#include "server/kube/watch/reflector.h"
#include "server/kube/watch/watch_source.h"
#include "server/kube/write/pod_writes.h"

namespace berth::kube {

// The text by which Options::on_readiness says that nothing is wrong: another process leads.
inline constexpr char kStandby[] = "standby: another replica is the leader";

// What /metrics shows of it.
struct KubeClusterStats {
  struct Resource {
    std::string name;
    ReflectorStats watch;
    std::size_t unreadable = 0;
  };
  bool leading = false;
  std::optional<bool> labelled;     // whether the pod has the leader's label; none: it is not used
  std::vector<Resource> resources;  // empty while it does not watch
  ApiBinder::Stats binds;
  std::uint64_t events_dropped = 0;
  ApiPodWaker::Stats wakes;
  std::uint64_t audits = 0;
  AuditReport audit;                   // the newest
  std::size_t differences_to_api = 0;  // pods that the API server has elsewhere; newest audit
  std::size_t disputed_pods = 0;       // whose annotation is not believed (device_disputes.h)
  ExtensionStats extensions;
  KubeletRefusals::Stats refusals;
};

// Any thread may call it.
class KubeCluster final {
 public:
  // References: they outlive the object.
  struct Parts {
    ApiClient& client;
    ClusterState& state;
    DisruptionBudgets& budgets;
    const wire::PodRules& pod_rules;
    const wire::NodeRules& node_rules;
    const Clock& clock;
    WaitingPods* waiting = nullptr;     // nullptr: nobody asks for them
    RunTimeTable* run_times = nullptr;  // nullptr: nobody learns how long pods run
    MakeExtensions extensions = {};     // called once
  };
  struct Options {
    std::optional<LeaderElector::Options> election;  // none: this process is alone
    std::optional<LeaderLabel::Options> label;       // none: pods are not labelled
    std::string instance;                            // names this process in Events
    Duration audit_every = std::chrono::minutes(1);
    int api_audit_every = 10;  // one audit in so many also lists the pods
    // For an API that is not served.
    Duration look_again_every = std::chrono::seconds(30);
    // Called each time that it has taken over and all that is awaited is listed, before the pods
    // that wait arrive.
    std::function<void()> on_listed = {};
    // Called from threads of the object; must not block.
    std::function<void(const char* why_not)> on_readiness;  // nullptr = ready; constant texts
    // The same: why the Service does not lead here although this process is ready or a standby.
    std::function<void(const char* why_not)> on_unreachable = [](const char*) {};
    std::function<void(bool is_problem, std::string_view event, std::string_view text)> on_log;
  };

  // Starts nothing.
  KubeCluster(const Parts& parts, Options options);
  // Stops.
  ~KubeCluster();

  [[nodiscard]] PodBinder& binder() { return binder_; }
  [[nodiscard]] DecisionSink& events() { return events_; }
  // Of the first extension that allocates claims; nullptr where none does.
  [[nodiscard]] ClaimAllocator* claim_allocator();
  [[nodiscard]] PodWaker& pod_waker() { return waker_; }
  [[nodiscard]] PodEvictor& pod_evictor() { return evictor_; }
  [[nodiscard]] NodeHolder& node_holder() { return holder_; }
  [[nodiscard]] GangHistory& gang_history() { return gang_history_; }
  // Which other process leads, by its identity; "" = none is known, or this one does. Any thread.
  [[nodiscard]] std::string leader() const { return elector_ ? elector_->leader() : ""; }

  void Start();
  // Gives the lease up, unless a write is on its way, and watches no longer. Binds that begin now
  // fail.
  void Stop();

  // What the extensions do now and then; call it about once a second, from one thread. Blocks.
  void Upkeep();

  [[nodiscard]] KubeClusterStats stats() const BERTH_EXCLUDES(mutex_);

 private:
  // A thread for it, which outlasts that memory runs out.
  std::jthread On(void (KubeCluster::*work)(const std::stop_token&));
  void Elect(const std::stop_token& stop);
  void StepElection();
  // It does not know yet who leads, or leads and is not ready: each look may be the last one.
  [[nodiscard]] bool begins() const;
  void KeepLabel(const std::stop_token& stop);
  void Run(const std::stop_token& stop);
  // Watches while this process leads; every term begins with new lists.
  void FollowLeadership();
  void AuditAgain(const std::stop_token& stop);
  // Logs problems of that kind.
  [[nodiscard]] std::function<void(const std::string&)> Logs(const char* event) const;
  [[nodiscard]] OnUnreadable ReportUnreadable() const;
  void Report(const DeviceDispute& dispute);
  // Holds what the process before had on its way.
  void HoldWhatWasLeft();
  void HoldLeft(const PodBound& bound, Instant until);
  // As KubeletRefusals asks.
  [[nodiscard]] std::optional<std::string> WhyNotAdmitted(const PodId& id) const;
  struct Watched {
    WatchSource source;
    std::unique_ptr<Reflector> reflector;
  };
  Status AroundBind(const BindOrder& order, const std::function<Status()>& bind) const;
  [[nodiscard]] WriteContext Writing() const;
  [[nodiscard]] ClusterExtensions Extend();
  [[nodiscard]] PublishNodes NodePublisher() const;
  [[nodiscard]] std::vector<WatchSource> Sources();
  [[nodiscard]] Watched Watch(WatchSource source);
  void Watch() BERTH_EXCLUDES(mutex_);
  void WatchTheRest() BERTH_EXCLUDES(mutex_);
  void Unwatch() BERTH_EXCLUDES(mutex_);
  [[nodiscard]] const char* WhyNotLeading() const;
  [[nodiscard]] const char* WhyNotReady() const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] static bool HoldsBack(const Watched& watched);
  void AuditNow(bool lists_pods, std::uint64_t watch, const std::stop_token& stop)
      BERTH_EXCLUDES(mutex_);
  // Logs what was found unless it is what was told last.
  void Tell(const char* event, const std::vector<std::string>& found,
            std::vector<std::string>& told) const;
  void LogAudit(const AuditReport& report) BERTH_REQUIRES(mutex_);

  const Parts parts_;
  const Options options_;
  NoFence no_fence_;
  const std::unique_ptr<LeaderElector> elector_;
  WriteFence& fence_;  // of the elector, if there is one
  const std::unique_ptr<LeaderLabel> label_;
  ApiBinder binder_;
  EventRecorder events_;
  ApiPodWaker waker_;
  ApiPodEvictor evictor_;
  ApiNodeHolder holder_;
  ApiGangHistory gang_history_;
  KubeletRefusals starts_;
  const ClusterExtensions extensions_;
  NodeSink nodes_;
  PodSink pods_;
  std::optional<EndedPodSink> ended_pods_;
  TableSink<DisruptionBudgets> budgets_;

  // The thread that elects alone.
  Instant next_step_{};
  std::string election_problem_;

  // The thread that watches alone.
  bool watching_ = false;
  bool tells_arrivals_ = false;     // of pods that wait: once all that is there is known
  std::uint64_t term_ = 0;          // in which it began to watch
  std::vector<WatchSource> later_;  // Await::kNot, until all others are there
  // How often it has begun to watch, while that is complete; 0 = it is not.
  std::uint64_t watches_ = 0;
  std::atomic<std::uint64_t> ready_watch_{0};
  std::atomic<bool> knows_leader_{false};  // or has tried to

  // The thread that audits alone.
  std::vector<std::string> told_double_;
  std::vector<std::string> told_overfull_, told_over_shares_;

  mutable Mutex mutex_;
  std::vector<Watched> watched_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t audits_ BERTH_GUARDED_BY(mutex_) = 0;
  AuditReport audit_ BERTH_GUARDED_BY(mutex_);
  std::size_t differences_to_api_ BERTH_GUARDED_BY(mutex_) = 0;

  // Last: they use all the others.
  std::jthread labels_, elects_, watches_and_tells_, audits_again_;
};

}  // namespace berth::kube
