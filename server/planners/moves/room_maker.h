// SPDX-License-Identifier: Apache-2.0
//
// RoomMaker: makes room for pods and gangs that have waited long, by moves of others (makeRoom),
// and idle nodes for those that come next.
//
// It takes the most important one that waits, plans (scoring/room), and carries the plan out
// (room_run.h): one plan at a time, one pod at a time. Mode advise only tells the plan. Namespaces
// take turns, and a pod that no moves help comes again later each time: nobody fills the line. For
// a pod
//   - that kube-scheduler found no node for, that asks for nothing that Berth does not judge, and
//     that has waited as long as the settings say, as long as this process leads, too
//   - by moves of pods of no higher priority that end within ten minutes, in the namespaces of the
//     settings; their controller is known and has no pod that waits, and Berth judges all that they
//     need
//   - with no more moves than the settings allow, in an order in which each place is free in time,
//     and never to a node that has as much room as the plan makes, so that no pod goes back and
//     forth: of the nodes that change, the emptiest is emptier after each plan
//   - once all pods that were evicted before have their places
//
// Where nobody is in need and there have been fewer idle nodes than the settings ask for as long as
// a pod has to wait, it empties nodes in the same way: by moves of pods of priority 0 and less.
// Where such nodes vanish, a node autoscaler takes them away: it gives idle nodes up for a day.
//
// One thread at a time; stats() and progress() any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/waiting_pods.h"
#include "config/config.h"
#include "scoring/room/room_units.h"
#include "server/extender/extender.h"
#include "server/extender/kept/device_rooms.h"
#include "server/extender/ports/ports.h"
#include "server/planners/moves/room_run.h"

namespace berth {

// EvictionsUnderWay: pods that were evicted for a plan of moves which is over, and that still end,
// or whose successors have no place yet. The next plan waits, so that one pod moves at a time.
//
// A pod that this process evicted, or may have (the answer was lost), is under way
//   - while it is there: for kAnswer, and longer if it was told to end
//   - then while a pod of its controller waits, and for kMadeAnew at least
//   - for RoomRun::kComesWithin and its grace period at most
// Of pods that a process before this one evicted the API server says it (PodLife::evicted), but not
// by whom: in the first kOfBefore of leading each one counts that Berth may have moved. One that is
// gone by then is not known; its successor is a pod as any other.

// Nodes are kept while a pod ends, so one that may take longer is not moved.
inline constexpr int kMostMoveGrace = 600;  // seconds

// One thread at a time.
class EvictionsUnderWay {
 public:
  static constexpr Duration kAnswer = std::chrono::seconds(30);
  static constexpr Duration kMadeAnew = std::chrono::seconds(30);
  static constexpr Duration kOfBefore = std::chrono::minutes(20);
  static constexpr std::size_t kMost = 1000;  // of more only those that are still there count

  // The state outlives it.
  explicit EvictionsUnderWay(const ClusterState& state) : state_(state) {}

  // This process has evicted it, or may have.
  void Add(const PodRequest& pod, Instant now);
  // One that is under way ("team/web"); "": none is. waiting: all pods that wait. leads_since: this
  // process.
  std::string First(std::span<const WaitingPod> waiting, Instant now, Instant leads_since);

 private:
  struct Evicted {
    PodId pod;
    std::string controller;
    Instant added, until, seen;
  };
  // Those of a process before this one. Returns one; "": there is none.
  std::string AddOfBefore(Instant now);

  const ClusterState& state_;
  std::map<std::string, Evicted> pods_;  // by UID
};

// MoveBudget: how many pods Berth has moved within the last hour: in all, by namespace, and by the
// node that they left. Kept in memory: a new leader counts anew (RoomMaker waits first).
// Not thread-safe.
class MoveBudget {
 public:
  struct Move {
    std::string namespace_name, node;
  };
  // Whether all of these may be made too.
  [[nodiscard]] bool Allows(std::span<const Move> moves, const MakeRoomConfig& limits, Instant now);
  void Count(Move move, Instant now);

 private:
  struct Made {
    Move move;
    Instant when;
  };
  std::vector<Made> made_;  // in the last hour; as many as Allows let pass
};

// Why Berth does not carry the plan out by itself; "": it may. At most so many moves.
std::string WhyNotByItself(const RoomPlan& plan, const Snapshot& snapshot, int most_moves);

class RoomMaker {
 public:
  static constexpr Duration kBetweenPlans = std::chrono::seconds(5);
  static constexpr Duration kPlanTime = std::chrono::milliseconds(100);  // of the search
  // When the same pod or gang is planned for again: members of it are missing; nothing was found,
  // or not allowed; its plan was given up; it was told about.
  static constexpr Duration kIncomplete = std::chrono::seconds(30);
  static constexpr Duration kAfterNone = std::chrono::minutes(5);  // twice as long each time, but
  static constexpr Duration kLongestAfterNone = std::chrono::minutes(40);
  static constexpr Duration kAfterGivenUp = std::chrono::minutes(30);
  static constexpr Duration kAfterAdvice = std::chrono::minutes(55);  // as WaitingNews::kAgain
  static constexpr std::size_t kMostRemembered = 4096;
  // After so many idle nodes that vanished within that time none is kept for kIdleGivenUp.
  static constexpr std::size_t kMostVanished = 2;
  static constexpr Duration kVanishWithin = std::chrono::hours(1);
  static constexpr Duration kIdleGivenUp = std::chrono::hours(24);

