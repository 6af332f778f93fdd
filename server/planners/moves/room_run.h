// SPDX-License-Identifier: Apache-2.0
//
// RoomRun: one plan of moves that is carried out, one pod after the other.
//
//        +------------------------- next move <-------------------------+
//        v                                                              |
//      check -> hold the target -> evict -> the successor is there, the pod is gone -> all are made
//        |            |              |                 |                               |
//        |            |              |                 |          keep the room until the pod is in
//        v            v              v                 v                     |                |
//        +---------------------- given up <----------------------------------+               done
//
// From the beginning the nodes from which pods leave, and those of the goal, are kept for the goal
// (device_rooms.h), and what is free of the targets is held (there too). It is given up when
//   - the pod, or a member of the gang, that it is for is gone
//   - a pod that is to move has changed its place, or stays now (room_nodes.h)
//   - a target is taken or its node gone, or a pod from elsewhere comes to a node that is kept
//   - the API server refuses the eviction, or does not answer
//   - no successor comes in time, or it goes elsewhere
// Nobody is evicted while the pod, or a member of the gang, has its place elsewhere or its bind is
// on its way; for kComesWithin at most. A pod that is in early, before the last successor has come,
// leaves that one its place. Then, and at the end, nothing is kept or held any more. Pods that were
// moved stay where they are.
// All of it is in memory: after a kill nothing is held, and evicted pods are placed as any others.
//
// One thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/state/waiting_pods.h"
#include "cluster/values/pod_request.h"
#include "server/extender/extender.h"
#include "server/extender/kept/device_rooms.h"
#include "server/extender/ports/ports.h"

namespace berth {

// RoomProgress: the plan of moves that Berth carries out (room_maker.h), and how far it is. A
// value.
struct RoomProgress {
  enum class Step : std::uint8_t {
    kNext,   // its turn has not come
    kEnds,   // it was evicted, and its successor has no place yet
    kMoved,  // its successor is there
  };
  struct Move {
    PodId pod;
    std::string from, to;
    Step step = Step::kNext;
    friend bool operator==(const Move&, const Move&) = default;
  };
  std::string name;  // "ml/train": of the pod or gang that it is for; "2 idle nodes"
  bool is_gang = false;
  WallTime begun = {};
  std::vector<Move> moves = {};  // in order
  // How it went, in a sentence; empty: it is under way.
  std::string ended = {};
  bool is_done = false;  // it has ended, and the room was made
  friend bool operator==(const RoomProgress&, const RoomProgress&) = default;
};

// What is to be done. By names and UIDs: snapshots come and go meanwhile.
struct RoomOrder {
  struct Move {
    PodRequest pod;
    Placement from, to;
  };
  struct Place {
    PodId pod;
    std::string node;
  };
  std::string name;  // "ml/train": of the pod or gang; "2 idle nodes"
  GangId gang = {};  // empty: a pod alone, or idle nodes
  int priority = 0;
  std::vector<Place> places;  // of the pods that it is for; empty: it is for idle nodes
  std::vector<Move> moves;    // in order
};

class RoomRun {
 public:
  // A successor comes within this time and the pod's grace period.
  static constexpr Duration kComesWithin = std::chrono::minutes(10);
  // How long the room is kept for the pod or gang once all moves are made.
  static constexpr Duration kIsInWithin = std::chrono::minutes(2);

  // References: they outlive the object.
  struct Parts {
    ClusterState& state;
    const WaitingPods& waiting;
    const Extender& extender;
    DeviceRooms& rooms;
    MoveHolds& holds;
    PodEvictor& evictor;
    PodWaker& waker;
    DecisionSink& sink;
    const Clock& clock;
    const DisruptionBudgets* budgets = nullptr;  // nullptr: there are none
  };
  struct Counts {
    int evicted = 0, blocked = 0, failed = 0;
  };

  // Keeps and holds what it needs.
  RoomRun(const Parts& parts, RoomOrder order);
  // Lets go of it.
  ~RoomRun();
  RoomRun(const RoomRun&) = delete;
  RoomRun& operator=(const RoomRun&) = delete;

  enum class State { kGoesOn, kDone, kGivenUp };
  // The next step, if it is due; call it about once a second. It evicts one pod at most, which
  // blocks for some seconds at most. Requires: it has returned nothing but kGoesOn.
  State Step();
  // Gives it up for a reason from outside.
  void GiveUp(const std::string& why);

  [[nodiscard]] const RoomOrder& order() const { return order_; }
  [[nodiscard]] Counts counts() const { return counts_; }
  [[nodiscard]] std::size_t moves_left() const { return order_.moves.size() - next_; }
  // `ended` is set once Step has returned another state than kGoesOn, or it was given up.
  [[nodiscard]] const RoomProgress& progress() const { return progress_; }

 private:
  // Each returns why it goes no further; "": it does.
  [[nodiscard]] std::string KeepNodes();
  [[nodiscard]] std::string HoldTarget(const RoomOrder::Move& move);
  [[nodiscard]] std::string WhyGoalIsGone();
  [[nodiscard]] std::string WhoCame();
  // A pod of the goal is about to be bound, or is planned on a node that is not kept for it.
  [[nodiscard]] bool MayNeedNoRoom() const;
  [[nodiscard]] std::string WhyNot(const RoomOrder::Move& move) const;
  [[nodiscard]] std::string Evict(const RoomOrder::Move& move);
  [[nodiscard]] std::string AwaitSuccessor(const RoomOrder::Move& move);
  [[nodiscard]] std::string LetIn();

  // The pod, or a member of the gang, that it is for; of idle nodes none.
  [[nodiscard]] PodId ForWhom() const;
  // "so that ml/train has room", "for 2 idle nodes".
  [[nodiscard]] std::string Aim() const;
  [[nodiscard]] bool IsOn(const std::string& uid, const std::string& node) const;
  // The goal is reached: what is left to do.
  [[nodiscard]] State Finish();
  void LeaveNodes();
  void LetGo();
  void Tell(RoomNews::What what, const std::string& text, const PodId& moved = {});

  const Parts parts_;
  const RoomOrder order_;
  Counts counts_;
  RoomProgress progress_;
  std::string problem_;               // of the beginning
  std::set<std::string> kept_;        // nodes
  std::set<std::string> known_;       // UIDs of pods that were there, or that come as planned
  std::size_t next_ = 0;              // move
  std::optional<Instant> evicted_;    // when the pod of that move was
  std::optional<Instant> made_;       // when all moves were
  std::optional<Instant> elsewhere_;  // since when MayNeedNoRoom
  bool reached_ = false;              // the pod, or all of the gang, is in
  bool placed_ = false;               // the place is planned for the pod
  std::size_t in_ = 0;                // pods of the goal that are bound
};

}  // namespace berth
