// SPDX-License-Identifier: Apache-2.0
//
// GangTable: when the members of a gang may go to their nodes: all that it needs together, or none.
//
//                   enough members
//   gathering --------------------------> waiting <-----------------------------+
//       ^  ^                               |   ^                                |
//       |  |  too few members are left     |   | the plan is broken; a hold     | the first Binding
//       |  +-------------------------------+   | ran out; nobody came           | is refused
//       |                            a plan v  |                                |
//       |                                 planned --- all are held or there --> committing
//       |  no member is left                                                    | the first Binding
//       +-------------------------------- begun <-------------------------------+ is there
//
//   waiting      no member fits any node (kGangNoRoom), and none holds anything; only while others
//                are evicted for the gang its members keep what is free on their nodes
//   planned      every member of the plan fits one node, and holds its place there (ClusterState);
//                its bind is held, without a thread
//   committing   the first Binding goes alone: until it is there, nothing has begun and everything
//                can be undone
//   begun        the gang only goes forward: held binds are carried out, and members that are
//                missing - not bound yet, or lost with their node - are planned together and bound
//                as they come
//
// A member beyond the minimum is planned with the others where there is room, and not waited for. A
// member without GPUs is bound by kube-scheduler alone: it is planned, fits no node until the gang
// has begun, and counts as held.
//
// What kube-scheduler hears does not change while nothing changes, so that it does not retry
// without pause. A bind that has to fail is answered after a second for the same reason.
//
// A gang is known when the watch shows its pods, or kube-scheduler asks about one. On a full
// cluster it does not ask: its own filters leave no node.
//
// It decides and does nothing: what follows from a call is returned as GangActions, which the
// caller carries out without any lock. Any thread may call any function. Each gang has a lock of
// its own, so that nobody waits for another gang; pods of no gang take none. A plan that takes long
// (gangs::kWorkOfAFilter) is made by Look, on copied inputs and without the gang's lock, and what
// it found is checked again as it is booked. Lock order: the gang's, then the table's, then those
// of WaitingPods, NodeDomains, the engine, ClusterState and DeviceRooms.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/engine/engine.h"
#include "scoring/reason.h"
#include "scoring/victims.h"
#include "server/extender/binds_under_way.h"
#include "server/extender/device_rooms.h"
#include "server/extender/gang_claims.h"
#include "server/extender/gang_planning.h"
#include "server/extender/gang_unit.h"
#include "server/extender/ports.h"

namespace berth {

// What is to be done, in this order.
struct GangActions {
  std::vector<std::pair<BindsUnderWay::Entry, Status>> answers;
  std::vector<BindsUnderWay::Entry> binds;  // to be carried out, each by itself
  std::vector<PodId> wakes;
  std::vector<GangNews> news;
  // Gangs without room, as many members as they lack / that have it now, by the text of their ids.
  struct Refused {
    std::vector<std::shared_ptr<const PodRequest>> pods;
    std::optional<WallTime> since;  // the gang is there; empty: nobody knows
  };
  std::vector<Refused> without_room = {};
  std::vector<std::string> with_room = {};
};

struct GangVerdict {
  enum class Kind {
    kAlone,  // like a pod of no gang
    kThere,  // it fits `node` and no other
    // It fits `node` once the claims of `allocate` are allocated, all together: then Allocated is
    // to be called. Its own are among them, or it may go on then.
    kAllocates,
    kNotNow,  // it fits no node: `reason`
  };
  Kind kind = Kind::kAlone;
  NodeIndex node = kNoNode;
  Reason reason = Reason::kFits;
  std::string text = {};  // of kPodRefused
  std::vector<ClaimOrder> allocate = {};
  bool goes_on = false;  // kAllocates: its own claims are allocated already
  // false: nothing is kept of the pod, and it is not woken from here.
  bool remembered = true;
};

class GangTable {
 public:
  struct Settings {
    std::vector<std::string> conventions;      // whose gangs start whole
    Duration hold = std::chrono::seconds(50);  // how long a bind is held at most
    // So many binds are held at the same time at most: each holds a connection. 0: as many as come.
    std::size_t most_held = 0;
    bool may_break = false;  // EvictionLimits::gangs_may_break
    friend bool operator==(const Settings&, const Settings&) = default;
  };
  // So many gangs are remembered. Those without members are forgotten to make room for others, and
  // otherwise after a while (gangs::kForgottenAfter). Beyond the bound the namespace that has most
  // of them gives way to one that has fewer, with a gang that holds nothing and has not begun. The
  // pods of a gang that is not remembered wait, as GangVerdict::remembered says.
  static constexpr std::size_t kMostGangs = 16'384;

