// SPDX-License-Identifier: Apache-2.0
//
// Rails: in a rail-optimised fabric NIC i of every node meets on leaf switch i, so that GPUs of the
// same index talk without a spine. A group that takes k GPUs of each of its nodes should therefore
// take the same k indices everywhere. (NCCL's PXN path repairs only part of a mismatch.)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "topology/gpu_mask.h"

namespace berth {

struct RailChoice {
  GpuMask rails = 0;           // bit i = GPU i; 0 where no node has k
  std::size_t aligned = 0;     // nodes that get exactly these
  std::vector<GpuMask> nodes;  // what each node gives: k GPUs, or 0 where it has fewer free
};

// free: per node the GPUs that are free. The rails are the k GPU indices that are free on most
// nodes, the numerically lowest set among equals. A node on which one of them is taken gives as
// many of them as it can, and otherwise its lowest free GPUs. Exact up to 16 GPUs per node (one
// pass over all 65,536 sets); above that, rails are added one by one, each time the one that keeps
// most nodes. Requires: 1 <= k <= 64.
RailChoice AlignRails(std::span<const GpuMask> free, int k);

}  // namespace berth
