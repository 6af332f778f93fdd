// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/held_amounts.h"

#include <algorithm>

namespace berth {

Amounts AmountsHeld(const PodRecord& pod) {
  const auto grants = static_cast<std::int64_t>(pod.placement.grants.size());
  const std::int64_t gpus =
      std::max<std::int64_t>({grants, pod.pod.shape.gpu_count(), pod.placement.places});
  return {gpus, pod.placement.cpu_milli, pod.placement.memory_bytes, pod.placement.ephemeral_bytes};
}

}  // namespace berth