  // References: they outlive the object.
  struct Parts {
    ClusterState& state;
    WaitingPods& waiting;
    NodeDomains& domains;
    const PodGroups* groups = nullptr;   // nullptr: sizes are as the pods were read
    const GangClaims* claims = nullptr;  // nullptr: Berth chooses no devices of claims
    DeviceRooms* rooms = nullptr;  // nullptr: nodes are not kept while others are evicted there
  };
  // Until Use says so, no gang starts whole.
  explicit GangTable(const Parts& parts);

  void Use(Settings settings) BERTH_EXCLUDES(mutex_);
  // GangPlanning::Respect
  void Respect(Reservations kept) { planning_.Respect(std::move(kept)); }

  // Whether the pod is of an all-or-nothing gang by these settings and by what the pod says.
  [[nodiscard]] static bool Concerns(const Settings& settings, const PodRequest& pod);

  // Where the pod may go. Requires: candidates are nodes of the snapshot.
  GangVerdict Filter(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                     const PodRequest& pod, std::span<const NodeIndex> candidates, Instant now,
                     GangActions& actions) BERTH_EXCLUDES(mutex_);

  // The claims of a verdict kAllocates are allocated, or it is known that none of them is.
  void Allocated(const GangId& gang, bool allocated, Instant now, GangActions& actions)
      BERTH_EXCLUDES(mutex_);

  // Where others may be evicted for the pod: on its node of a plan for the whole gang, which fits
  // once pods of lower priority are gone; else nowhere. Requires: as for Filter.
  GangVerdict Preempt(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                      const PodRequest& pod, std::span<const NodeIndex> candidates,
                      const EvictionLimits& limits, Instant now) BERTH_EXCLUDES(mutex_);
  // After a verdict kThere of Preempt: whether there are victims to evict for the pod.
  void Answered(const PodRequest& pod, bool evicts, Instant now) BERTH_EXCLUDES(mutex_);

  // For a pod for which Filter found no room: its node of a plan for the whole gang, where
  // kube-scheduler asks about a cluster without pods of lower priority (scheduler_victims.h); else
  // nowhere. Once it knows the nodes of as many members as have to start together it evicts for
  // them, and does not ask Preempt. Requires: as for Filter.
  GangVerdict FilterWithoutOthers(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                                  const PodRequest& pod, std::span<const NodeIndex> candidates,
                                  const EvictionLimits& limits, Instant now) BERTH_EXCLUDES(mutex_);

  // A bind of the pod has come. True: it is held, and one of the actions of this call or of a later
  // one answers it or has it carried out. False: it may be carried out now.
  bool Hold(Engine& engine, const BindsUnderWay::Entry& bind,
            const std::shared_ptr<const PodRequest>& pod, Instant now, GangActions& actions)
      BERTH_EXCLUDES(mutex_);

  // A bind of a member that was carried out has ended.
  void Ended(const PodRequest& pod, const Status& bound, Instant now, GangActions& actions)
      BERTH_EXCLUDES(mutex_);
  // What time and changes of the cluster bring. To be called some times a second.
  void Look(Engine& engine, Instant now, GangActions& actions) BERTH_EXCLUDES(mutex_);

  // This process leads from now on and has heard of everything: what gangs that have begun lack is
  // planned before anybody else is placed.
  void TakeOver(Engine& engine, Instant now, GangActions& actions) BERTH_EXCLUDES(mutex_);

  // This process leads no more, or ends: everything that is held is answered, plans are dropped,
  // and nothing is held until TakeOver.
  void LetGo(const Error& why, GangActions& actions) BERTH_EXCLUDES(mutex_);

  // A namespace whose gangs lack pods which may have ended, of several the one that was not asked
  // about for longest: GangHistory knows / what it knows.
  [[nodiscard]] std::optional<std::string> Unsure(Instant now) const BERTH_EXCLUDES(mutex_);
  void Learn(const std::string& namespace_name, std::span<const GangPast> pasts, Instant now)
      BERTH_EXCLUDES(mutex_);

