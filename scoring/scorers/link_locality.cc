// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/link_locality.h"

#include <algorithm>
#include <array>
#include <functional>

#include "topology/set_table.h"

namespace berth {
namespace {

bool AllAlike(const Node& node, const RequestShape& shape) {
  return shape.gpu_count() < 2 || !node.spec().links.known();
}

GpuMask Bit(int gpu) { return GpuMask{1} << gpu; }

// Of `size` GPUs of the machine: the largest groups hold the most.
int LeastSpan(const GpuLinks& links, int size) {
  const int gpus = links.matrix().gpu_count();
  std::array<int, kMaxGpus> members{};  // at the first GPU of each group
  for (int gpu = 0; gpu < gpus; ++gpu) {
    int first = 0;
    while (links.span(Bit(first) | Bit(gpu)) > 1) ++first;
    ++members[static_cast<std::size_t>(first)];
  }
  std::ranges::sort(members, std::greater<>());
  int span = 0;
  for (int held = 0; held < size; ++span) held += members[static_cast<std::size_t>(span)];
  return span;
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
  const int least = alike ? 1 : LeastSpan(node.spec().links, shape.gpu_count());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const int used = alike ? 1 : node.spec().links.span(choices[i].gpus);
    scores[i] = kMaxScore * least / used;
  }
}

}  // namespace berth
