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
// it found is checked again as it is booked; so is why a plan is not found. Lock order: the gang's,
// then the table's, then those of WaitingPods, NodeDomains, the engine, ClusterState and
// DeviceRooms.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/state/snapshot.h"
#include "scoring/engine/engine.h"
#include "scoring/reason.h"
#include "scoring/victims.h"
#include "server/extender/gangs/plans/gang_plans.h"
#include "server/extender/gangs/roster/gang_roster.h"
#include "server/extender/gangs/table/gang_commit.h"

namespace berth {

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
  std::set<GangId> ending = {};  // EvictionLimits::ending, of Preempt
};

class GangTable {
 public:
  using Settings = GangSettings;
  using Parts = GangParts;
  // So many gangs are remembered. Those without members are forgotten to make room for others, and
  // otherwise after a while (gangs::kForgottenAfter). Beyond the bound the namespace that has most
  // of them gives way to one that has fewer, with a gang that holds nothing and has not begun. The
  // pods of a gang that is not remembered wait, as GangVerdict::remembered says.
  static constexpr std::size_t kMostGangs = 16'384;

  // Until Use says so, no gang starts whole.
  explicit GangTable(const Parts& parts);

  void Use(Settings settings) { rosters_.Use(std::move(settings)); }
  // GangPlanning::Respect
  void Respect(Reservations kept) { plans_.Respect(std::move(kept)); }

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
  // "namespace/name" of those whom Preempt would evict for its members now; empty: nobody.
  std::set<std::string> WouldEvict(Engine& engine, const PodRequest& pod,
                                   const EvictionLimits& limits, Instant now)
      BERTH_EXCLUDES(mutex_);
  // After a verdict kThere of Preempt: whether there are victims to evict for the pod.
  void Answered(const PodRequest& pod, bool evicts, Instant now) BERTH_EXCLUDES(mutex_);

  // For a pod for which Filter found no room: its node of a plan for the whole gang, where
  // kube-scheduler asks about a cluster without pods of lower priority (victims.h); else
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
  // planned before anybody else is placed. Others are not looked at for that time, so that pods
  // which come before them may ask first: kube-scheduler backs off while no process answers.
  void TakeOver(Engine& engine, Instant now, Duration patience, GangActions& actions)
      BERTH_EXCLUDES(mutex_);

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
  // Why the pod does not start with its gang: GangRosters::Apart.
  [[nodiscard]] std::string Apart(const PodRequest& pod) const BERTH_EXCLUDES(mutex_);
  // That one of them; nullopt: it is none of them.
  [[nodiscard]] std::optional<GangView> View(const GangId& gang, Instant now) const
      BERTH_EXCLUDES(mutex_);
  // Of a gang that is none of them, by one of its pods, which run or are gated; nullopt: it does
  // not start whole.
  [[nodiscard]] std::optional<GangView> ViewOfOthers(const PodRequest& member, Instant now) const;

 private:
  using Unit = GangUnit;
  using Roster = GangRoster;
  using Offered = OfferedNodes;

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
  // Another gang whose planned members keep the pod from nodes that its gang needs, since
  // kube-scheduler lets one pod use such a node. nullptr: none.
  [[nodiscard]] std::shared_ptr<Unit> RivalOf(const Unit& unit, const PodRequest& pod,
                                              const Offered& offered) const
      BERTH_REQUIRES(unit.mutex);
  // Gives the places of its plan up, for an older gang.
  void GiveWay(Unit& unit, Instant now, GangActions& actions) BERTH_EXCLUDES(unit.mutex);

  // --- claims (gang_filter.cc)
  // What filter says of a member of the plan with claims, whose node is offered.
  GangVerdict JudgeClaims(Unit& unit, const PodRequest& pod, NodeIndex node)
      BERTH_REQUIRES(unit.mutex);
  // Whether nothing but devices for claims keeps the gang from beginning.
  [[nodiscard]] bool MayAllocate(const Unit& unit) const BERTH_REQUIRES(unit.mutex);

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
  // Pods whose gang is another one since the last call.
  void Regroup() BERTH_EXCLUDES(mutex_);
  // Gangs whose pods the watch has shown since the last call.
  void Notice(Instant now) BERTH_EXCLUDES(mutex_);

  const Parts parts_;
  GangRosters rosters_;
  GangPlans plans_;
  GangCommits commits_;
  std::atomic<bool> gave_way_ = false;  // a gang that has members is not remembered
  mutable Mutex mutex_;                 // for the table, never while a gang is looked at
  using UnitsById = std::map<GangId, std::shared_ptr<Unit>>;
  std::map<std::string, UnitsById> units_ BERTH_GUARDED_BY(mutex_);  // by namespace
  std::size_t size_ BERTH_GUARDED_BY(mutex_) = 0;                    // of all of these
  std::int64_t heard_of_ BERTH_GUARDED_BY(mutex_) = 0;               // gangs, ever
  // Of Look, which one thread calls:
  std::size_t last_looked_ = 0;  // where the next one goes on planning
  std::uint64_t noticed_ = 0;    // WaitingPods::changes
  std::uint64_t regrouped_ = 0;  // PodGroups::changes
  Instant notice_again_{};       // there was no room for them
};

}  // namespace berth
