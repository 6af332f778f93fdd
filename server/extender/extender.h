// SPDX-License-Identifier: Apache-2.0
//
// Extender: the four verbs in domain terms. Every verb is answered by one snapshot and one policy;
// nothing that decides is kept between verbs but reservations and what is learned of the mix. What
// a verb says of a node is scoring/judgement's; the Extender remembers, records and reserves.
//
//   ClusterState state;
//   Extender extender({.state = state, .binder = binder, .sink = sink, .clock = clock},
//                     {.engine = engine, .reservation_time = std::chrono::seconds(30)});
//   const Extender::Moment now = extender.Now();                   // once per question
//   const FilterAnswer answer = extender.Filter(now, pod, nodes);  // a reason per node
//   extender.Prioritize(now, pod, fitting);                        // 0..10 per node
//   extender.Bind({"namespace", "pod", uid, "node"}, [](Status bound) { ... });
//
// Any thread may call any function. What a bind does may block in the PodBinder, so it runs as a
// job where there are Jobs; the others only compute.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/state/snapshot.h"
#include "scoring/admission.h"
#include "scoring/judgement.h"
#include "server/extender/binds/binds.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/extender/kept/earmark_table.h"
#include "server/extender/verbs.h"
#include "server/extender/waiting/pending_pods.h"

namespace berth {

class Extender {
 public:
  static constexpr std::size_t kMaxPendingPods = 1 << 16;  // and PendingPods::kMostBytes
  static constexpr Duration kLongestStock = std::chrono::seconds(5);

  using Parts = ExtenderParts;
  using Policy = ExtenderPolicy;
  using Moment = ExtenderMoment;

  Extender(const Parts& parts, Policy policy)
      : parts_(parts),
        pending_(kMaxPendingPods),
        earmarks_(parts.run_times, parts.job_ends,
                  [this](const PodRequest& pod) { return NominatedTo(pod); }),
        wakes_(parts.waker),
        commit_({parts.state, parts.binder, parts.clock, parts.behind_scheduler,
                 [this](const auto& on, const PodRequest& pod) { return GroupOf(on, pod); }}),
        binds_([this](const auto& bind, auto turn) { return BindOnce(bind, turn); }) {
    Use(std::move(policy));
  }

  // Verbs that begin from now on decide so; one that is under way ends with the policy that it
  // began with. A bind that its gang holds goes on with the policy of when it is carried out.
  void Use(Policy policy) BERTH_EXCLUDES(policy_mutex_);
  [[nodiscard]] std::shared_ptr<const Policy> policy() const BERTH_EXCLUDES(policy_mutex_);
  [[nodiscard]] const RecentDecisions& recent_decisions() const { return recent_; }
  // What it remembers of pods between verbs.
  [[nodiscard]] const PendingPods& pending() const { return pending_; }

  [[nodiscard]] std::shared_ptr<const Snapshot> Current() const { return parts_.state.Current(); }
  [[nodiscard]] Moment Now() const;

  // Whether the pod is kube-scheduler's alone: it asks for no GPU, and for nothing in words of
  // ours. What it takes is in the books once the cluster shows it.
  [[nodiscard]] bool LeavesToScheduler(const Policy& policy, const PodRequest& pod) const {
    return parts_.behind_scheduler && AsksForNothingOfOurs(pod) && !StartsWithGang(policy, pod);
  }
  // Whether every node fits such a pod, also one that is not ready or not known: the pods that make
  // a node ready are of this kind. Others the guard of GPU nodes may turn away from these.
  [[nodiscard]] bool FitsAnywhere(const Moment& now, const PodRequest& pod) const {
    return LeavesToScheduler(*now.policy, pod) && !IsTurnedAway(pod, now.policy->guard);
  }
  // What Filter does for one that fits anywhere, without a look at the nodes.
  void PassBy(const Moment& now, const PodRequest& pod);

  // Judges the candidates (scoring/judgement.h) and remembers the pod. Of a pod with GPUs that
  // comes for the first time only the best nodes_to_score go on; one that comes again was not
  // placed on any of these and gets all that fit. Requires: candidates are nodes of the snapshot,
  // each at most once. some_unknown: the question also names nodes that the snapshot does not have.
  // looks_again: the same question was judged before, and its answer was held back.
  [[nodiscard]] FilterAnswer Filter(const Moment& asked, const PodRequest& pod,
                                    std::span<const NodeIndex> candidates,
                                    bool some_unknown = false, bool looks_again = false);

