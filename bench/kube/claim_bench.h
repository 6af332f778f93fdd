// SPDX-License-Identifier: Apache-2.0
//
// Devices of DRA: what the slices of a large cluster take in memory, and how long Berth takes to
// choose for a claim there, beside the writes. The API server is a map in this process that answers
// at once.
#pragma once

#include <cstddef>

namespace berth::kube_bench {

struct ClaimSize {
  std::size_t nodes = 0;    // 0: it is not measured
  bool partitioned = true;  // their GPUs can be partitioned: 26 devices more for each
  int pods = 1000;
};

// Prints. Returns the exit status: 1 if a claim was not allocated.
int MeasureClaims(const ClaimSize& size);

}  // namespace berth::kube_bench
