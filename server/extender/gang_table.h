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
// What kube-scheduler is told does not change while nothing changes, so that it does not retry
// without pause. A bind that has to fail is answered after a second for the same reason.
//
// It decides and does nothing: what follows from a call is returned as GangActions, which the
// caller carries out without any lock. Any thread may call any function. Lock order: this one, then
// those of WaitingPods, NodeDomains, the engine and ClusterState.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/cluster_state.h"
#include "cluster/node_domains.h"
#include "cluster/pod_groups.h"
#include "cluster/waiting_pods.h"
#include "scoring/engine.h"
#include "scoring/reason.h"
#include "scoring/victims.h"
#include "server/extender/binds_under_way.h"
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
};

struct GangVerdict {
  enum class Kind {
    kAlone,   // like a pod of no gang
    kThere,   // it fits `node` and no other
    kNotNow,  // it fits no node: `reason`
  };
  Kind kind = Kind::kAlone;
  NodeIndex node = kNoNode;
  Reason reason = Reason::kFits;
  std::string text = {};  // of kPodRefused
  // false: nothing is kept of the pod, and it is not woken from here.
  bool remembered = true;
};

// What is known of a gang at one moment.
struct GangView {
  GangId id;
  std::string_view state;  // as in the picture
  std::int64_t minimum = 0;
  std::optional<int> total;
  std::int64_t placed = 0, waiting = 0, planned = 0, held = 0;
  Duration age{};
  std::string why;  // it waits, in a sentence
};

class GangTable {
 public:
  struct Settings {
    std::vector<std::string> conventions;      // whose gangs start whole
    Duration hold = std::chrono::seconds(50);  // how long a bind is held at most
    friend bool operator==(const Settings&, const Settings&) = default;
  };
  // So many gangs are remembered. Those without members are forgotten to make room for others, and
  // otherwise after a while (gangs::kForgottenAfter); one with members never is. The pods of a gang
  // beyond the bound wait, as GangVerdict::remembered says.
  static constexpr std::size_t kMostGangs = 16'384;

  // References: they outlive the object.
  struct Parts {
    ClusterState& state;
    WaitingPods& waiting;
    NodeDomains& domains;
    const PodGroups* groups = nullptr;  // nullptr: sizes are as the pods were read
  };
  // Until Use says so, no gang starts whole.
  explicit GangTable(const Parts& parts) : parts_(parts), planning_(parts.state, parts.domains) {}

  void Use(Settings settings) BERTH_EXCLUDES(mutex_);

  // Whether the pod is of a gang that starts whole by these settings, as far as the pod says.
  [[nodiscard]] static bool Concerns(const Settings& settings, const PodRequest& pod);

  // Where the pod may go. Requires: candidates are nodes of the snapshot.
  GangVerdict Filter(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                     const PodRequest& pod, std::span<const NodeIndex> candidates, Instant now,
                     GangActions& actions) BERTH_EXCLUDES(mutex_);

  // Where others may be evicted for the pod: on its node of a plan for the whole gang, which fits
  // once pods of lower priority are gone; else nowhere. Requires: as for Filter.
  GangVerdict Preempt(Engine& engine, const std::shared_ptr<const Snapshot>& snapshot,
                      const PodRequest& pod, std::span<const NodeIndex> candidates,
                      const EvictionLimits& limits, Instant now) BERTH_EXCLUDES(mutex_);

  // For a pod for which Filter found no room: its node of a plan for the whole gang, where
  // kube-scheduler asks about a cluster without pods of lower priority (taken_away.h); else
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

  // What time and changes of the cluster bring: deadlines, room, members that came or went. To be
  // called some times a second.
  void Look(Engine& engine, Instant now, GangActions& actions) BERTH_EXCLUDES(mutex_);

  // This process leads from now on and has heard of everything: what gangs that have begun lack is
  // planned before anybody else is placed.
  void TakeOver(Engine& engine, Instant now, GangActions& actions) BERTH_EXCLUDES(mutex_);

  // This process leads no more, or ends: everything that is held is answered, plans are dropped,
  // and nothing is held until TakeOver.
  void LetGo(const Error& why, GangActions& actions) BERTH_EXCLUDES(mutex_);

  [[nodiscard]] std::vector<GangView> Views(Instant now) const BERTH_EXCLUDES(mutex_);

