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
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "scoring/admission.h"
#include "scoring/engine/engine.h"
#include "scoring/judgement.h"
#include "scoring/waste/request_mix.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/extender/kept/device_rooms.h"
#include "server/extender/kept/earmark_table.h"
#include "server/extender/ports/binds_under_way.h"
#include "server/extender/ports/ports.h"
#include "server/extender/waiting/pending_pods.h"

namespace berth {

// What filter says of a pod.
struct FilterAnswer {
  std::vector<Reason> reasons = {};  // one per candidate
  Reason unknown = Reason::kFits;    // of nodes asked about that the snapshot does not have
  bool fits = false;                 // some node takes the pod, one that we do not know perhaps
  // No node does, and...
  bool may_change = false;   // ...a newer state may say otherwise within moments
  bool for_evicted = false;  // ...room is being made for the pod (pending_pods.h)
  // ...but for a room of others' (device_rooms.h): DeviceRooms::openings when it was asked.
  std::optional<std::uint64_t> kept_out = {};
  // The pod's gang keeps it from every node, also from those that are not known: why. "" = it does
  // not. `reasons` tell then for which nodes an eviction may help.
  std::string nowhere = {};
  bool gang_wakes = false;  // ...and GangTable has it asked about again
  // It fits once these are allocated together, and then Extender::Allocated is to be called. It
  // goes on then where `goes_on`, else it has to be asked about anew.
  std::vector<ClaimOrder> allocate = {};
  bool goes_on = false;
};

class Extender {
 public:
  static constexpr std::size_t kMaxPendingPods = 1 << 16;  // and PendingPods::kMostBytes
  // Members of gangs that the waker had no room for; of more the others are not woken.
  static constexpr std::size_t kMostOwedWakes = 1 << 16;
  static constexpr Duration kLongestStock = std::chrono::seconds(5);

  // References: they outlive the Extender.
  struct Parts {
    ClusterState& state;
    PodBinder& binder;
    DecisionSink& sink;
    const Clock& clock;
    const DisruptionBudgets* budgets = nullptr;  // nullptr: there are none
    LearnedMix* mix = nullptr;                   // hears of every pod that arrives
    NodeDomains* domains = nullptr;              // nullptr: no levels, and no pod asks for one
    // Arrived tells which pods arrive, as the API server shows them. Without that a pod arrives
    // when it is filtered for the first time.
    bool watches_arrivals = false;
    // kube-scheduler is in front, which knows CPU, memory, taints and which nodes are ready: it
    // decides about pods that ask for no GPU. Where there is none we do.
    bool behind_scheduler = false;
    GangTable* gangs = nullptr;               // nullptr: pods of a gang are pods like others
    WaitingPods* waiting = nullptr;           // hears of members that are asked about
    PodWaker* waker = nullptr;                // of members that sleep; nullptr: nobody wakes them
    GangHistory* history = nullptr;           // nullptr: nothing is known of pods that have ended
    const DeviceRooms* rooms = nullptr;       // nullptr: none is made
    const GangClaims* claims = nullptr;       // nullptr: Berth chooses no devices of claims
    MoveHolds* moves = nullptr;               // nullptr: nobody is moved
    const RunTimeTable* run_times = nullptr;  // nullptr: nobody learns how long pods run
    const JobEndTable* job_ends = nullptr;    // nullptr: nobody knows until when Jobs run
  };
  // What can be exchanged while it runs.
  struct Policy {
    std::shared_ptr<Engine> engine;
    Duration reservation_time;       // how long a bind may take
    std::size_t nodes_to_score = 0;  // that Filter lets pass, see there; 0: all of them
    GangTable::Settings gangs = {};
    NodeGuard guard = NodeGuard::kOff;           // of GPU nodes
    std::optional<EarmarkLimits> earmarks = {};  // empty: nothing is kept for pods that wait
    bool moves_keep_model = true;                // MoveRules::keep_model
  };

  // What a question is answered by. An answer takes it once, at the beginning, and hands
  // it to all functions that the answer needs: what changes meanwhile is for the next question.
  struct Moment {
    std::shared_ptr<const Snapshot> snapshot;
    std::shared_ptr<const Policy> policy;
    Reservations reservations = {};  // what is kept for pods and gangs that wait
    std::uint64_t openings = 0;      // DeviceRooms::openings before these were taken
  };

