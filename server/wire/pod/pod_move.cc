// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_move.h"

#include <charconv>

namespace berth::wire {
namespace {

constexpr std::string_view kDoNotDisrupt = "karpenter.sh/do-not-disrupt";
constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

}  // namespace

bool PodMoveWords::Reads(std::string_view key) {
  return key == kDoNotDisrupt || key == kSafeToEvict || key == kDeletionCost;
}

void PodMoveWords::Take(std::string_view key, std::string_view value) {
  if (key == kDoNotDisrupt) do_not_disrupt = value == "true";
  if (key == kSafeToEvict) {
    not_safe = value == "false";
    safe = value == "true";
  }
  if (key != kDeletionCost) return;
  int cost = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, cost);
  if (error == std::errc() && at == end) deletion_cost = cost;
}

Mobility PodMoveWords::mobility() const {
  if (do_not_disrupt) return Mobility::kDoNotDisrupt;
  if (not_safe) return Mobility::kNotSafeToEvict;
  return has_host_path && !safe ? Mobility::kHostPath : Mobility::kMoves;
}

}  // namespace berth::wire