  // How many wait of a gang that ran and whose other members do not come again: each of them may
  // go alone. nullopt: it is no such gang.
  [[nodiscard]] std::optional<std::int64_t> LeftOf(const GangId& gang, Instant now) const
      BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<GangView> Views(Instant now) const BERTH_EXCLUDES(mutex_);
  // That one of them; nullopt: it is none of them.
  [[nodiscard]] std::optional<GangView> View(const GangId& gang, Instant now) const
      BERTH_EXCLUDES(mutex_);

 private:
  using Unit = GangUnit;
  // The members at one moment of the state: that of the snapshot.
  struct Roster {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<std::shared_ptr<const PodRequest>> waiting;  // for a node, planned ones too
    std::vector<PodId> unschedulable;  // of these, those for which kube-scheduler found no node
    std::uint64_t change = 0;          // WaitingPods::ChangesOf before they were read
    GangCount placed;                  // bound, being bound or in doubt, and not leaving
    GangCount bound;                   // of these, those that are
    GangCount all;                     // `placed` and `waiting`
    bool gpus_bound = false;           // one of these has GPUs, and is bound
    std::optional<WallTime> created;   // the first of all was
    std::string said;                  // GangWait::said
    std::string contradicts;           // "m1 says that there are 3"; "" = no pod says another size
    std::unordered_set<std::string_view> uids = {};  // of `waiting`
  };

  // The nodes that a question offers. References: they outlive it.
  struct Offered {
    const Snapshot& snapshot;
    std::span<const NodeIndex> candidates;
    // kNoNode: the node of that name is none of them.
    [[nodiscard]] NodeIndex Find(const std::string& name) const;
  };

  [[nodiscard]] std::shared_ptr<const Settings> settings() const BERTH_EXCLUDES(mutex_);
  // Whether the pod is planned with others, by what it says and by the nodes that there are.
  [[nodiscard]] bool Takes(const Settings& settings, const PodRequest& pod) const;

  // --- the table (gang_table.cc)
  std::shared_ptr<Unit> UnitOf(const PodRequest& pod, Instant now) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::shared_ptr<Unit> Find(const GangId& gang) const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<std::shared_ptr<Unit>> Units() const BERTH_EXCLUDES(mutex_);
  // Those that have no members, since so long.
  void Forget(Instant now, Duration since) BERTH_EXCLUDES(mutex_);
  void ForgetLocked(Instant now, Duration since) BERTH_REQUIRES(mutex_);
  // For one more gang of a namespace that has so many; false: none.
  bool MakePlaceLocked(std::size_t own) BERTH_REQUIRES(mutex_);

