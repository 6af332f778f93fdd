// SPDX-License-Identifier: Apache-2.0
//
// What NVIDIA's management library says of the machine: GPUs, NVLinks, PCIe relations, MIG devices.
// Every function may be missing or fail; what it would have said is not known then, and `problems`
// says so.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/facts/node_facts.h"
#include "topology/links/link_matrix.h"

namespace berth::node {

// FoundMachine: what a driver says of a machine, before it becomes facts (probe.h).

struct FoundGpu {
  std::string id;    // as the device plugin calls it; "" = the driver does not say
  std::string pci;   // "0000:17:00.0"; "" = not known
  int number = 0;    // of the driver: MIG devices are counted by it
  bool mig = false;  // is given in MIG devices
  // As the driver says them, of the whole GPU; "" or 0 = it does not.
  std::string product = {};  // "NVIDIA A100-SXM4-80GB"
  std::int64_t memory_mib = 0;
  int capability = 0;  // CapabilityNumber
};

struct FoundMachine {
  std::vector<FoundGpu> gpus;  // in the driver's order
  // A pair of `gpus`, row-major: what the driver says of it. Empty: it says nothing of links.
  std::vector<Link> links;
  std::vector<MigFact> mig;  // .gpu is FoundGpu::number
  bool mig_unknown = false;  // some device does not say enough: `mig` lacks it
  std::string product;       // of the GPUs, as the driver names it: "NVIDIA A100-SXM4-80GB"
  std::vector<std::string> problems;  // for people

  [[nodiscard]] Link& link(std::size_t a, std::size_t b) { return links[a * gpus.size() + b]; }
};

// NvmlLibrary: the functions of NVIDIA's management library that the probe calls, found at run time
// because the library comes with the driver. A function that a driver lacks is nullptr. The
// declarations are our own, by the documented binary interface of NVML.

struct NvmlDeviceHandle;       // opaque
struct NvmlGpuInstanceHandle;  // opaque
using NvmlDevice = NvmlDeviceHandle*;
using NvmlGpuInstance = NvmlGpuInstanceHandle*;
using NvmlReturn = int;

inline constexpr NvmlReturn kNvmlSuccess = 0, kNvmlInvalidArgument = 2, kNvmlNotSupported = 3,
                            kNvmlNotFound = 6;

struct NvmlPci {
  char old_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct NvmlGpuInstanceInfo {
  NvmlDevice device;
  unsigned id, profile, start, size;
};

struct NvmlAttributes {
  unsigned multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices,
      compute_slices;
  unsigned long long memory_mib;
};

struct NvmlMemory {
  unsigned long long total, free, used;  // bytes
};

struct NvmlLibrary {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  const char* (*error_text)(NvmlReturn) = nullptr;
  NvmlReturn (*count)(unsigned*) = nullptr;
  NvmlReturn (*device)(unsigned, NvmlDevice*) = nullptr;
  NvmlReturn (*uuid)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*name)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*pci)(NvmlDevice, NvmlPci*) = nullptr;
  NvmlReturn (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  NvmlReturn (*capability)(NvmlDevice, int*, int*) = nullptr;
  NvmlReturn (*ancestor)(NvmlDevice, NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*link_state)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*link_remote_pci)(NvmlDevice, unsigned, NvmlPci*) = nullptr;
  NvmlReturn (*link_remote_type)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*mig_mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*mig_most)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*mig_device)(NvmlDevice, unsigned, NvmlDevice*) = nullptr;
  NvmlReturn (*gpu_instance_id)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*gpu_instance)(NvmlDevice, unsigned, NvmlGpuInstance*) = nullptr;
  NvmlReturn (*gpu_instance_info)(NvmlGpuInstance, NvmlGpuInstanceInfo*) = nullptr;
  NvmlReturn (*attributes)(NvmlDevice, NvmlAttributes*) = nullptr;

  // "Driver Not Loaded", or "error 9".
  [[nodiscard]] std::string ErrorText(NvmlReturn code) const;
};

// Looks below driver_root ("" = only where the linker looks), then where the linker looks. The
// library stays loaded. Error: kNotFound with what the linker said, kUnavailable if it lacks a
// function without which nothing can be asked.
Result<NvmlLibrary> LoadNvml(const std::string& driver_root);

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