  // Reports new pods, once each, so that Filter need not learn of them; it may still be called for
  // others. An empty list says only that the nodes may have changed for the first time.
  void Arrived(std::span<const std::shared_ptr<const PodRequest>> pods);

  // The request as it was filtered last; nullptr when that is forgotten.
  [[nodiscard]] std::shared_ptr<const PodRequest> Remembered(const PodId& pod) {
    return pending_.Find(pod.uid);
  }
  // PendingPods::NotBound
  [[nodiscard]] std::string NotBound(const PodId& pod) const {
    return pending_.NotBound(pod.uid, parts_.clock.Now());
  }

  // One priority 0..10 per candidate. Requires: as for Filter.
  [[nodiscard]] std::vector<std::uint8_t> Prioritize(const Moment& now, const PodRequest& pod,
                                                     std::span<const NodeIndex> candidates);

  // The nodes on which the pod fits once the victims are gone: all that are given, and those that
  // our GPU accounting needs beside them (scoring/victims.h), or others in their place that lose
  // less work (scoring/victims.h). The most important come first: of the first
  // kube-scheduler takes the priority. A node where no allowed set suffices is left out: nothing is
  // evicted in vain. Given victims that are not on the node free nothing.
  [[nodiscard]] std::vector<NodeVictims> Preempt(const Moment& now, const PodRequest& pod,
                                                 std::span<const NodeVictims> nodes);

  // Where binds are carried out; without that, on the thread that calls Bind. To be called before
  // there are requests; what takes the jobs ends before the Extender.
  void BindOn(Jobs jobs) { binds_.RunOn(std::move(jobs)); }

  // Tells `done`: success, the pod is bound to the node (now, or already before). Idempotent by
  // UID; a second bind of a pod whose bind is under way waits for that one (binds/binds.h). On
  // an Error nothing stays reserved, unless the pod may be bound all the same (kUnavailable): then
  // SettleOverdue finds out. False: too many binds wait, and `done` is not called.
  // waits: whether the client still waits for the answer; none: it does.
  [[nodiscard]] bool Bind(BindRequest request, BindDone done, std::function<bool()> waits = {});

  // Whether the pod may have to wait for others of its gang.
  [[nodiscard]] bool StartsWithGang(const Policy& policy, const PodRequest& pod) const {
    return parts_.gangs != nullptr && GangTable::Concerns(policy.gangs, pod);
  }
  // As the functions of GangTable; what follows is carried out.
  void Allocated(const GangId& gang, bool allocated);
  void LookAtGangs();
  // What is kept for pods that wait, at this moment: to be called some times a second.
  void LookAtEarmarks();
  void TakeOverGangs(Duration patience = gangs::kNudgeAfter);  // as GangTable::TakeOver
  // Of a cluster that stands still, before there are verbs: takes over its gangs, and looks until
  // each was looked at once. Ends after kLongestStock, whatever is left then.
  void TakeStock();
  void LetGoOfGangs(const Error& why);
  // Asks the cluster for what gangs may lack because it has ended: one question a call, so that
  // what else its thread does waits for no more. Blocks.
  void LearnOfGangs();

  // Asks the cluster about every doubt that is overdue, but for pods whose bind is under way, and
  // books what it says; binds of these pods wait meanwhile. Returns how many were settled; gives up
  // for now when the cluster cannot be asked. Blocks.
  std::size_t SettleOverdue();

 private:
  friend class Inquiry;  // reads what it is asked about

