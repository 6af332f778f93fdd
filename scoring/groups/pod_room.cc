// SPDX-License-Identifier: Apache-2.0
#include "scoring/groups/pod_room.h"

#include <algorithm>
#include <cstdint>

#include "scoring/device_picker.h"
#include "scoring/mig/mig_plan.h"
#include "scoring/registry.h"

namespace berth {
namespace {

std::int64_t Times(std::int64_t free, std::int64_t ask) { return ask > 0 ? free / ask : kMostPods; }

std::int64_t SharesOn(const Node& node, int gpu, const GpuShare& share) {
  const auto choice = ShareOn(node, gpu, share);
  if (!choice || !HasFree(node, gpu, *choice)) return 0;
  const GpuFree& free = node.gpus()[static_cast<std::size_t>(gpu)];
  return std::min(Times(free.milli, choice->milli), Times(free.memory_mib, choice->memory_mib));
}

// One after the other, as the devices are planned.
std::int64_t MigPodsFor(const Node& node, const MigSlices& ask) {
  const MigSpec& spec = *node.spec().mig;
  MigUse use = node.mig();
  for (std::int64_t pods = 0;; ++pods) {
    const auto plan = PlanMig(spec, use, ask);
    if (!plan || pods == kMostPods || !use.TakeAll(spec, plan->grants)) return pods;
    if (!spec.by_claims()) continue;
    for (const MigSlot& slot : plan->slots) use.Take(slot);  // there are no grants
  }
}

std::int64_t DevicesFor(const Node& node, const RequestShape& shape) {
  if (const auto* const whole = std::get_if<WholeGpus>(&shape.gpus)) {
    if (node.spec().places.count > 0) return node.free_places() / whole->count;
    return WholeChoicesInTurn(node, whole->count, shape.links);
  }
  if (const MigSlices* const mig = shape.mig()) {
    const int instead = GpusInsteadOfMig(node, shape);
    return instead > 0 ? WholeChoicesInTurn(node, instead, {}) : MigPodsFor(node, *mig);
  }
  const auto* const share = std::get_if<GpuShare>(&shape.gpus);
  if (share == nullptr) return kMostPods;
  std::int64_t count = 0;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    count += SharesOn(node, gpu, *share);
  }
  return count;
}

}  // namespace

int PodsThatFit(const Node& node, const RequestShape& shape) {
  if (FirstObjection(node, shape) != Reason::kFits) return 0;
  const std::int64_t pods =
      std::min({DevicesFor(node, shape), Times(node.free_cpu_milli(), shape.cpu_milli),
                Times(node.free_memory_bytes(), shape.memory_bytes)});
  return static_cast<int>(std::clamp<std::int64_t>(pods, 1, kMostPods));
}

}  // namespace berth
