// SPDX-License-Identifier: Apache-2.0
#include "node/facts/nvml_mig.h"

#include <algorithm>
#include <array>
#include <utility>

#include "topology/mig/mig_profile.h"

namespace berth::node {
namespace {

constexpr unsigned long long kBytesPerMib = 1ULL << 20, kMibPerGib = 1024, kEighths = 8;

std::string ProfileOfDevice(const NvmlLibrary& nvml, NvmlDevice gpu, NvmlDevice device) {
  std::array<char, 128> text{};
  if (nvml.name != nullptr && nvml.name(device, text.data(), text.size() - 1) == kNvmlSuccess) {
    if (std::string profile = ProfileInName(text.data()); !profile.empty()) return profile;
  }
  NvmlAttributes has{};
  NvmlMemory memory{};
  if (nvml.attributes == nullptr || nvml.memory == nullptr ||
      nvml.attributes(device, &has) != kNvmlSuccess || has.gpu_slices != has.compute_slices ||
      nvml.memory(gpu, &memory) != kNvmlSuccess) {
    return "";
  }
  return ProfileOf(has.gpu_slices, has.memory_mib, memory.total / kBytesPerMib);
}

// The first memory slice of the device's GPU instance; -1 = not known.
int StartOf(const NvmlLibrary& nvml, NvmlDevice gpu, NvmlDevice device) {
  unsigned id = 0;
  NvmlGpuInstance instance = nullptr;
  NvmlGpuInstanceInfo info{};
  if (nvml.gpu_instance_id == nullptr || nvml.gpu_instance == nullptr ||
      nvml.gpu_instance_info == nullptr || nvml.gpu_instance_id(device, &id) != kNvmlSuccess ||
      nvml.gpu_instance(gpu, id, &instance) != kNvmlSuccess ||
      nvml.gpu_instance_info(instance, &info) != kNvmlSuccess || info.start > kMostMigDevices) {
    return -1;
  }
  return static_cast<int>(info.start);
}

}  // namespace

std::string ProfileInName(std::string_view name) {
  constexpr std::string_view kBefore = "MIG ";
  const std::size_t at = name.rfind(kBefore);
  if (at == std::string_view::npos) return "";
  const auto profile = ParseMigProfile(name.substr(at + kBefore.size()));
  return profile && profile->instance_slices == 0 ? MigProfileName(*profile) : "";
}

std::string ProfileOf(unsigned gpu_slices, unsigned long long memory_mib,
                      unsigned long long gpu_memory_mib) {
  if (gpu_slices == 0 || memory_mib == 0 || gpu_memory_mib < memory_mib) return "";
  const unsigned long long eighths = (memory_mib * kEighths + gpu_memory_mib / 2) / gpu_memory_mib;
  const unsigned long long gib = (gpu_memory_mib + kMibPerGib - 1) / kMibPerGib;
  const unsigned long long rounded = (eighths * gib + kEighths / 2) / kEighths;
  return std::to_string(gpu_slices) + "g." + std::to_string(rounded) + "gb";
}

void FindMigDevices(const NvmlLibrary& nvml, NvmlDevice gpu, int number, FoundMachine& found) {
  const auto problem = [&](const std::string& text) {
    found.mig_unknown = true;
    if (found.problems.size() >= kMostProblems) return;
    found.problems.push_back("NVML: MIG devices of GPU " + std::to_string(number) + ": " + text);
  };
  unsigned most = 0;
  if (nvml.mig_most == nullptr || nvml.mig_device == nullptr ||
      nvml.mig_most(gpu, &most) != kNvmlSuccess) {
    return problem("this driver does not list them");
  }
  most = std::min(most, static_cast<unsigned>(kMostMigDevices));
  for (unsigned i = 0; i < most; ++i) {
    NvmlDevice device = nullptr;
    if (nvml.mig_device(gpu, i, &device) != kNvmlSuccess) continue;  // a place that is free
    std::array<char, 96> id{};
    const bool named = nvml.uuid(device, id.data(), id.size() - 1) == kNvmlSuccess;
    MigFact fact{number, ProfileOfDevice(nvml, gpu, device), StartOf(nvml, gpu, device), id.data()};
    if (!named || fact.profile.empty() || fact.start < 0) {
      problem("device " + std::to_string(i) + " does not say its id, profile or place");
      continue;
    }
    found.mig.push_back(std::move(fact));
  }
}

}  // namespace berth::node
