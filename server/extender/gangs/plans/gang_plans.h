// SPDX-License-Identifier: Apache-2.0
//
// GangPlans: from members that wait to a plan that is booked, and what is kept for a gang beside
// one: places for pods that follow their leader, nodes where others are evicted.
//
// Thread-safe. What takes a unit needs its lock. Lock order: the unit's, then this one's, then
// those of WaitingPods, NodeDomains, the engine, ClusterState and DeviceRooms.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "scoring/victims.h"
#include "server/extender/gangs/plans/gang_planning.h"
#include "server/extender/gangs/roster/gang_roster.h"

namespace berth {

// The nodes that a question offers. References: they outlive it.
struct OfferedNodes {
  const Snapshot& snapshot;
  std::span<const NodeIndex> candidates;
  // kNoNode: the node of that name is none of them.
  [[nodiscard]] NodeIndex Find(const std::string& name) const;
};

class GangPlans {
 public:
  // rosters outlives the object.
  GangPlans(const GangParts& parts, GangRosters& rosters)
      : parts_(parts), rosters_(rosters), planning_(parts.state, parts.domains, parts.claims) {}

  // GangPlanning::Respect
  void Respect(Reservations kept) { planning_.Respect(std::move(kept)); }
  // Whether this process leads. One that does not makes no plan, and begins nothing.
  void Lead(bool leads) { leads_ = leads; }
  [[nodiscard]] bool leads() const { return leads_; }

