// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/gpu_packing.h"

#include <algorithm>

namespace berth {
namespace {

int ScoreOne(const Node& node, const DeviceChoice& choice) {
  const auto idle = static_cast<int>(std::ranges::count_if(node.gpus(), &GpuFree::idle));
  const auto gpus = static_cast<int>(node.gpus().size());
  if (idle == gpus) return std::clamp(kMaxScore / 3 - idle, std::min(idle, kMaxScore), kMaxScore);
  int idle_taken = 0, free_percent = 0;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    if ((choice.gpus >> gpu & 1) == 0) continue;
    const GpuFree& free = node.gpus()[static_cast<std::size_t>(gpu)];
    idle_taken += free.idle() ? 1 : 0;
    free_percent += free.milli * 100 / kMilliPerGpu;
  }
  if (idle_taken > 0) return std::max(kMaxScore / 2 - idle_taken, kMaxScore / 3);
  return std::max(kMaxScore - free_percent / 10, kMaxScore / 2);
}

}  // namespace

void GpuPacking::Score(const Node& node, const RequestShape& shape,
                       std::span<const DeviceChoice> choices, std::span<int> scores) const {
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = shape.wants_gpu() ? ScoreOne(node, choices[i]) : 0;
  }
}

}  // namespace berth
