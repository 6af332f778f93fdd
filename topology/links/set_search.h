// SPDX-License-Identifier: Apache-2.0
//
// A good set of GPUs where the machine has too many for a table of all sets (set_table.h).
//
// Maximises the total bandwidth of the set, then the smallest NUMA span: from every GPU a set is
// grown by the GPU that adds most, and the best of them improved by swaps. Not exact. Bounded: at
// most F*F*k lookups to grow and 2k*F*k to swap, for k of F free GPUs (1.5 million for 32 of 64).
#pragma once

#include <vector>

#include "topology/links/gpu_links.h"
#include "topology/links/wiring.h"

namespace berth {

// `size` GPUs of `free` that include `required`; 0 where there are none. One GPU: the one with the
// least bandwidth to the rest. Requires: both are sets of the wiring's GPUs.
GpuMask SearchSet(const Wiring& wiring, GpuMask free, int size, GpuMask required = 0);

// Total bandwidth between the GPUs of a set, in MB/s.
std::int64_t AggregateOf(const Wiring& wiring, GpuMask set);

// What every set of a machine's GPUs is worth to pods that talk in a pattern.

inline constexpr int kMaxPatternGpus = 16;  // of the machine
inline constexpr int kMaxGridGpus = 8;

// By set, in MB/s: the worst link that the pattern has to use where the GPUs take its places in the
// best way. Exact.
//
//   kAllToAll  every two of them
//   kPairs     a perfect matching; of an odd number one GPU is left over
//   kGrid      a mesh of 2 x k/2; 0 for an odd number
//
// Empty, that is nothing to tell sets apart by: for kAny and kRing (SetTable has the ring), above
// kMaxPatternGpus GPUs, and for kGrid above kMaxGridGpus.
std::vector<int> PatternScores(const Wiring& wiring, LinkPattern pattern);

}  // namespace berth
