// SPDX-License-Identifier: Apache-2.0
//
// What every set of a machine's GPUs is worth to pods that talk in a pattern.
#pragma once

#include <vector>

#include "topology/links/link_ask.h"
#include "topology/links/wiring.h"

namespace berth {

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
