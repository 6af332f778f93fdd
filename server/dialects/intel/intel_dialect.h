// SPDX-License-Identifier: Apache-2.0
//
// How pods ask Intel's GPU Aware Scheduling for a part of a GPU, beside gpu.intel.com/i915 or
// gpu.intel.com/xe, per container:
//
//   1 GPU, millicores                 so many thousandths of its compute; 1000: the whole GPU
//   1 GPU, memory.max (bytes)         that much memory; compute goes with it
//   1 GPU, both                       both
//   several GPUs with either, tiles   refused: such parts are not Berth's to give
//
// They become shares on nodes of that resource. As no agent there learns which GPU was chosen, no
// node takes them unless shares that nobody carries out are allowed. (intel/platform-aware-
// scheduling, gpu-aware-scheduling/docs/usage.md.)
#pragma once

#include <memory>

#include "server/wire/pod/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeIntel();

}  // namespace berth::dialects