  // A pod is filtered for the first time.
  void Arrived(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
               const RequestShape& shape);
  // Who is to be evicted from the node; nothing: it is left out.
  static std::optional<NodeVictims> VictimsFor(const Moment& now, const PodRequest& pod,
                                               const GroupPlaces& group, NodeIndex index,
                                               const NodeVictims& asked,
                                               const EvictionLimits& limits, bool breaks_gangs);
  // Remembers that these may be evicted, if our books have them. Requires: known nodes.
  void AgreeOn(const Snapshot& snapshot, const PodRequest& pod, std::vector<NodeVictims> nodes);
  // If the outcome of a bind is unknown, offers only that node: a second bind settles it, and the
  // pod's own reservation does not count. The same where room was made for the pod and is planned
  // for it. Nothing: neither is so, or the node is no candidate.
  std::optional<FilterAnswer> FilterInDoubt(const std::shared_ptr<const Snapshot>& snapshot,
                                            const PodRequest& pod,
                                            std::span<const NodeIndex> candidates) const;
  // Passes over the nodes that are out for the pod (pending_pods.h), if others fit.
  void LeaveOut(const Snapshot& snapshot, const PodRequest& pod, Judgement& judged);
  // kube-scheduler has no other node for the pod, or none that Berth likes as much.
  void Told(const Snapshot& snapshot, const PodRequest& pod, NodeIndex node);
  // Whether what is planned for the pod was planned for it alone: in a room, or as a successor.
  [[nodiscard]] bool HasOwnPlace(const std::string& uid) const;
  // Requires: the node is a candidate.
  [[nodiscard]] FilterAnswer OnlyOn(NodeIndex node, const PodRequest& pod,
                                    std::span<const NodeIndex> candidates) const;
  // Filter for a pod whose gang decides; nothing: it is for the pod alone to decide.
  std::optional<FilterAnswer> FilterMember(const Moment& now, const PodRequest& pod,
                                           std::span<const NodeIndex> candidates);
  // FilterAnswer::kept_out.
  static std::optional<std::uint64_t> KeptOut(const Moment& now, const Question& question,
                                              std::span<const Reason> reasons);
  // The same for a pod that is placed alone: the nodes that others are gone from
  // (victims.h).
  static void LetPassWithoutOthers(const Snapshot& snapshot, const PodRequest& pod,
                                   std::span<const NodeIndex> candidates, FilterAnswer& answer);
  // For which of the nodes others may be evicted for such a pod (GangTable::Preempt).
  GangVerdict PreemptMember(const Moment& now, const PodRequest& pod,
                            std::span<const NodeVictims> nodes, const EvictionLimits& limits);
  // Without a lock.
  void Do(GangActions actions);

  // As BindsUnderWay::BindOnce: the pod's gang may hold the bind.
  std::optional<Status> BindOnce(const BindsUnderWay::Entry& bind, BindsUnderWay::Turn turn);
  // What evictions have to respect, at this moment. Valid while the object is.
  struct Limits {
    std::shared_ptr<const DisruptionBudgets::List> budgets;
    EvictionLimits limits;
  };
  [[nodiscard]] Limits LimitsNow() const;
  // Where the pod's group is, where domains matter to the pod.
  [[nodiscard]] GroupPlaces GroupOf(const std::shared_ptr<const Snapshot>& snapshot,
                                    const PodRequest& pod) const;
  // What judges the candidates for it. References: the moment and the pod.
  [[nodiscard]] Question QuestionAbout(const Moment& now, const PodRequest& pod,
                                       std::span<const NodeIndex> candidates) const;
  // Whether it has claims that are to get devices.
  [[nodiscard]] bool IsToGetDevices(const PodRequest& pod) const;
  // The nodes that are kept, and its openings into the moment.
  [[nodiscard]] std::shared_ptr<const KeptNodes> TakeKept(Moment& now) const;
  // The moment with what is kept on its snapshot.
  [[nodiscard]] Moment WithEarmarks(Moment now, EarmarkLine::Scope scope);
  // No node takes the pod: it stands in line for what becomes free.
  void StandInLine(const Moment& now, const PodRequest& pod);
  // The same for pods about which kube-scheduler asks nobody.
  void StandUnasked(const Moment& now);
  void TakeUpGangs(GangActions& actions);
  [[nodiscard]] bool StillWaits(const PodRequest& pod) const;
  // As EarmarkLine::Nominated.
  [[nodiscard]] std::string NominatedTo(const PodRequest& pod) const;
  std::string NextDecisionId();
  // Since when the pod waits, as the API server has it; empty: not known.
  [[nodiscard]] std::optional<WallTime> CreatedOf(const PodId& id) const;

  const Parts parts_;
  PendingPods pending_;
  Evictions evictions_;
  EarmarkTable earmarks_;
  RecentDecisions recent_;
  std::atomic<std::uint64_t> decisions_{0};
  mutable Mutex policy_mutex_;
  std::shared_ptr<const Policy> policy_ BERTH_GUARDED_BY(policy_mutex_);
  OwedWakes wakes_;
  PodCommit commit_;
  BindsUnderWay binds_;
};

}  // namespace berth
