// SPDX-License-Identifier: Apache-2.0
//
// MPS by amounts: GPUs of NVIDIA's Multi-Process Service that are asked for by compute and memory
// instead of by places.
//
//   node  nvidia.com/mps-core     percent, 100 for each GPU; the GPUs are all alike
//         nvidia.com/mps-memory   GiB of all of them together
//   pod   nvidia.com/mps-core     percent of one GPU
//         nvidia.com/mps-memory   GiB of one GPU; either goes with the other where it is not said
//
// MPS keeps each client to its memory (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT) and serves kMpsClients of
// them on a GPU. An agent learns from berth.dev/devices, or from berth.dev/visible-devices, which
// GPU that is. (docs.nvidia.com/deploy/mps: client limits, pinned memory. No public source of an
// agent with these resources is known; the units are those of its users.)
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

inline constexpr int kMpsClients = 48;

std::unique_ptr<const wire::Dialect> MakeMps();

}  // namespace berth::dialects
