// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/waiting_pods.h"
#include "config/config.h"

namespace berth {

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

}  // namespace berth
