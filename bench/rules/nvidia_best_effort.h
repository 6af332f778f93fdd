// SPDX-License-Identifier: Apache-2.0
//
// The search of go-gpuallocator's best-effort policy, for choice_policy.h.
#pragma once

#include <vector>

#include "bench/rules/choice_policy.h"

namespace berth::replay {

// scores: gpus x gpus. Returns 0 where no partition has a set with all required GPUs.
//
// The free GPUs are padded to a multiple of the size; a set holds all pads or none. The original
// enumerates partitions in lexicographic order and keeps the first best one, which is found here by
// recursion over what remains, memoised: for each remaining set the first best choice of the set
// with its lowest GPU. Required GPUs have to be together in a set without pads.
// Requires: 1 <= size <= popcount(free) <= kMaxPartitionGpus, required within free.
GpuMask NvidiaBestEffort(const std::vector<int>& scores, int gpus, const ChoiceRequest& request);

}  // namespace berth::replay
