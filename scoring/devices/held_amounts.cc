// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/held_amounts.h"

#include <algorithm>
#include <bit>
#include <variant>

namespace berth {

Amounts AmountsHeld(const PodRecord& pod) {
  const auto grants = static_cast<std::int64_t>(pod.placement.grants.size());
  const std::int64_t gpus =
      std::max<std::int64_t>({grants, pod.pod.shape.gpu_count(), pod.placement.places});
  return {gpus, pod.placement.cpu_milli, pod.placement.memory_bytes, pod.placement.ephemeral_bytes};
}

Amounts AmountsMissing(const Node& node, const RequestShape& shape, GpuMask free_gpus) {
  Amounts missing{};
  if (std::holds_alternative<WholeGpus>(shape.gpus) && !node.spec().mig.known()) {
    const bool in_places = node.spec().places.count > 0;
    const int free = in_places ? node.free_places() : std::popcount(free_gpus);
    missing[0] = shape.gpu_count() - free;
  }
  const auto lacks = [](std::int64_t wanted, std::int64_t free) {
    return wanted > 0 ? wanted - free : 0;
  };
  missing[1] = lacks(shape.cpu_milli, node.free_cpu_milli());
  missing[2] = lacks(shape.memory_bytes, node.free_memory_bytes());
  missing[3] = lacks(shape.ephemeral_bytes, node.free_ephemeral_bytes());
  for (std::int64_t& amount : missing) amount = std::max<std::int64_t>(amount, 0);
  return missing;
}

}  // namespace berth