 private:
  using Unit = GangUnit;
  // The members at one moment of the state: that of the snapshot.
  struct Roster {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<std::shared_ptr<const PodRequest>> waiting;  // for a node, planned ones too
    std::int64_t placed = 0;  // bound, being bound or in doubt, and not leaving
    std::int64_t bound = 0;   // of these, those that are
    bool gpus_bound = false;  // one of these has GPUs, and is bound
    std::unordered_set<std::string_view> uids = {};  // of `waiting`
  };

  // The size that other pods of the gang say, where this pod contradicts them.
  [[nodiscard]] std::optional<int> OtherSize(const Unit& unit, const PodRequest& pod) const
      BERTH_REQUIRES(mutex_);
  // Whether the pod is planned with others, by what it says and by the nodes that there are.
  [[nodiscard]] bool Takes(const PodRequest& pod) const BERTH_REQUIRES(mutex_);
  // nullptr: there are kMostGangs others.
  Unit* UnitOf(const PodRequest& pod, Instant now) BERTH_REQUIRES(mutex_);
  [[nodiscard]] Roster RosterOf(const Unit& unit,
                                const std::shared_ptr<const PodRequest>& asker) const
      BERTH_REQUIRES(mutex_);
  void Note(Unit& unit, const Roster& roster, Instant now) BERTH_REQUIRES(mutex_);
  // Notes the members that there are, and forgets what was kept of others.
  Roster Count(Unit& unit, Instant now) BERTH_REQUIRES(mutex_);
  // How long binds of the gang are held.
  [[nodiscard]] Duration HoldOf(const Unit& unit) const BERTH_REQUIRES(mutex_);

