// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's management library says of the machine: GPUs, NVLinks, PCIe relations, MIG devices.
// Every function may be missing or fail; what it would have said is not known then, and `problems`
// says so.
#pragma once

#include "base/result.h"
#include "node/facts/found_machine.h"
#include "node/facts/nvml_library.h"

namespace berth::node {

// Error: kUnavailable where the library starts or lists no GPUs at all, with its own words.
Result<FoundMachine> ProbeNvml(const NvmlLibrary& nvml);

}  // namespace berth::node
