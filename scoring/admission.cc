// SPDX-License-Identifier: Apache-2.0
#include "scoring/admission.h"

#include <algorithm>

#include "scoring/priority.h"
#include "scoring/registry.h"

namespace berth {
namespace {

bool ToleratesAll(std::span<const Taint> taints, const PodRequest& pod) {
  return std::ranges::all_of(
      taints, [&pod](const Taint& taint) { return Tolerates(TolerationsOf(pod), taint); });
}

bool Refuses(const std::vector<RefusedAsk>& asks, const PodRequest& pod) {
  return std::ranges::any_of(asks, [&pod](const RefusedAsk& ask) { return ask.Covers(pod); });
}

// Whether it asks for whole GPUs and wants nothing of them that only Berth could see to.
bool SaysOnlyHowMany(const PodRequest& pod) {
  const RequestShape& shape = pod.shape;
  return shape.is_plain() && shape.models.empty() && shape.model_rules.empty() &&
         shape.gpu_rules.empty() && shape.share_agent.empty() && !shape.links.limits() &&
         !pod.domain.required;
}

bool OffersNone(const Node& node, const std::string& resource) {
  const NodeSpec& spec = node.spec();
  if (!spec.GivesGpusAs(resource)) return true;
  if (!spec.by_claims.empty()) return false;  // what its slices offer is known
  if (spec.places.count > 0) return spec.places.count <= spec.missing;
  return node.healthy_gpus() == 0;
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
  const bool by_gpu = pod.shape.min_capability > 0 && node.knows_capabilities();
  if (!unmet || (*unmet == Versioned::kCapability && by_gpu && pod.shape.mig() == nullptr)) {
    return Reason::kFits;  // CheckModel looks at each GPU
  }
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

bool IsGpuNode(const NodeSpec& node) {
  return node.has_gpus() || node.gpus_to_come || node.beside.in_slices > 0;
}

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

bool GetsClaimOn(const Node& node, const PodRequest& pod) {
  return !pod.device_class.empty() && SaysOnlyHowMany(pod) &&
         OffersNone(node, pod.shape.gpu_resource);
}

bool GivesByClaim(const Node& node, const PodRequest& pod) {
  const NodeSpec& spec = node.spec();
  const bool is_known = !spec.by_claims.empty() && spec.GivesGpusAs(pod.shape.gpu_resource);
  return !pod.device_class.empty() && (is_known || GetsClaimOn(node, pod));
}

int GpusByClaim(const Node& node) {
  int gpus = 0;
  for (const auto& record : node.pods()) {
    if (GetsClaimOn(node, record->pod)) gpus += record->pod.shape.gpu_count();
  }
  return std::min(gpus, kMaxTotal);
}

Reason ObjectionBesideGpus(const Node& node, const PodRequest& pod) {
  RequestShape rest;
  rest.cpu_milli = pod.shape.cpu_milli;
  rest.memory_bytes = pod.shape.memory_bytes;
  rest.ephemeral_bytes = pod.shape.ephemeral_bytes;
  rest.nodes = pod.shape.nodes;
  const Reason reason = FirstObjection(node, rest);
  if (reason != Reason::kFits) return reason;
  return node.spec().gpu_condition.empty() ? Reason::kFits : Reason::kGpuCondition;
}

bool GetsClaimAnywhere(const Snapshot& snapshot, const PodRequest& pod) {
  if (pod.device_class.empty() || !SaysOnlyHowMany(pod)) return false;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    if (!OffersNone(snapshot.node(i), pod.shape.gpu_resource)) return false;
  }
  return true;
}

}  // namespace berth
