// SPDX-License-Identifier: Apache-2.0
#include "scoring/taken_away.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "cluster/node/gpu_division.h"

namespace berth {
namespace {

// Whether the resource of the node is its GPUs, one each.
bool CountsGpus(const NodeSpec& spec) { return !spec.gpus.empty() && spec.share_agent.empty(); }

}  // namespace

std::int64_t GpusCountedFor(const NodeSpec& node, const RequestShape& shape) {
  const auto* const whole = std::get_if<WholeGpus>(&shape.gpus);
  return whole == nullptr || !node.GivesGpusAs(shape.gpu_resource) || !shape.share_agent.empty()
             ? 0
             : whole->count;
}

bool PodsAreTakenAway(const Node& node, const PodRequest& pod, std::int64_t given) {
  const NodeSpec& spec = node.spec();
  const std::int64_t wanted = GpusCountedFor(spec, pod.shape);
  if (wanted == 0 || !CountsGpus(spec) || node.lowest_priority() >= pod.priority) return false;
  std::int64_t free = std::ssize(spec.gpus) - spec.missing - given;
  for (const auto& held : node.pods()) {
    if (held->state == PodState::kBound) free -= GpusCountedFor(spec, held->pod.shape);
  }
  return wanted > free;
}

bool AnyEvictionsWillDo(const Node& node, const PodRequest& pod) {
  const NodeSpec& spec = node.spec();
  const bool is_limited =
      KubeletLimits(spec, pod.shape) && spec.topology_manager.policy != TopologyPolicy::kBestEffort;
  const bool is_fussy = pod.shape.links.limits() || !pod.shape.gpu_rules.empty() || is_limited;
  const bool is_known = std::ranges::all_of(spec.gpus, &GpuSpec::healthy) && node.claimed() == 0;
  if (is_fussy || !is_known || !CountsGpus(spec)) return false;
  return std::ranges::all_of(node.pods(), [&](const auto& held) {
    const bool is_of_its_gang = !pod.gang.empty() && held->pod.gang.id == pod.gang.id;
    if (is_of_its_gang || !held->pod.shape.wants_gpu()) return true;
    return held->state != PodState::kPlanned && GpusCountedFor(spec, held->pod.shape) > 0;
  });
}

}  // namespace berth
