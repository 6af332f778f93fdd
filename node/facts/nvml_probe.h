// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's management library says of the machine: GPUs, NVLinks, PCIe relations, MIG devices.
// Every function may be missing or fail; what it would have said is not known then, and `problems`
// says so.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "node/facts/found_machine.h"
#include "node/facts/nvml_library.h"

namespace berth::node {

// Error: kUnavailable where the library starts or lists no GPUs at all, with its own words.
Result<FoundMachine> ProbeNvml(const NvmlLibrary& nvml);

// The MIG devices of one GPU, as NVML lists them.

// Appends the devices of the GPU with that number, at most kMostMigDevices, and what could not be
// found out. Devices that are a part of a GPU instance are left out: no resource names them.
void FindMigDevices(const NvmlLibrary& nvml, NvmlDevice gpu, int number, FoundMachine& found);

// The profile in the name of a MIG device: "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb". ""
// where there is none.
std::string ProfileInName(std::string_view name);

// The profile as the driver names it, from what the device has: compute slices, and memory in
// eighths of the GPU's, in whole GiB.
std::string ProfileOf(unsigned gpu_slices, unsigned long long memory_mib,
                      unsigned long long gpu_memory_mib);

}  // namespace berth::node
