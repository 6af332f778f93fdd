// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/link_locality.h"

#include "topology/links/set_table.h"

namespace berth {
namespace {

bool AllAlike(const Node& node, const RequestShape& shape) {
  return shape.gpu_count() < 2 || !node.spec().links.known();
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

}  // namespace berth