  // --- plans (gang_plans.cc)
  // Whether a plan of the gang is soon made.
  [[nodiscard]] bool IsSmall(const GangUnit& unit) const BERTH_REQUIRES(unit.mutex);
  // What a plan of the gang would be looked for on now.
  [[nodiscard]] GangGround GroundOf(const GangUnit& unit) const BERTH_REQUIRES(unit.mutex) {
    return planning_.Ground(unit.roll.has_claims);
  }
  // Whether nothing but other nodes can help, and none has come since no plan was found.
  [[nodiscard]] bool IsHopeless(const GangUnit& unit, Instant now) const BERTH_REQUIRES(unit.mutex);
  // Whether something is another since no plan was found.
  [[nodiscard]] bool IsWorthATry(const GangUnit& unit, const GangRoster& roster, Instant now) const
      BERTH_REQUIRES(unit.mutex);
  // Whether as many binds may be held as the gang's plan needs.
  [[nodiscard]] bool MayHold(const GangUnit& unit) const BERTH_REQUIRES(unit.mutex);
  // Whether there is a plan now that has the pod, or would have it if there were room.
  bool PlanFor(Engine& engine, GangUnit& unit, const GangRoster& roster,
               const std::shared_ptr<const PodRequest>& pod, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // What is to be planned for all that wait; those whose binds are held stay where they are, if
  // possible also those for which others were evicted. None: there are too few.
  [[nodiscard]] std::optional<GangToPlan> MembersToPlan(const GangUnit& unit,
                                                        const GangRoster& roster, Instant now) const
      BERTH_REQUIRES(unit.mutex);
  // Plans all that wait anew; those whose binds are held stay where they are. False: none was
  // found, and the plan that was there is as it was. asker: is to go where it is offered.
  bool Plan(Engine& engine, GangUnit& unit, const GangRoster& roster, Instant now,
            GangActions& actions, const std::string& asker = {},
            const OfferedNodes* offered = nullptr) BERTH_REQUIRES(unit.mutex);
  // Before a bind of the pod that others were evicted for, if there is no plan yet.
  void PlanAtLast(Engine& engine, GangUnit& unit, const std::shared_ptr<const PodRequest>& pod,
                  Instant now, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // The same without the gang's lock while it is planned.
  void PlanOutside(Engine& engine, GangUnit& unit, const GangToPlan& ask, Instant now,
                   GangActions& actions) BERTH_EXCLUDES(unit.mutex);
  // Finds out why the last plan was refused, and says so: without the lock, which requests take.
  // It counts if the gang was not refused anew meanwhile.
  void FindLack(GangUnit& unit, Instant now, GangActions& actions) BERTH_EXCLUDES(unit.mutex);
  // So many binds of its plan may come to be held.
  void Promise(GangUnit& unit) BERTH_REQUIRES(unit.mutex);

  // --- a leader whose followers come when it runs (gang_clearing.cc)
  // A follower has come: it gets one of the places that are kept. False: no place is left.
  bool TakeKeptPlace(Engine& engine, GangUnit& unit, const std::shared_ptr<const PodRequest>& pod,
                     const OfferedNodes& offered) BERTH_REQUIRES(unit.mutex);
  // Nobody needs the places any more, or not within time.
  void TendFollowers(GangUnit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
  void DropFollowers(GangUnit& unit) BERTH_REQUIRES(unit.mutex);

  // --- evictions (gang_clearing.cc)
  // Whether room may be made for the gang: it has no plan, and may have one now.
  [[nodiscard]] bool MayPlan(const GangUnit& unit, Instant now) const BERTH_REQUIRES(unit.mutex);
  // Sees to it that unit.clearing is of this moment. one_by_one: kube-scheduler names victims.
  void PlanToClear(Engine& engine, GangUnit& unit, const GangRoster& roster,
                   const EvictionLimits& limits, bool one_by_one, Instant now)
      BERTH_REQUIRES(unit.mutex);
  [[nodiscard]] GangPlanning& planning() { return planning_; }
  // The pod changes places with one like it whose node is asked about, if both may move.
  static void MoveToAsked(GangUnit& unit, const GangRoster& roster, const PodRequest& pod,
                          const OfferedNodes& offered) BERTH_REQUIRES(unit.mutex);
  // Whether kube-scheduler may be told that the pod goes there once others are evicted.
  [[nodiscard]] static bool MayTell(const GangUnit& unit, const GangRoster& roster,
                                    const PodRequest& pod, const Node& node)
      BERTH_REQUIRES(unit.mutex);
  // Places for members that need nobody to go.
  void KeepWhatIsFree(Engine& engine, GangUnit& unit, const GangRoster& roster)
      BERTH_REQUIRES(unit.mutex);
  // What time and the cluster bring while others are evicted for the gang.
  void TendClearing(Engine& engine, GangUnit& unit, const GangRoster& roster, Instant now,
                    GangActions& actions) BERTH_REQUIRES(unit.mutex);
  void StopClearing(GangUnit& unit) BERTH_REQUIRES(unit.mutex);

 private:
  // Of the members of the ask.
  static void AddOut(const GangUnit& unit, Instant now, GangToPlan& ask) BERTH_REQUIRES(unit.mutex);
  // The plan, or that there is none, is the gang's from now on.
  bool Adopt(GangUnit& unit, const GangToPlan& ask,
             const tl::expected<NodesByUid, NoGangPlan>& nodes, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  void Refuse(GangUnit& unit, const NoGangPlan& none, const GangToPlan& ask, Instant now,
              GangActions& actions) BERTH_REQUIRES(unit.mutex);
  static void AddFollowers(const GangUnit& unit, const GangRoster& roster, GangToPlan& ask)
      BERTH_REQUIRES(unit.mutex);
  // Of the room that there is so much is kept as the namespace may (gangs::kFollowersGpus).
  void AdoptFollowers(GangUnit& unit, const GangToPlan& ask, const NodesByUid& nodes, Instant now)
      BERTH_REQUIRES(unit.mutex);
  // Counts these of the unit in place of those before, up to the bounds. Returns how many.
  std::int64_t CountFollowerGpus(GangUnit& unit, std::int64_t gpus) BERTH_REQUIRES(unit.mutex)
      BERTH_EXCLUDES(mutex_);
  // The nodes where others are evicted for members that have no place yet.
  void KeepCleared(const GangUnit& unit, const GangRoster& roster) BERTH_REQUIRES(unit.mutex);
  // Whether all of its members may still come to their nodes, soon.
  [[nodiscard]] bool MayFinishClearing(const GangUnit& unit, const GangRoster& roster,
                                       Instant now) const BERTH_REQUIRES(unit.mutex);

  const GangParts parts_;
  GangRosters& rosters_;
  GangPlanning planning_;
  std::atomic<bool> leads_ = true;
  std::atomic<std::int64_t> promised_ = 0;  // binds that may come to be held, of all gangs
  Mutex mutex_;
  // GPUs that are kept for followers, by namespace.
  std::map<std::string, std::int64_t> follower_gpus_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