  [[nodiscard]] bool IsBeingBound(std::string_view uid) const;
  // Sees to it that the pod is in a plan: kFits, and it is, or it goes alone; else why not.
  Reason FindPlace(Engine& engine, Unit& unit, const std::shared_ptr<const PodRequest>& pod,
                   Instant now, GangActions& actions) BERTH_REQUIRES(mutex_);
  GangVerdict Judge(Engine& engine, Unit& unit, const std::shared_ptr<const Snapshot>& snapshot,
                    const std::shared_ptr<const PodRequest>& pod,
                    std::span<const NodeIndex> candidates, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  GangVerdict NotNow(Unit& unit, const PodRequest& pod, Reason reason) BERTH_REQUIRES(mutex_);
  // Whether there is a plan now that has the pod, or would have it if there were room.
  bool PlanFor(Engine& engine, Unit& unit, const Roster& roster,
               const std::shared_ptr<const PodRequest>& pod, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  // Whether something is another since no plan was found.
  [[nodiscard]] bool IsWorthATry(const Unit& unit, const Roster& roster, Instant now) const
      BERTH_REQUIRES(mutex_);
  // What is to be planned for all that wait; those whose binds are held stay where they are.
  [[nodiscard]] GangToPlan MembersToPlan(const Unit& unit, const Roster& roster) const
      BERTH_REQUIRES(mutex_);
  // The same, those for which others were evicted on the nodes of that plan.
  static GangToPlan WithNominated(const Unit& unit, GangToPlan ask);
  // Sees to it that unit.clearing is of this moment.
  void PlanToClear(Engine& engine, Unit& unit, const Roster& roster, const EvictionLimits& limits,
                   Instant now) BERTH_REQUIRES(mutex_);
  // The pod changes places of that plan with one like it whose node is asked about, if its own is
  // not, and both may move.
  void MoveToAsked(Unit& unit, const Roster& roster, const PodRequest& pod,
                   const std::function<bool(const std::string& node)>& is_asked) const
      BERTH_REQUIRES(mutex_);
  // Whether kube-scheduler may be told that the pod goes there once others are evicted.
  [[nodiscard]] bool MayTell(const Unit& unit, const Roster& roster, const PodRequest& pod,
                             const Node& node) const BERTH_REQUIRES(mutex_);
  void KeepWhatIsFree(Engine& engine, Unit& unit, const Roster& roster) BERTH_REQUIRES(mutex_);
  // Whether all of its members may still come to their nodes, soon.
  [[nodiscard]] bool MayFinishClearing(const Unit& unit, const Roster& roster, Instant now) const
      BERTH_REQUIRES(mutex_);
  // What time and the cluster bring while others are evicted for the gang.
  void TendClearing(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                    GangActions& actions) BERTH_REQUIRES(mutex_);
  void StopClearing(Unit& unit) BERTH_REQUIRES(mutex_);
  // Plans all that wait anew; those whose binds are held stay where they are. False: none was
  // found, and the plan that was there is as it was.
  bool Plan(Engine& engine, Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  // Before a bind of the pod that others were evicted for, if there is no plan yet.
  void PlanAtLast(Engine& engine, Unit& unit, const std::shared_ptr<const PodRequest>& pod,
                  Instant now, GangActions& actions) BERTH_REQUIRES(mutex_);
  void Refuse(Unit& unit, const NoGangPlan& none, std::size_t members, Instant now,
              GangActions& actions) BERTH_REQUIRES(mutex_);

  [[nodiscard]] bool MayGo(const Unit& unit, const Roster& roster, const PodRequest& pod,
                           Instant now) const BERTH_REQUIRES(mutex_);
  void DropMember(Unit& unit, const std::string& uid, const Error& why, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  // The member's place is free again, and its bind, if one is held, is refused.
  void GiveUp(Unit& unit, const std::string& uid, const Error& why, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  // Members of the plan that are gone, or whose client is; false: there is no plan any more.
  bool Tend(Engine& engine, Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  // Whether nothing has changed since the plan was looked at.
  [[nodiscard]] bool IsChecked(const Unit& unit) const BERTH_REQUIRES(mutex_);
  // What of the plan is not as it was: members that are gone, places that are lost, holds that end.
  struct Amiss {
    std::vector<std::string> gone, broken;
    bool is_over = false;
  };
  Amiss LookThrough(Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  // Nobody came for the plan for as long as binds are held.
  void TimeOut(Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  // Whether the others are as they were when the turn of the first came.
  static bool IsStillWhole(Unit& unit, const Roster& roster, GangActions& actions);
  // Binds for whose answer nobody waits any more are held no longer.
  static void DropUnawaited(Unit& unit, GangActions& actions);
  // Whether binds are held, and enough members need nobody any more: bound, held, or
  // kube-scheduler's own to bind.
  [[nodiscard]] bool IsReady(const Unit& unit, Instant now) const BERTH_REQUIRES(mutex_);
  void CommitIfWhole(Engine& engine, Unit& unit, const Roster& roster, Instant now,
                     GangActions& actions) BERTH_REQUIRES(mutex_);
  void SendFirst(Unit& unit, GangActions& actions) BERTH_REQUIRES(mutex_);
  // Has every bind that is held carried out.
  void Release(Unit& unit, GangActions& actions) BERTH_REQUIRES(mutex_);
  void Begin(Unit& unit, const PodId& first, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  static void AnswerHeld(Unit& unit, const Error& why, GangActions& actions);
  // Nothing is planned for the gang any more.
  void DropPlan(Unit& unit, const Error& why, GangActions& actions) BERTH_REQUIRES(mutex_);
  void Abort(Unit& unit, const Error& why, std::string_view label, Instant now,
             GangActions& actions) BERTH_REQUIRES(mutex_);
  void Nudge(Unit& unit, const Roster& roster, Instant now, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  void LookAtFirst(Unit& unit, Instant now, GangActions& actions) BERTH_REQUIRES(mutex_);
  void LookAt(Engine& engine, Unit& unit, Instant now, int& plans, GangActions& actions)
      BERTH_REQUIRES(mutex_);
  [[nodiscard]] GangView ViewOf(const Unit& unit, Instant now) const BERTH_REQUIRES(mutex_);

  const Parts parts_;
  GangPlanning planning_;
  mutable Mutex mutex_;
  Settings settings_ BERTH_GUARDED_BY(mutex_);
  std::map<GangId, Unit> units_ BERTH_GUARDED_BY(mutex_);
  // Binds that have to fail, and when they are answered.
  struct Failing {
    BindsUnderWay::Entry bind;
    Error why;
    Instant at;
  };
  std::vector<Failing> failing_ BERTH_GUARDED_BY(mutex_);
  bool lets_go_ BERTH_GUARDED_BY(mutex_) = false;
  GangId last_looked_ BERTH_GUARDED_BY(mutex_);  // where the next Look goes on planning
};

}  // namespace berth
