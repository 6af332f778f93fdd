// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/device_scorers.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "scoring/mig/mig_plan.h"
#include "topology/gpu_mask.h"
#include "topology/gpu_model.h"
#include "topology/links/set_table.h"

namespace berth {
namespace {

bool AllAlike(const Node& node, const RequestShape& shape) {
  return shape.gpu_count() < 2 || !node.spec().links.known();
}

// In GPUs.
constexpr double kEmptyStatic = 0.5;
constexpr double kCutting = 1;
constexpr double kEmptyDynamic = 0.001;

// The part of the node's partitioned GPUs that is free once the slots are taken.
double FreePart(const MigSpec& spec, const MigUse& use, std::span<const MigSlot> slots) {
  MigUse after = use;
  for (const MigSlot& slot : slots) after.Take(slot);
  const int units = spec.product->memory_units();
  int taken = 0;
  for (const MigSet set : after.taken()) taken += std::popcount(spec.product->UnitsOf(set));
  return 1 - taken / static_cast<double>(units * std::ssize(spec.gpus));
}

double CostOf(const Node& node, const MigSlices& ask) {
  const MigSpec& spec = *node.spec().mig;
  if (spec.gpus.empty()) return 0;  // devices with several users, or each device a GPU
  const auto plan = PlanMig(spec, node.mig(), ask);
  if (!plan || plan->slots.empty()) return 0;
  const double free = FreePart(spec, node.mig(), plan->slots);
  return spec.dynamic ? kCutting + plan->loss_gpus + kEmptyDynamic * free : kEmptyStatic * free;
}

}  // namespace

void LinkQuality::Score(const Node& node, const RequestShape& shape,
                        std::span<const DeviceChoice> choices, std::span<int> scores) const {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = AllAlike(node, shape)
                    ? kMaxScore
                    : node.spec().links.quality(choices[i].gpus) * kMaxScore / kPerfect;
  }
}

void NumaLocality::Score(const Node& node, const RequestShape& shape,
                         std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const bool alike = AllAlike(node, shape);
  const int least = alike ? 1 : node.spec().links.LeastSpan(shape.gpu_count());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const int used = alike ? 1 : node.spec().links.span(choices[i].gpus);
    scores[i] = kMaxScore * least / used;
  }
}

void MigPacking::Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice>,
                       std::span<int> scores) const {
  const double cost = shape.mig() == nullptr ? 0 : CostOf(node, *shape.mig());
  std::ranges::fill(scores, -static_cast<int>(std::lround(cost * kPointsPerGpu)));
}

}  // namespace berth