  // --- who is there (gang_roster.cc)
  [[nodiscard]] Roster RosterOf(const Unit& unit,
                                const std::shared_ptr<const PodRequest>& asker) const
      BERTH_REQUIRES(unit.mutex);
  void Note(Unit& unit, const Roster& roster, Instant now) BERTH_REQUIRES(unit.mutex);
  // Notes the members that there are, and forgets what was kept of others.
  Roster Count(Unit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
  // The size that other pods of the gang say, where this pod contradicts them.
  [[nodiscard]] std::optional<int> OtherSize(const Unit& unit, const PodRequest& pod) const
      BERTH_REQUIRES(unit.mutex);
  [[nodiscard]] bool IsBeingBound(std::string_view uid) const;
  // Whether the pod need not wait for others.
  [[nodiscard]] bool MayGo(const Unit& unit, const Roster& roster, const PodRequest& pod,
                           Instant now) const BERTH_REQUIRES(unit.mutex);
  // kube-scheduler asks about the pod.
  static void HasCome(Unit& unit, const PodRequest& pod, Instant now) BERTH_REQUIRES(unit.mutex);

  // --- filter (gang_filter.cc)
  GangVerdict FilterMember(Engine& engine, Unit& unit, const Offered& offered,
                           const PodRequest& pod, Instant now, GangActions& actions,
                           std::shared_ptr<Unit>& rival) BERTH_EXCLUDES(unit.mutex);
  // Sees to it that the pod is in a plan: kFits, and it is, or it goes alone; else why not.
  Reason FindPlace(Engine& engine, Unit& unit, const std::shared_ptr<const PodRequest>& pod,
                   const Offered& offered, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // rival: that is to give way.
  GangVerdict Judge(Engine& engine, Unit& unit, const Offered& offered,
                    const std::shared_ptr<const PodRequest>& pod, Instant now, GangActions& actions,
                    std::shared_ptr<Unit>& rival) BERTH_REQUIRES(unit.mutex);
  static GangVerdict NotNow(Unit& unit, const PodRequest& pod, Reason reason)
      BERTH_REQUIRES(unit.mutex);
  // The member was told its node before, and no bind of it has come.
  static void ComesBack(Unit& unit, const PodRequest& pod, Instant now) BERTH_REQUIRES(unit.mutex);
  // kube-scheduler has asked so often. The node is out for a while.
  static void TakeOut(Unit& unit, const GangPlanned::Member& member, int asks, Instant now)
      BERTH_REQUIRES(unit.mutex);
  [[nodiscard]] static bool IsOut(const Unit& unit, const std::string& uid, const std::string& node,
                                  Instant now) BERTH_REQUIRES(unit.mutex);
  // Another gang whose planned members keep the pod from nodes that its gang needs, since
  // kube-scheduler lets one pod use such a node. nullptr: none.
  [[nodiscard]] std::shared_ptr<Unit> RivalOf(const Unit& unit, const PodRequest& pod,
                                              const Offered& offered) const
      BERTH_REQUIRES(unit.mutex);
  // Gives the places of its plan up, for an older gang.
  void GiveWay(Unit& unit, Instant now, GangActions& actions) BERTH_EXCLUDES(unit.mutex);

  // --- claims (gang_allocation.cc)
  // kNone: the pod has none, or Berth does not choose for its gang.
  [[nodiscard]] ClaimState ClaimsOf(const Unit& unit, const PodRequest& pod) const
      BERTH_REQUIRES(unit.mutex);
  // Whether it asks for GPUs, or for devices by claims.
  [[nodiscard]] bool WantsDevices(const Unit& unit, const PodRequest& pod) const
      BERTH_REQUIRES(unit.mutex);
  // What filter says of a member of the plan with claims, whose node is offered.
  GangVerdict JudgeClaims(Unit& unit, const PodRequest& pod, NodeIndex node)
      BERTH_REQUIRES(unit.mutex);
  // Whether it has begun, or all that have to start together are bound, have their devices
  // allocated or ask for none.
  [[nodiscard]] bool IsAllocated(const Unit& unit, const Roster& roster) const
      BERTH_REQUIRES(unit.mutex);
  // Whether nothing but devices for claims keeps the gang from beginning.
  [[nodiscard]] bool MayAllocate(const Unit& unit) const BERTH_REQUIRES(unit.mutex);
  // Why no plan is made for such a gang, whatever room there is; "" = one is.
  [[nodiscard]] static std::string Objection(const Settings& settings, const Unit& unit)
      BERTH_REQUIRES(unit.mutex);

  // --- plans (gang_making.cc)
  // Whether a plan of the gang is soon made.
  [[nodiscard]] bool IsSmall(const Unit& unit) const BERTH_REQUIRES(unit.mutex);
  // Whether there is a plan now that has the pod, or would have it if there were room.
  bool PlanFor(Engine& engine, Unit& unit, const Roster& roster,
               const std::shared_ptr<const PodRequest>& pod, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // What a plan of the gang would be looked for on now.
  [[nodiscard]] GangGround GroundOf(const Unit& unit) const BERTH_REQUIRES(unit.mutex) {
    return planning_.Ground(unit.roll.has_claims);
  }
  // Whether nothing but other nodes can help, and none has come since no plan was found.
  [[nodiscard]] bool IsHopeless(const Unit& unit, Instant now) const BERTH_REQUIRES(unit.mutex);
  // Whether something is another since no plan was found.
  [[nodiscard]] bool IsWorthATry(const Unit& unit, const Roster& roster, Instant now) const
      BERTH_REQUIRES(unit.mutex);
  // Whether as many binds may be held as the gang's plan needs.
  [[nodiscard]] bool MayHold(const Unit& unit) const BERTH_REQUIRES(unit.mutex);
  // What is to be planned for all that wait; those whose binds are held stay where they are, if
  // possible also those for which others were evicted. None: there are too few.
  [[nodiscard]] std::optional<GangToPlan> MembersToPlan(const Unit& unit, const Roster& roster,
                                                        Instant now) const
      BERTH_REQUIRES(unit.mutex);
  // Of the members of the ask.
  static void AddOut(const Unit& unit, Instant now, GangToPlan& ask) BERTH_REQUIRES(unit.mutex);
  // --- a leader whose followers come when it runs (gang_followers.cc)
  static void AddFollowers(const Unit& unit, const Roster& roster, GangToPlan& ask)
      BERTH_REQUIRES(unit.mutex);
  // Of the room that there is so much is kept as the namespace may (gangs::kFollowersGpus).
  void AdoptFollowers(Unit& unit, const GangToPlan& ask, const NodesByUid& nodes, Instant now)
      BERTH_REQUIRES(unit.mutex);
  // Counts these of the unit in place of those before, up to the bounds. Returns how many.
  std::int64_t CountFollowerGpus(Unit& unit, std::int64_t gpus) BERTH_REQUIRES(unit.mutex)
      BERTH_EXCLUDES(mutex_);
  // A follower has come: it gets one of the places that are kept. False: no place is left.
  bool TakeKeptPlace(Engine& engine, Unit& unit, const std::shared_ptr<const PodRequest>& pod,
                     const Offered& offered) BERTH_REQUIRES(unit.mutex);
  // Nobody needs the places any more, or not within time.
  void TendFollowers(Unit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
  void DropFollowers(Unit& unit) BERTH_REQUIRES(unit.mutex);

  // Plans all that wait anew; those whose binds are held stay where they are. False: none was
  // found, and the plan that was there is as it was. asker: is to go where it is offered.
  bool Plan(Engine& engine, Unit& unit, const Roster& roster, Instant now, GangActions& actions,
            const std::string& asker = {}, const Offered* offered = nullptr)
      BERTH_REQUIRES(unit.mutex);
  // Before a bind of the pod that others were evicted for, if there is no plan yet.
  void PlanAtLast(Engine& engine, Unit& unit, const std::shared_ptr<const PodRequest>& pod,
                  Instant now, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // The same without the gang's lock while it is planned.
  void PlanOutside(Engine& engine, Unit& unit, const GangToPlan& ask, Instant now,
                   GangActions& actions) BERTH_EXCLUDES(unit.mutex);
  // The plan, or that there is none, is the gang's from now on.
  bool Adopt(Unit& unit, const GangToPlan& ask, const tl::expected<NodesByUid, NoGangPlan>& nodes,
             Instant now, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  void Refuse(Unit& unit, const NoGangPlan& none, const GangToPlan& ask, Instant now,
              GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // So many binds of its plan may come to be held.
  void Promise(Unit& unit) BERTH_REQUIRES(unit.mutex);

  // --- evictions (gang_preemption.cc)
  // Sees to it that unit.clearing is of this moment. one_by_one: it names victims.
  void PlanToClear(Engine& engine, Unit& unit, const Roster& roster, const EvictionLimits& limits,
                   bool one_by_one, Instant now) BERTH_REQUIRES(unit.mutex);
  // Whether room may be made for the gang: it has no plan, and may have one now.
  [[nodiscard]] bool MayPlan(const Unit& unit, Instant now) const BERTH_REQUIRES(unit.mutex);
  // The pod changes places with one like it whose node is asked about, if both may move.
  static void MoveToAsked(Unit& unit, const Roster& roster, const PodRequest& pod,
                          const Offered& offered) BERTH_REQUIRES(unit.mutex);
  // Whether kube-scheduler may be told that the pod goes there once others are evicted.
  [[nodiscard]] static bool MayTell(const Unit& unit, const Roster& roster, const PodRequest& pod,
                                    const Node& node) BERTH_REQUIRES(unit.mutex);
  // Places for members / the nodes where others are evicted for those that have none yet.
  void KeepWhatIsFree(Engine& engine, Unit& unit, const Roster& roster) BERTH_REQUIRES(unit.mutex);
  void KeepCleared(const Unit& unit, const Roster& roster) BERTH_REQUIRES(unit.mutex);
  // Whether all of its members may still come to their nodes, soon.
  [[nodiscard]] bool MayFinishClearing(const Unit& unit, const Roster& roster, Instant now) const
      BERTH_REQUIRES(unit.mutex);
  // What time and the cluster bring while others are evicted for the gang.
  void TendClearing(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                    GangActions& actions) BERTH_REQUIRES(unit.mutex);
  void StopClearing(Unit& unit) BERTH_REQUIRES(unit.mutex);

  // --- binds (gang_commit.cc)
  // How long binds of the gang are held.
  [[nodiscard]] static Duration HoldOf(const Settings& settings, const Unit& unit)
      BERTH_REQUIRES(unit.mutex);
  static void DropMember(Unit& unit, const std::string& uid, const Error& why, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // The member's place is free again, and its bind, if one is held, is refused.
  void GiveUp(Unit& unit, const std::string& uid, const Error& why, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // Whether the others are as they were when the turn of the first came.
  static bool IsStillWhole(Unit& unit, const Roster& roster, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // Binds for whose answer nobody waits any more are held no longer.
  static void DropUnawaited(Unit& unit, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // Whether binds are held, and enough members need nobody any more: bound, held, or
  // kube-scheduler's own to bind.
  [[nodiscard]] static bool IsReady(const Unit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
  void CommitIfWhole(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                     GangActions& actions) BERTH_REQUIRES(unit.mutex);
  static void SendFirst(Unit& unit, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // Has every bind that is held carried out.
  static void Release(Unit& unit, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  static void Begin(Unit& unit, const PodId& first, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  static void AnswerHeld(Unit& unit, const Error& why, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // Nothing is planned for the gang any more.
  void DropPlan(Unit& unit, const Error& why, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  void Abort(Unit& unit, const Error& why, std::string_view label, Instant now,
             GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // A bind that cannot be carried out: it fails after a moment.
  void Fail(const BindsUnderWay::Entry& bind, std::string_view why, Instant now,
            GangActions& actions) BERTH_EXCLUDES(mutex_);

  // --- time (gang_look.cc)
  // Members of the plan that are gone, or whose client is; false: there is no plan any more.
  bool Tend(Engine& engine, Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // Whether nothing has changed since the plan was looked at.
  [[nodiscard]] bool IsChecked(const Unit& unit) const BERTH_REQUIRES(unit.mutex);
  // What of the plan is not as it was: members that are gone, places that are lost, holds that end.
  struct Amiss {
    std::vector<std::string> gone, broken;
    bool is_over = false;
  };
  Amiss LookThrough(Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  static GangCount WithPlan(const Unit& unit, GangCount there) BERTH_REQUIRES(unit.mutex);
  // Nobody came for the plan for as long as binds are held.
  void TimeOut(Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  void Nudge(Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  void LookAtFirst(Unit& unit, Instant now, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // Its object has gone.
  void LookAtUnsized(Unit& unit, Instant now, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // Whether a look would find what the last one found.
  [[nodiscard]] bool IsQuiet(const Unit& unit, Instant now) const BERTH_REQUIRES(unit.mutex);
  // What a plan is to be made for, without the lock.
  std::optional<GangToPlan> LookAt(Engine& engine, Unit& unit, Instant now, bool may_plan,
                                   GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // Gangs whose pods the watch has shown since the last call.
  void Notice(Instant now) BERTH_EXCLUDES(mutex_);
  // What is known of a gang is what the pod says, from now on.
  static void Heed(Unit& unit, const PodRequest& pod) BERTH_REQUIRES(unit.mutex);

  [[nodiscard]] static GangView ViewOf(const Unit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
  // nullopt: nothing is kept of it.
  [[nodiscard]] static std::optional<GangView> Shown(const Unit& unit, Instant now)
      BERTH_EXCLUDES(unit.mutex);

  const Parts parts_;
  GangPlanning planning_;
  std::atomic<bool> lets_go_ = false;
  std::atomic<bool> gave_way_ = false;      // a gang that has members is not remembered
  std::atomic<std::int64_t> promised_ = 0;  // binds that may come to be held, of all gangs
  mutable Mutex mutex_;                     // for the table, never while a gang is looked at
  std::shared_ptr<const Settings> settings_ BERTH_GUARDED_BY(mutex_);
  using UnitsById = std::map<GangId, std::shared_ptr<Unit>>;
  std::map<std::string, UnitsById> units_ BERTH_GUARDED_BY(mutex_);  // by namespace
  std::size_t size_ BERTH_GUARDED_BY(mutex_) = 0;                    // of all of these
  std::int64_t heard_of_ BERTH_GUARDED_BY(mutex_) = 0;               // gangs, ever
  // GPUs that are kept for followers, by namespace.
  std::map<std::string, std::int64_t> follower_gpus_ BERTH_GUARDED_BY(mutex_);
  // Binds that have to fail, and when they are answered.
  struct Failing {
    BindsUnderWay::Entry bind;
    Error why;
    Instant at;
  };
  std::vector<Failing> failing_ BERTH_GUARDED_BY(mutex_);
  // Of Look, which one thread calls:
  std::size_t last_looked_ = 0;  // where the next one goes on planning
  std::uint64_t noticed_ = 0;    // WaitingPods::changes
  Instant notice_again_{};       // there was no room for them
};

}  // namespace berth
