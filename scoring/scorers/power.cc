// SPDX-License-Identifier: Apache-2.0
#include "scoring/scorers/power.h"

#include <algorithm>
#include <limits>

#include "scoring/node_watts.h"
#include "topology/gpu_power.h"

namespace berth {
namespace {

int MostThatAGpuAdds() {
  int most = 0;
  for (const GpuPower& row : GpuPowerCatalogue()) {
    most = std::max(most, row.busy_watts - row.idle_watts);
  }
  return most;
}

// For a pod on a node without known watts.
int UnknownWatts(const RequestShape& shape) {
  static const int of_gpu = MostThatAGpuAdds();
  return shape.wants_gpu() ? of_gpu * std::max(shape.gpu_count(), 1) : 0;
}

}  // namespace

void Power::Score(const Node& node, const RequestShape& shape,
                  std::span<const DeviceChoice> choices, std::span<int> scores) const {
  const int unknown = UnknownWatts(shape);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    scores[i] = -OwnAddedWatts(node, shape, choices[i]).value_or(unknown);
  }
}

void Pwr::Score(const Node& node, const RequestShape& shape, std::span<const DeviceChoice> choices,
                std::span<int> scores) const {
  const int unknown = UnknownWatts(shape);
  int least = std::numeric_limits<int>::max();
  for (const DeviceChoice& choice : choices) {
    least = std::min(least, AddedWatts(node, shape, choice).value_or(unknown));
  }
  std::ranges::fill(scores, -least);
}

}  // namespace berth
