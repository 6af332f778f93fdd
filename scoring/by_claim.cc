// SPDX-License-Identifier: Apache-2.0
#include "scoring/by_claim.h"

#include <algorithm>
#include <variant>

#include "scoring/priority.h"
#include "scoring/registry.h"

namespace berth {
namespace {

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
