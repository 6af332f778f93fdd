// SPDX-License-Identifier: Apache-2.0
//
// Surroundings: what a GPU of a machine has beside it, by its link matrix. Pure functions of it.
#pragma once

#include <vector>

#include "topology/gpu_mask.h"
#include "topology/links/link_matrix.h"

namespace berth {

// Each set has the GPU itself.
struct Surroundings {
  GpuMask fabric = 0;  // the GPUs that it has a fabric link to
  GpuMask root = 0;    // those under one PCIe root with it: no host bridge is between them
  GpuMask numa = 0;    // those of its NUMA group; all of the machine where the groups are unknown
  LinkType nic = LinkType::kUnknown;  // the best PCIe relation to a NIC; kUnknown without any
};

// By GPU. Tools hide the PCIe relation of two GPUs with NVLinks; such a pair is known to be under
// one root if a NIC is under one root with each of them.
std::vector<Surroundings> SurroundingsOf(const LinkMatrix& matrix);

}  // namespace berth