  struct Parts {
    RoomRun::Parts run;
    const PodGroups* groups = nullptr;  // as for LineOf
    PodId self = {};  // Berth's own pod, to be told when idle nodes are given up; no name: nobody
  };

  RoomMaker(const Parts& parts, MakeRoomConfig config)
      : parts_(parts), under_way_(parts.run.state) {
    Use(std::move(config));
  }

  // A plan that is under way goes on, unless the mode is another than act.
  void Use(MakeRoomConfig config);
  // Call it about once a second where this process leads. Blocks.
  void Look();
  // This process leads no longer: nothing is kept for anybody.
  void LetGo();

  struct Stats {
    std::uint64_t done = 0, given_up = 0;                // plans
    std::uint64_t evicted = 0, blocked = 0, failed = 0;  // moves
    std::size_t left = 0;                                // moves of the plan that is under way
    bool gave_idle_up = false;
  };
  [[nodiscard]] Stats stats() const;
  // Of the plan that is under way, else of the last one; nullptr: there was none.
  [[nodiscard]] std::shared_ptr<const RoomProgress> progress() const BERTH_EXCLUDES(mutex_);
  // The nodes that it keeps idle, as many as the settings ask for; none unless it acts. For the
  // thread of Look.
  [[nodiscard]] std::set<std::string> idle() const {
    return config_.mode == MakeRoomMode::kAct ? idle_ : std::set<std::string>();
  }

 private:
  void Show() BERTH_EXCLUDES(mutex_);
  // Goes on with the plan that is under way.
  void GoOn();
  void End(bool is_done);
  void Count();
  // Of those that wait, the most important one that may be planned for; first of the namespace
  // whose last turn was the longest time ago. Nothing: none may.
  [[nodiscard]] std::optional<WaitingPod> MostInNeed(std::vector<WaitingPod> everybody);
  void PlanFor(const Extender::Moment& now, const WaitingPod& waiting);
  // The next plan for it is made after that time; where there was none, twice as late as before.
  void PutOff(const std::string& name, Duration least, bool longer_each_time = false);
  // Looks which nodes are idle, and whether some vanished.
  void FollowIdle(const Snapshot& snapshot);
  // Whether fewer nodes are idle than asked for, and have been for long enough.
  [[nodiscard]] bool LacksIdle();
  void PlanForIdle(const Extender::Moment& now);
  // Pods that may move for one of that priority.
  [[nodiscard]] std::function<bool(const PodRecord& pod)> MayMove(int priority) const;
  // By pods: those that wait; empty: for idle nodes.
  void Begin(const Extender::Moment& now, const RoomUnit& unit,
             const std::vector<PodRequest>& pods);
  static std::string NameOf(const PodRequest& pod);

  const Parts parts_;
  MakeRoomConfig config_;
  std::optional<Instant> leads_since_;
  Instant next_plan_{};
  std::optional<Instant> lacks_idle_since_;
  std::set<std::string> idle_;     // nodes that are idle, as many as are asked for
  std::vector<Instant> vanished_;  // when such nodes did
  Instant idle_again_{};           // it keeps none before
  MoveBudget budget_;
  EvictionsUnderWay under_way_;
  struct Later {
    Instant until{};
    Duration wait{};  // after which nothing was found; 0: something was
  };
  Recent<std::string, Later> later_{kMostRemembered};    // by NameOf: not before
  Recent<std::string, Instant> turns_{kMostRemembered};  // by namespace: the last one
  std::unique_ptr<RoomRun> run_;
  RoomRun::Counts counted_;  // of run_
  std::atomic<std::uint64_t> done_{0}, given_up_{0}, evicted_{0}, blocked_{0}, failed_{0};
  std::atomic<std::size_t> left_{0};
  std::atomic<bool> gave_idle_up_{false};
  mutable Mutex mutex_;
  std::shared_ptr<const RoomProgress> progress_ BERTH_GUARDED_BY(mutex_);
};

// HeldNodes: has node autoscalers leave alone the nodes that Berth keeps: those on which others are
// evicted or moved away for a pod (device_rooms.h), those that are kept idle, and those with
// earmarks, gathered and reserved ones too. Idle nodes are what autoscalers delete.
//
// A node is held once it has been kept for kSteady, and let go when it has not been for kLinger.
// What a process before this one held is let go in the same way.
//
// One thread at a time.

class HeldNodes {
 public:
  static constexpr Duration kSteady = std::chrono::seconds(5);
  static constexpr Duration kLinger = std::chrono::minutes(2);
  static constexpr Duration kAgain = std::chrono::seconds(30);  // the same is asked for again
  static constexpr std::size_t kMost = 512;                     // nodes that are held at once
  static constexpr std::size_t kMostAtOnce = 8;                 // that a look changes

  // References: they outlive the object.
  struct Parts {
    const Extender& extender;
    const DeviceRooms& rooms;
    const RoomMaker& maker;
    NodeHolder& holder;
    const Clock& clock;
  };
  explicit HeldNodes(const Parts& parts) : parts_(parts) {}

  // Call it about once a second where this process leads.
  void Look();
  // This process leads no longer.
  void LetGo();

 private:
  using Since = std::map<std::string, Instant>;  // by node

  const Parts parts_;
  Since kept_, unneeded_;  // unneeded_: those that are held, and not kept any more
  Since asked_;            // when something was asked for
};

}  // namespace berth
