// SPDX-License-Identifier: Apache-2.0
#include "scoring/admission.h"

#include <algorithm>
#include <span>

#include "scoring/priority.h"

namespace berth {

namespace {

bool ToleratesAll(std::span<const Taint> taints, const PodRequest& pod) {
  std::span<const Toleration> tolerations;
  if (pod.constraints != nullptr) tolerations = pod.constraints->tolerations;
  return std::ranges::all_of(
      taints, [tolerations](const Taint& taint) { return Tolerates(tolerations, taint); });
}

bool Refuses(const std::vector<RefusedAsk>& asks, const PodRequest& pod) {
  return std::ranges::any_of(asks, [&pod](const RefusedAsk& ask) { return ask.Covers(pod); });
}

}  // namespace

Reason Admits(const NodeSpec& node, const PodRequest& pod) {
  const NodeConstraints* const constraints = pod.constraints.get();
  if (!ToleratesAll(node.taints, pod)) return Reason::kTaintNotTolerated;
  if (node.refused_asks != nullptr && Refuses(*node.refused_asks, pod)) {
    return Reason::kAskRefused;
  }
  if (constraints != nullptr && constraints->selects() &&
      !SelectsNode(*constraints, node.name, node.labels)) {
    return Reason::kNodeNotSelected;
  }
  return VersionReason(node, pod);
}

Reason VersionReason(const NodeSpec& node, const PodRequest& pod) {
  if (pod.constraints == nullptr) return Reason::kFits;
  const auto unmet = pod.constraints->versions.Unmet(node.labels);
  if (!unmet) return Reason::kFits;
  return static_cast<Reason>(static_cast<int>(Reason::kDriverTooOld) + static_cast<int>(*unmet));
}

bool IsWelcome(const NodeSpec& node, const PodRequest& pod) {
  return ToleratesAll(node.soft_taints, pod);
}

bool AdmissionMatters(const Snapshot& snapshot, const PodRequest& pod) {
  if (snapshot.choosy_nodes() > 0) return true;
  return pod.constraints != nullptr &&
         (pod.constraints->selects() || pod.constraints->versions.any());
}

bool IsGpuNode(const NodeSpec& node) { return node.has_gpus() || node.gpus_to_come; }

int UnguardedGpuNodes(const Snapshot& snapshot) {
  int unguarded = 0;
  for (NodeIndex node = 0; node < snapshot.size(); ++node) {
    const NodeSpec& spec = snapshot.node(node).spec();
    if (IsGpuNode(spec) && std::ranges::all_of(spec.taints, IsOfCondition)) ++unguarded;
  }
  return unguarded;
}

std::vector<std::uint8_t> GuardedPriorities(const Snapshot& snapshot,
                                            std::span<const NodeIndex> candidates) {
  std::vector<std::uint8_t> priorities(candidates.size());
  std::ranges::transform(candidates, priorities.begin(), [&](NodeIndex node) {
    return IsGpuNode(snapshot.node(node).spec()) ? std::uint8_t{0} : std::uint8_t{kMaxPriority};
  });
  const bool any = std::ranges::find(priorities, kMaxPriority) != priorities.end();
  return any ? priorities : std::vector<std::uint8_t>();
}

}  // namespace berth
