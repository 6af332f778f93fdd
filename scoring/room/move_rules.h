// SPDX-License-Identifier: Apache-2.0
//
// MoveCost: which running pods may be moved to make room for others, and what a move costs.
//
//   cost = GPUs x (work lost + grace period + kRestart) x weight, in thousandths of GPU-minutes
//   work lost   since the pod's checkpoint, else since it started, else kMostLost (victims.h)
//   weight      1 + pod-deletion-cost / 2^27 + priority / 2^25, within .1 and 10: as Karpenter
//               weighs pods (pkg/utils/disruption, EvictionCost)
//
// Pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "scoring/profile_spec.h"
#include "scoring/reservations/reservations.h"

namespace berth {

// Why a pod is not moved.
enum class Stays : std::uint8_t {
  kNot,      // it may be moved
  kUnder,    // its bind is under way, or it is ending
  kUnknown,  // as Mobility, or it could not be placed anew; as Mobility, ...
  kNoController,
  kComesBack,
  kDoNotDisrupt,
  kNotSafeToEvict,
  kHostPath,  // ...to here
  kKeep,      // berth.dev/keep
  kYoung,
  kBudget,      // its disruption budget allows none now, or it has several
  kGang,        // a gang would have to move as a whole
  kClaims,      // it has devices by ResourceClaims
  kScheduler,   // another scheduler would place its successor
  kNotAllowed,  // MoveRules::allows
};
// "no controller would make it anew": after "NAME stays: ". Empty: it may be moved.
std::string_view TextOf(Stays stays);

struct MoveRules {
  WallTime now = {};
  // A pod that has run for less is not moved, so that nobody is moved again and again.
  std::chrono::minutes youngest = std::chrono::minutes(10);
  // Sorted by namespace. Moves come one after the other, so a budget has to allow one at a time.
  std::span<const PodDisruptionBudget> budgets = {};
  // Others are not moved; empty: all may be.
  std::function<bool(const PodRecord& pod)> allows = {};
  bool keep_model = true;  // pods with GPUs move to GPUs of the same model
  // spec.schedulerName of those that ask Berth: pods of others stay. Empty: not known.
  std::set<std::string> schedulers = {};
};

Stays WhyItStays(const PodRecord& pod, const MoveRules& rules);

inline constexpr std::chrono::minutes kRestart = std::chrono::minutes(5);
// Less than so much of a GPU counts as so much, in thousandths: a pod without GPUs costs, too.
inline constexpr std::int64_t kLeastMilli = 100;

// Above 0.
std::int64_t MoveCost(const PodRecord& pod, WallTime now);
// The work that is lost by the move: since when it is counted, in minutes.
std::chrono::minutes LostByMove(const PodRecord& pod, WallTime now);

// RoomAsk: what room is asked for, and by whose moves it may be made. Values.

// All of these pods have a place, and so many nodes have nothing but idle GPUs.
struct RoomGoal {
  std::vector<PodRequest> pods = {};  // UIDs unique, none of them on a node
  int idle_nodes = 0;
  std::string model = {};  // of the idle nodes; empty: any
  // The pods have to be on the nodes of one of these sets; empty: anywhere.
  std::vector<std::vector<NodeIndex>> within = {};
};

struct SearchLimits {
  std::int64_t steps = 100'000;       // nodes of the search tree and evaluations of nodes
  std::function<bool()> enough = {};  // asked now and then: the best plan so far will do
};

struct RoomAsk {
  std::shared_ptr<const Snapshot> snapshot;
  RoomGoal goal = {};
  MoveRules rules = {};
  NodeGuard guard = NodeGuard::kOff;
  const Reservations* reservations = nullptr;  // as in Question; they outlive the ask
  SearchLimits limits = {};
};

}  // namespace berth
