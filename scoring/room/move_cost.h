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
#include <span>
#include <string_view>

#include "base/clock.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/values/pod_record.h"

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
};

Stays WhyItStays(const PodRecord& pod, const MoveRules& rules);

inline constexpr std::chrono::minutes kRestart = std::chrono::minutes(5);
// Less than so much of a GPU counts as so much, in thousandths: a pod without GPUs costs, too.
inline constexpr std::int64_t kLeastMilli = 100;

// Above 0.
std::int64_t MoveCost(const PodRecord& pod, WallTime now);
// The work that is lost by the move: since when it is counted, in minutes.
std::chrono::minutes LostByMove(const PodRecord& pod, WallTime now);

}  // namespace berth
