// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/gpu_division.h"

#include <algorithm>
#include <bit>
#include <variant>

namespace berth {
namespace {

// How many GPUs the pod has in all.
int SumOf(std::span<const GpuStep> steps) {
  int sum = 0, reusable = 0;
  for (const GpuStep& step : steps) {
    const int fresh = std::max(step.count - reusable, 0);
    sum += fresh;
    reusable += step.ends_first ? fresh : fresh - step.count;
  }
  return sum;
}

}  // namespace

bool KubeletLimits(const NodeSpec& spec, const RequestShape& shape) {
  if (spec.topology_manager.policy == TopologyPolicy::kNone || !spec.share_agent.empty() ||
      !spec.by_claims.empty() || !std::holds_alternative<WholeGpus>(shape.gpus) ||
      spec.gpus.empty() || spec.links.source() <= LinkSource::kCatalogue) {
    return false;
  }
  const std::size_t numa_nodes = spec.links.numa_nodes().size();
  return numa_nodes > 1 && numa_nodes <= TopologyManager::kMostNumaNodes;
}

std::vector<GpuStep> StepsOf(const RequestShape& shape) {
  if (SumOf(shape.gpu_steps) == shape.gpu_count()) return shape.gpu_steps;
  return {{shape.gpu_count(), false}};
}

std::optional<std::vector<GpuMask>> DivideGpus(const NodeSpec& spec, const RequestShape& shape,
                                               GpuMask gpus) {
  const TopologyManager& manager = spec.topology_manager;
  std::vector<GpuMask> sets;
  GpuMask left = gpus, reusable = 0;
  for (const GpuStep& step : StepsOf(shape)) {
    TopologyManager::Offer offer{std::popcount(left | reusable) >= step.count, left};
    if (!manager.by_pod) {
      offer = manager.OfferTo(spec.links.numa_nodes(), left, reusable, step.count);
    }
    if (!offer.admits) return std::nullopt;
    const GpuMask reused = LowestBits(reusable, step.count);
    const GpuMask fresh = LowestBits(offer.gpus, step.count - std::popcount(reused));
    sets.push_back(reused | fresh);
    left &= ~fresh;
    reusable = step.ends_first ? reusable | fresh : reusable & ~reused;
  }
  return sets;
}

bool KubeletGives(const NodeSpec& spec, const RequestShape& shape, GpuMask free, GpuMask gpus) {
  const TopologyManager& manager = spec.topology_manager;
  const auto numa_nodes = spec.links.numa_nodes();
  const auto sets = DivideGpus(spec, shape, gpus);
  if (!sets) return false;
  if (manager.by_pod) {
    const auto offer = manager.OfferTo(numa_nodes, free, 0, shape.gpu_count());
    return offer.admits && (gpus & ~offer.gpus) == 0;
  }
  const std::vector<GpuStep> steps = StepsOf(shape);
  GpuMask reusable = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto offer = manager.OfferTo(numa_nodes, free, reusable, steps[i].count);
    const GpuMask fresh = (*sets)[i] & ~reusable;
    if (!offer.admits || (fresh & ~offer.gpus) != 0) return false;
    free &= ~fresh;
    reusable = steps[i].ends_first ? reusable | fresh : reusable & ~(*sets)[i];
  }
  return true;
}

}  // namespace berth
