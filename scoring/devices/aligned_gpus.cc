// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/aligned_gpus.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "scoring/devices/neighbours.h"

namespace berth {
namespace {

TopologyManager::Offer OfferTo(const NodeSpec& spec, GpuMask free, GpuMask reusable, int count) {
  return spec.topology_manager.OfferTo(spec.links.numa_nodes(), free, reusable, count);
}

bool IsOneStep(const NodeSpec& spec, const RequestShape& shape) {
  return spec.topology_manager.by_pod || StepsOf(shape).size() == 1;
}

// One container after the other, each with the best of what it is offered. 0: one gets none.
GpuMask InTurn(const NodeSpec& spec, GpuMask free, GpuMask suiting, const RequestShape& shape,
               std::span<const GpuMask> tenants) {
  GpuMask chosen = 0, reusable = 0;
  for (const GpuStep& step : StepsOf(shape)) {
    const auto offer = OfferTo(spec, free, reusable, step.count);
    if (!offer.admits) return 0;
    const GpuMask reused = LowestBits(reusable, step.count);
    const int more = step.count - std::popcount(reused);
    const GpuMask fresh =
        more == 0 ? 0 : spec.links.Choose(offer.gpus & suiting, more, {}, tenants);
    if (more > 0 && fresh == 0) return 0;
    chosen |= fresh;
    free &= ~fresh;
    reusable = step.ends_first ? reusable | fresh : reusable & ~reused;
  }
  return chosen;
}

bool Suits(const NodeSpec& spec, GpuMask free, GpuMask gpus, const RequestShape& shape) {
  return std::popcount(gpus) == shape.gpu_count() && spec.links.Satisfies(gpus, shape.links) &&
         KubeletGives(spec, shape, free, gpus);
}

// The best by their links of all sets that suit the pod; the lowest of equal ones. 0 where there
// are more than kMostFree free GPUs: this is for pods of several containers that need links.
GpuMask OfAllSets(const NodeSpec& spec, GpuMask free, GpuMask suiting, const RequestShape& shape) {
  constexpr std::ptrdiff_t kMostFree = 8;
  const int wanted = shape.gpu_count();
  std::vector<GpuMask> bits;
  ForEachGpu(suiting, [&](int gpu) { bits.push_back(GpuBit(gpu)); });
  if (std::ssize(bits) < wanted || std::ssize(bits) > kMostFree) return 0;
  if (spec.links.Choose(suiting, wanted, shape.links) == 0) return 0;
  GpuMask best = 0;
  int best_quality = -1;
  const std::uint32_t end = std::uint32_t{1} << bits.size();
  for (std::uint32_t dense = 1; dense < end; ++dense) {
    if (std::popcount(dense) != wanted) continue;
    GpuMask set = 0;
    ForEachGpu(dense, [&](int at) { set |= bits[static_cast<std::size_t>(at)]; });
    const int quality = spec.links.quality(set);
    if (quality <= best_quality || !Suits(spec, free, set, shape)) continue;
    best = set;
    best_quality = quality;
  }
  return best;
}

}  // namespace

AlignedChoice ChooseAligned(const Node& node, GpuMask free, GpuMask suiting,
                            const RequestShape& shape, std::span<const GpuMask> tenants) {
  const NodeSpec& spec = node.spec();
  if (IsOneStep(spec, shape)) {
    const auto offer = OfferTo(spec, free, 0, shape.gpu_count());
    if (!offer.admits) return {};
    return {true, ChooseSuiting(node, offer.gpus & suiting, shape, tenants)};
  }
  for (const GpuMask best : BySuitability(node, suiting, shape)) {
    // Whether there is a set is not to depend on the tenants.
    for (const auto& heeded : {tenants, std::span<const GpuMask>()}) {
      const GpuMask gpus = InTurn(spec, free, best, shape, heeded);
      if (gpus != 0 && Suits(spec, free, gpus, shape)) return {true, gpus};
      if (tenants.empty()) break;
    }
  }
  if (InTurn(spec, free, free, shape, {}) == 0) return {};
  return {true, OfAllSets(spec, free, suiting, shape)};
}

GpuMask AlignedGpus(const NodeSpec& spec, GpuMask free, const RequestShape& shape) {
  if (IsOneStep(spec, shape)) return OfferTo(spec, free, 0, shape.gpu_count()).gpus;
  return InTurn(spec, free, free, shape, {}) != 0 ? free : 0;
}

bool NeverAdmits(const NodeSpec& spec, GpuMask gpus, const RequestShape& shape) {
  if (IsOneStep(spec, shape)) return !OfferTo(spec, gpus, 0, shape.gpu_count()).admits;
  return std::ranges::any_of(StepsOf(shape), [&](const GpuStep& step) {
    return !OfferTo(spec, gpus, 0, step.count).admits;
  });
}

std::string AlignmentText(const NodeSpec& spec, GpuMask free, const RequestShape& shape) {
  int largest = shape.gpu_count();
  if (!IsOneStep(spec, shape)) {
    largest = std::ranges::max(StepsOf(shape), {}, &GpuStep::count).count;
  }
  int numa_nodes =
      spec.topology_manager.policy == TopologyPolicy::kSingleNumaNode
          ? 1
          : spec.links.LeastSpan(std::min(largest, static_cast<int>(spec.gpus.size())));
  return "needs " + std::to_string(largest) + " in " +
         (numa_nodes == 1 ? "one NUMA node" : std::to_string(numa_nodes) + " NUMA nodes") +
         (IsOneStep(spec, shape) ? "" : " for one container") + " (Topology Manager policy " +
         std::string(NameOf(spec.topology_manager.policy)) + "; at most " +
         std::to_string(spec.links.MostOfOneGroup(free)) + " idle in one)";
}

}  // namespace berth
