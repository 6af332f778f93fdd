// SPDX-License-Identifier: Apache-2.0
#include "scoring/groups/pod_room.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "scoring/devices/device_picker.h"
#include "scoring/mig/mig_plan.h"
#include "scoring/registry.h"

namespace berth {
namespace {

std::int64_t Times(std::int64_t free, std::int64_t ask) { return ask > 0 ? free / ask : kMostPods; }

std::int64_t SharesOn(const Node& node, int gpu, const RequestShape& shape) {
  const auto choice = ShareOn(node, gpu, shape);
  if (!choice || !HasFree(node, gpu, *choice)) return 0;
  const GpuFree& free = node.gpus()[static_cast<std::size_t>(gpu)];
  return std::min(Times(free.milli, choice->milli), Times(free.memory_mib, choice->memory_mib));
}

// One after the other, with shares of several GPUs: which are taken decides how many fit.
std::int64_t PodsWithShares(Node node, const RequestShape& shape) {
  PodRequest pod;
  pod.shape = shape;
  for (std::int64_t pods = 0; pods < kMostPods; ++pods) {
    const auto choices = DeviceChoices(node, shape, DeviceRule::kTightest);
    if (choices.empty()) return pods;
    pod.id.uid = "in turn " + std::to_string(pods);
    node.Put(std::make_shared<const PodRecord>(
        PodRecord{pod, PlacementFor(node, shape, choices.front()), PodState::kPlanned, {}}));
  }
  return kMostPods;
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
    return WholeChoicesInTurn(node, whole->count, shape);
  }
  if (const MigSlices* const mig = shape.mig()) {
    const int instead = GpusInsteadOfMig(node, shape);
    return instead > 0 ? WholeChoicesInTurn(node, instead, shape) : MigPodsFor(node, *mig);
  }
  if (!shape.is_share()) return kMostPods;
  if (shape.gpu_count() > 1) return PodsWithShares(node, shape);
  std::int64_t count = 0;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    count += SharesOn(node, gpu, shape);
  }
  return count;
}

}  // namespace

int PodsThatFit(const Node& node, const RequestShape& shape) {
  if (FirstObjection(node, shape) != Reason::kFits) return 0;
  const std::int64_t pods =
      std::min({DevicesFor(node, shape), Times(node.free_cpu_milli(), shape.cpu_milli),
                Times(node.free_memory_bytes(), shape.memory_bytes),
                Times(node.free_ephemeral_bytes(), shape.ephemeral_bytes)});
  return static_cast<int>(std::clamp<std::int64_t>(pods, 1, kMostPods));
}

}  // namespace berth
