// SPDX-License-Identifier: Apache-2.0
//
// GangCommits: from the first bind that is held to the last that is released, and what makes a
// plan end. Only it changes GangPlanned::phase once there is a plan.
//
// Thread-safe. What takes a unit needs its lock, which comes before this one's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "server/extender/gangs/plans/gang_plans.h"

namespace berth {

class GangCommits {
 public:
  // rosters and plans outlive the object.
  GangCommits(const GangParts& parts, GangRosters& rosters, GangPlans& plans)
      : parts_(parts), rosters_(rosters), plans_(plans) {}

  // A bind of the pod has come. True: it is held, or fails later. False: it may be carried out.
  bool Hold(Engine& engine, GangUnit& unit, const BindsUnderWay::Entry& bind,
            const std::shared_ptr<const PodRequest>& pod, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // A bind of a member that was carried out has ended.
  void Ended(GangUnit& unit, const PodId& pod, const Status& bound, Instant now,
             GangActions& actions) BERTH_REQUIRES(unit.mutex);

  // How long binds of the gang are held.
  [[nodiscard]] static Duration HoldOf(const GangSettings& settings, const GangUnit& unit)
      BERTH_REQUIRES(unit.mutex);
  // Whether binds are held, and enough members need nobody any more: bound, held, or
  // kube-scheduler's own to bind.
  [[nodiscard]] static bool IsReady(const GangUnit& unit, Instant now) BERTH_REQUIRES(unit.mutex);
  // Sends the first Binding of a gang that is ready; of one that has begun all that are held.
  void CommitIfWhole(Engine& engine, GangUnit& unit, const GangRoster& roster, Instant now,
                     GangActions& actions) BERTH_REQUIRES(unit.mutex);
  static void Begin(GangUnit& unit, const PodId& first, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // Has every bind that is held carried out.
  static void Release(GangUnit& unit, GangActions& actions) BERTH_REQUIRES(unit.mutex);

  // Binds for whose answer nobody waits any more are held no longer.
  static void DropUnawaited(GangUnit& unit, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  static void DropMember(GangUnit& unit, const std::string& uid, const Error& why,
                         GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // The member's place is free again, and its bind, if one is held, is refused.
  void GiveUp(GangUnit& unit, const std::string& uid, const Error& why, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  static void AnswerHeld(GangUnit& unit, const Error& why, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // Nothing is planned for the gang any more.
  void DropPlan(GangUnit& unit, const Error& why, GangActions& actions) BERTH_REQUIRES(unit.mutex);
  // The same, and the next plan is made after a pause.
  void Abort(GangUnit& unit, const Error& why, std::string_view label, Instant now,
             GangActions& actions) BERTH_REQUIRES(unit.mutex);

  // A bind that cannot be carried out: it fails after a moment.
  void Fail(const BindsUnderWay::Entry& bind, std::string_view why, Instant now,
            GangActions& actions) BERTH_EXCLUDES(mutex_);
  // Answers those whose moment has come.
  void AnswerFailing(Instant now, GangActions& actions) BERTH_EXCLUDES(mutex_);

 private:
  // Whether the others are as they were when the turn of the first came.
  static bool IsStillWhole(GangUnit& unit, const GangRoster& roster, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  // The bind of a member that has its place in the plan, before the first one goes.
  void HoldForPlan(Engine& engine, GangUnit& unit, const BindsUnderWay::Entry& bind,
                   const std::shared_ptr<const PodRequest>& pod, Instant now, GangActions& actions)
      BERTH_REQUIRES(unit.mutex);
  void Keep(const BindsUnderWay::Entry& bind, GangUnit& unit, GangPlanned::Member& member,
            Instant now) BERTH_REQUIRES(unit.mutex);
  static void SendFirst(GangUnit& unit, GangActions& actions) BERTH_REQUIRES(unit.mutex);

  const GangParts parts_;
  GangRosters& rosters_;
  GangPlans& plans_;
  Mutex mutex_;
  // Binds that have to fail, and when they are answered.
  struct Failing {
    BindsUnderWay::Entry bind;
    Error why;
    Instant at;
  };
  std::vector<Failing> failing_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
