// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/move_rules.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "scoring/victims.h"

namespace berth {
namespace {

Stays OfMobility(Mobility mobility) {
  switch (mobility) {
    case Mobility::kMoves:
      return Stays::kNot;
    case Mobility::kNoController:
      return Stays::kNoController;
    case Mobility::kComesBack:
      return Stays::kComesBack;
    case Mobility::kDoNotDisrupt:
      return Stays::kDoNotDisrupt;
    case Mobility::kNotSafeToEvict:
      return Stays::kNotSafeToEvict;
    case Mobility::kHostPath:
      return Stays::kHostPath;
    case Mobility::kUnknown:
      break;
  }
  return Stays::kUnknown;
}

// The API server refuses an eviction of a pod with several budgets.
bool IsHeldByBudget(const PodRequest& pod, std::span<const PodDisruptionBudget> budgets) {
  const std::string& in = pod.id.namespace_name;
  auto budget = std::ranges::lower_bound(budgets, in, {}, &PodDisruptionBudget::namespace_name);
  int covering = 0;
  for (; budget != budgets.end() && budget->namespace_name == in; ++budget) {
    if (!budget->Covers(pod)) continue;
    if (budget->disruptions_allowed < 1 || ++covering > 1) return true;
  }
  return false;
}

std::int64_t WeightOf(const PodRequest& pod) {
  const std::int64_t weight = 1000 + std::int64_t{pod.deletion_cost} * 1000 / (1 << 27) +
                              std::int64_t{pod.priority} * 1000 / (1 << 25);
  return std::clamp<std::int64_t>(weight, 100, 10'000);
}

}  // namespace

std::string_view TextOf(Stays stays) {
  constexpr std::array<std::string_view, 15> kTexts = {
      "",
      "it is starting or ending",
      "it is not known whether a controller would make it anew",
      "no controller would make it anew",
      "it belongs to its node",
      "annotation karpenter.sh/do-not-disrupt",
      "annotation cluster-autoscaler.kubernetes.io/safe-to-evict",
      "it uses a directory of its node",
      "annotation berth.dev/keep",
      "it has started a short time ago",
      "its disruption budget allows no eviction now",
      "it is part of a gang",
      "it has devices by ResourceClaims",
      "another scheduler would place its successor (spec.schedulerName)",
      "Berth may not move it by its settings, or does not judge all that it needs"};
  return kTexts[static_cast<std::size_t>(stays)];
}

std::chrono::minutes LostByMove(const PodRecord& pod, WallTime now) {
  const auto since = pod.pod.checkpointed ? pod.pod.checkpointed : pod.life.started;
  if (!since) return kMostLost;
  const auto lost = std::chrono::floor<std::chrono::minutes>(now - *since);
  return std::clamp(lost, std::chrono::minutes(0), kMostLost);
}

std::int64_t MoveCost(const PodRecord& pod, WallTime now) {
  const std::int64_t milli = std::max(GpuMilliOf(pod), kLeastMilli);
  const std::chrono::seconds all =
      LostByMove(pod, now) + kRestart + std::chrono::seconds(pod.pod.grace_seconds);
  const std::int64_t work = milli * all.count() / 60;
  return std::max<std::int64_t>(work * WeightOf(pod.pod) / 1000, 1);
}

Stays WhyItStays(const PodRecord& pod, const MoveRules& rules) {
  if (pod.state != PodState::kBound || pod.leaving) return Stays::kUnder;
  if (pod.life.comes_back) return Stays::kComesBack;
  if (!pod.pod.refusal.empty()) return Stays::kUnknown;  // nobody would place its successor
  if (!rules.schedulers.empty() && !rules.schedulers.contains(pod.pod.scheduler)) {
    return Stays::kScheduler;
  }
  if (const Stays stays = OfMobility(pod.pod.mobility); stays != Stays::kNot) return stays;
  if (pod.pod.keep) return Stays::kKeep;
  if (!pod.pod.gang.empty()) return Stays::kGang;
  if (!pod.pod.claims.empty()) return Stays::kClaims;
  if (pod.life.started && rules.now - *pod.life.started < rules.youngest) return Stays::kYoung;
  if (IsHeldByBudget(pod.pod, rules.budgets)) return Stays::kBudget;
  return rules.allows && !rules.allows(pod) ? Stays::kNotAllowed : Stays::kNot;
}

}  // namespace berth