  Extender(const Parts& parts, Policy policy)
      : parts_(parts),
        pending_(kMaxPendingPods),
        earmarks_(parts.run_times, parts.job_ends,
                  [this](const PodRequest& pod) { return NominatedTo(pod); }) {
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
  // less work (scoring/lighter_victims.h). The most important come first: of the first
  // kube-scheduler takes the priority. A node where no allowed set suffices is left out: nothing is
  // evicted in vain. Given victims that are not on the node free nothing.
  [[nodiscard]] std::vector<NodeVictims> Preempt(const Moment& now, const PodRequest& pod,
                                                 std::span<const NodeVictims> nodes);

  // Where binds are carried out; without that, on the thread that calls Bind. To be called before
  // there are requests; what takes the jobs ends before the Extender.
  void BindOn(Jobs jobs) { jobs_ = std::move(jobs); }

  // Tells `done`: success, the pod is bound to the node (now, or already before). Idempotent by
  // UID; a second bind of a pod whose bind is under way waits for that one (binds_under_way.h). On
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
  void TakeOverGangs();
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

  static constexpr int kBindAttempts = 3;  // a lost race is placed anew on the newest snapshot

  struct Granted {
    Placement placement;
    std::optional<double> link_quality = {};  // device_fit.h
    // For which it was found, if it was reserved just now.
    std::shared_ptr<const Node> node = nullptr;
  };

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
  // (scheduler_victims.h).
  static void LetPassWithoutOthers(const Snapshot& snapshot, const PodRequest& pod,
                                   std::span<const NodeIndex> candidates, FilterAnswer& answer);
  // For which of the nodes others may be evicted for such a pod (GangTable::Preempt).
  GangVerdict PreemptMember(const Moment& now, const PodRequest& pod,
                            std::span<const NodeVictims> nodes, const EvictionLimits& limits);
  // Without a lock.
  void Do(GangActions actions);
  void Wake(std::span<const PodId> pods) BERTH_EXCLUDES(wakes_mutex_);

  // Whether a bind still has to ask the pod's gang, or has been released by it.
  enum class Turn { kAsksGang, kReleased };
  // Carries the bind out, answers it, and goes on with those that stand in line behind it.
  void CarryOut(BindsUnderWay::Entry bind, Turn turn = Turn::kAsksGang);
  // Has it carried out as a job; false: there is no room, or there are no jobs.
  bool Post(const BindsUnderWay::Entry& bind, Turn turn = Turn::kAsksGang);
  // The bind whose turn it is, if there is one: as a job, else here.
  void CarryOnWith(const BindsUnderWay::Entry& next);
  // Ends a bind that is not carried out.
  void Answer(const BindsUnderWay::Entry& bind, Status bound);
  // Nothing: the pod's gang holds the bind.
  std::optional<Status> BindOnce(const BindsUnderWay::Entry& bind, Turn turn);
  // What is to be bound, and where it is bound already.
  struct Known {
    std::shared_ptr<const PodRequest> pod;
    std::optional<Placement> bound;
  };
  Result<Known> Know(const PodId& id);
  // What evictions have to respect, at this moment. Valid while the object is.
  struct Limits {
    std::shared_ptr<const DisruptionBudgets::List> budgets;
    EvictionLimits limits;
  };
  [[nodiscard]] Limits LimitsNow() const;
  // Where the pod's group is, where domains matter to the pod.
  [[nodiscard]] GroupPlaces GroupOf(const std::shared_ptr<const Snapshot>& snapshot,
                                    const PodRequest& pod) const;
  [[nodiscard]] Question QuestionAbout(const Moment& now, const PodRequest& pod,
                                       std::span<const NodeIndex> candidates) const {
    return {.pod = pod,
            .candidates = candidates,
            .group = GroupOf(now.snapshot, pod),
            .behind_scheduler = parts_.behind_scheduler,
            .guard = now.policy->guard,
            .reservations = &now.reservations,
            .claims = IsToGetDevices(pod)};
  }
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
  // kFits unless the newest state has the pod's group in another domain than its node's.
  [[nodiscard]] Reason DomainAllows(const PodRequest& pod, const std::string& node) const;
  std::string NextDecisionId();
  // Since when the pod waits, as the API server has it; empty: not known.
  [[nodiscard]] std::optional<WallTime> CreatedOf(const PodId& id) const;
  [[nodiscard]] std::optional<Duration> SinceWall(const std::optional<WallTime>& then) const;
  Result<Granted> Commit(const Policy& policy, Known known, const std::string& node,
                         std::string_view decision);
  // Whether the pod's GPUs there are kube-scheduler's to give (admission.h).
  [[nodiscard]] bool IsGivenByClaim(const PodRequest& pod, const std::string& node) const;
  // For a pod that is kube-scheduler's alone, or whose GPUs are.
  Result<Granted> BindUnbooked(const Policy& policy, const PodRequest& pod, const std::string& node,
                               std::string_view decision);
  Result<Granted> ReserveOn(const Policy& policy, const PodRequest& pod, const std::string& node);
  // Requires: granted by ReserveOn.
  Status TellReserved(const Policy& policy, const PodRequest& pod, const Granted& granted,
                      std::string_view decision);
  [[nodiscard]] Result<Granted> AsBoundBefore(const PodId& id, const std::string& node,
                                              Error error) const;
  Result<PodTruth> Settle(const PodId& id);

  const Parts parts_;
  PendingPods pending_;
  Evictions evictions_;
  EarmarkTable earmarks_;
  RecentDecisions recent_;
  std::atomic<std::uint64_t> decisions_{0};
  mutable Mutex policy_mutex_;
  std::shared_ptr<const Policy> policy_ BERTH_GUARDED_BY(policy_mutex_);
  BindsUnderWay under_way_;
  Jobs jobs_;
  Mutex wakes_mutex_;
  // Members of gangs that the waker had no room for, by UID.
  std::map<std::string, PodId> owed_wakes_ BERTH_GUARDED_BY(wakes_mutex_);
};

}  // namespace berth
