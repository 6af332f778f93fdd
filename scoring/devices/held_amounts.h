// SPDX-License-Identifier: Apache-2.0
//
// HeldAmounts: how much of what nodes are short of a pod holds. Sums of it are an upper bound of
// what comes free when pods leave. Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cluster/node/node.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth {

// Of GPUs (or places), CPU, memory, disk.
using Amounts = std::array<std::int64_t, 4>;

// At most so much of each is free when the pod has ended.
Amounts AmountsHeld(const PodRecord& pod);

// What the node lacks of each; 0: nothing, or it cannot be counted. free_gpus: the GPUs of the node
// that count as free for the shape.
Amounts AmountsMissing(const Node& node, const RequestShape& shape, GpuMask free_gpus);

inline bool CoversAll(const Amounts& held, const Amounts& missing) {
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i] < missing[i]) return false;
  }
  return true;
}

}  // namespace berth
