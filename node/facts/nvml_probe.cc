// SPDX-License-Identifier: Apache-2.0
#include "node/facts/nvml_probe.h"

#include <dlfcn.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "cluster/values/node_constraints.h"
#include "node/facts/pci_tree.h"
#include "topology/mig/mig_product.h"

namespace berth::node {
namespace {

constexpr std::string_view kName = "libnvidia-ml.so.1";
constexpr std::size_t kMostErrorBytes = 200;
constexpr unsigned long long kBytesPerMib = 1ULL << 20, kMibPerGib = 1024, kEighths = 8;

// Below the root of a driver, or of the host: Debian, Red Hat, GKE, WSL, drivers in containers.
constexpr std::array<std::string_view, 9> kFolders = {"/usr/lib/x86_64-linux-gnu",
                                                      "/usr/lib/aarch64-linux-gnu",
                                                      "/usr/lib64",
                                                      "/usr/lib",
                                                      "/lib64",
                                                      "/lib",
                                                      "/usr/local/nvidia/lib64",
                                                      "/home/kubernetes/bin/nvidia/lib64",
                                                      ""};

void* OpenLibrary(const std::string& driver_root) {
  if (!driver_root.empty()) {
    for (const std::string_view folder : kFolders) {
      const std::string path = driver_root + std::string(folder) + "/" + std::string(kName);
      if (void* const found = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
    }
  }
  return dlopen(std::string(kName).c_str(), RTLD_NOW | RTLD_LOCAL);
}

// The first of the names that the library has.
template <class Function>
void Find(void* library, Function*& function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    if (function != nullptr) return;
  }
}

void FindLinksAndMig(void* library, NvmlLibrary& nvml) {
  Find(library, nvml.ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
  Find(library, nvml.link_state, {"nvmlDeviceGetNvLinkState"});
  Find(library, nvml.link_remote_pci,
       {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"});
  Find(library, nvml.link_remote_type, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  Find(library, nvml.mig_mode, {"nvmlDeviceGetMigMode"});
  Find(library, nvml.mig_most, {"nvmlDeviceGetMaxMigDeviceCount"});
  Find(library, nvml.mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  Find(library, nvml.gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
  Find(library, nvml.gpu_instance, {"nvmlDeviceGetGpuInstanceById"});
  Find(library, nvml.gpu_instance_info, {"nvmlGpuInstanceGetInfo"});
  Find(library, nvml.attributes, {"nvmlDeviceGetAttributes_v2"});
}

constexpr unsigned kRemoteGpu = 0, kRemoteSwitch = 2, kLinkActive = 1;

std::string BusOf(const NvmlPci& pci) {
  return PciAddress(std::string_view(pci.bus_id, strnlen(pci.bus_id, sizeof pci.bus_id)));
}

std::string NumberOf(std::size_t gpu) { return "GPU " + std::to_string(gpu); }

// nvmlGpuTopologyLevel_t.
LinkType RelationOf(unsigned level) {
  switch (level) {
    case 0:
      return LinkType::kBoard;
    case 10:
      return LinkType::kPix;
    case 20:
      return LinkType::kPxb;
    case 30:
      return LinkType::kPhb;
    case 40:
      return LinkType::kNode;
    case 50:
      return LinkType::kSys;
    default:
      return LinkType::kUnknown;
  }
}

class NvmlProbe {
 public:
  explicit NvmlProbe(const NvmlLibrary& nvml) : nvml_(nvml) {}

  Status FindGpus() {
    unsigned count = 0;
    if (const NvmlReturn code = nvml_.count(&count); code != kNvmlSuccess) {
      return Fail(Errc::kUnavailable, "count of GPUs: " + nvml_.ErrorText(code));
    }
    if (count > kMaxGpus) {
      Problem("want at most " + std::to_string(kMaxGpus) + " GPUs, got " + std::to_string(count) +
              ": none is described");
      return {};
    }
    for (unsigned number = 0; number < count; ++number) FindGpu(number);
    return {};
  }

  void FindLinks() {
    const std::size_t count = found_.gpus.size();
    if (count == 0) return;
    if (nvml_.link_state == nullptr) {
      return Problem("this driver does not say which NVLinks there are");
    }
    found_.links.assign(count * count, Link{});
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        found_.link(a, b).pcie = found_.link(b, a).pcie = Ancestor(a, b);
      }
    }
    if (!FindNvlinks()) found_.links.clear();
  }

  FoundMachine Take() && { return std::move(found_); }

 private:
  void Problem(std::string text) {
    if (found_.problems.size() < kMostProblems) found_.problems.push_back("NVML: " + text);
  }

  void FindGpu(unsigned number) {
    FoundGpu& gpu = found_.gpus.emplace_back();
    gpu.number = static_cast<int>(number);
    NvmlDevice device = nullptr;
    NvmlReturn code = nvml_.device(number, &device);
    std::array<char, 96> text{};
    if (code == kNvmlSuccess) code = nvml_.uuid(device, text.data(), text.size() - 1);
    devices_.push_back(code == kNvmlSuccess ? device : nullptr);
    if (code != kNvmlSuccess) return Problem(NumberOf(number) + ": " + nvml_.ErrorText(code));
    gpu.id = text.data();
    NvmlPci pci{};
    if (nvml_.pci != nullptr && nvml_.pci(device, &pci) == kNvmlSuccess) gpu.pci = BusOf(pci);
    FindKind(device, gpu);
    if (found_.product.empty()) found_.product = gpu.product;
    unsigned mode = 0, pending = 0;
    gpu.mig = nvml_.mig_mode != nullptr &&
              nvml_.mig_mode(device, &mode, &pending) == kNvmlSuccess && mode == 1;
    if (gpu.mig) FindMigDevices(nvml_, device, gpu.number, found_);
  }

  void FindKind(NvmlDevice device, FoundGpu& gpu) const {
    std::array<char, 96> name{};
    if (nvml_.name != nullptr && nvml_.name(device, name.data(), name.size() - 1) == kNvmlSuccess) {
      gpu.product = name.data();
    }
    NvmlMemory memory{};
    if (nvml_.memory != nullptr && nvml_.memory(device, &memory) == kNvmlSuccess) {
      gpu.memory_mib = static_cast<std::int64_t>(memory.total / kBytesPerMib);
    }
    int major = 0, minor = 0;
    const bool known = nvml_.capability != nullptr &&
                       nvml_.capability(device, &major, &minor) == kNvmlSuccess && major > 0;
    if (known) gpu.capability = CapabilityNumber({major, std::max(minor, 0)});
  }

  LinkType Ancestor(std::size_t a, std::size_t b) const {
    unsigned level = 0;
    if (nvml_.ancestor == nullptr || devices_[a] == nullptr || devices_[b] == nullptr ||
        nvml_.ancestor(devices_[a], devices_[b], &level) != kNvmlSuccess) {
      return LinkType::kUnknown;
    }
    return RelationOf(level);
  }

  // False: they are not known, of no pair.
  bool FindNvlinks() {
    const std::size_t count = found_.gpus.size();
    std::vector<int> to_gpu(count * count), to_switch(count);
    for (std::size_t gpu = 0; gpu < count; ++gpu) {
      if (devices_[gpu] == nullptr) continue;
      if (!CountNvlinks(gpu, to_gpu, to_switch)) return false;
    }
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = 0; b < count; ++b) {
        // What one end says counts: of a pair that is broken the other may say nothing.
        const int direct = std::max(to_gpu[a * count + b], to_gpu[b * count + a]);
        const int links = direct > 0 ? direct : std::min(to_switch[a], to_switch[b]);
        if (a == b || links == 0) continue;
        found_.link(a, b).fabric = LinkType::kNvlink;
        found_.link(a, b).fabric_links = static_cast<std::uint8_t>(std::min(links, kMaxNvlinks));
      }
    }
    return true;
  }

  // Counts the active NVLinks of a GPU by where they end.
  bool CountNvlinks(std::size_t gpu, std::vector<int>& to_gpu, std::vector<int>& to_switch) {
    for (unsigned number = 0; number < static_cast<unsigned>(kMaxNvlinks); ++number) {
      unsigned active = 0;
      const NvmlReturn code = nvml_.link_state(devices_[gpu], number, &active);
      if (code == kNvmlNotSupported || code == kNvmlInvalidArgument) continue;  // no such link
      if (code != kNvmlSuccess) {
        Problem(NumberOf(gpu) + ": state of NVLink " + std::to_string(number) + ": " +
                nvml_.ErrorText(code));
        return false;
      }
      if (active != kLinkActive) continue;
      NvmlPci pci{};
      const bool has_peer = nvml_.link_remote_pci != nullptr &&
                            nvml_.link_remote_pci(devices_[gpu], number, &pci) == kNvmlSuccess;
      const auto peer = has_peer ? PositionOf(BusOf(pci)) : std::nullopt;
      unsigned type = peer ? kRemoteGpu : kRemoteSwitch;  // drivers before 470 do not say it
      if (!peer && nvml_.link_remote_type != nullptr &&
          nvml_.link_remote_type(devices_[gpu], number, &type) != kNvmlSuccess) {
        type = kRemoteSwitch;
      }
      if (peer) {
        ++to_gpu[gpu * found_.gpus.size() + *peer];
      } else if (type == kRemoteSwitch) {
        ++to_switch[gpu];
      }
    }
    return true;
  }

  [[nodiscard]] std::optional<std::size_t> PositionOf(const std::string& pci) const {
    for (std::size_t i = 0; i < found_.gpus.size(); ++i) {
      if (!pci.empty() && found_.gpus[i].pci == pci) return i;
    }
    return std::nullopt;
  }

  const NvmlLibrary& nvml_;
  FoundMachine found_;
  std::vector<NvmlDevice> devices_;  // by position in found_.gpus; nullptr = does not answer
};

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

std::string NvmlLibrary::ErrorText(NvmlReturn code) const {
  const char* const text = error_text == nullptr ? nullptr : error_text(code);
  return text == nullptr ? "error " + std::to_string(code) : Shortened(text, kMostErrorBytes);
}

Result<NvmlLibrary> LoadNvml(const std::string& driver_root) {
  void* const library = OpenLibrary(driver_root);
  if (library == nullptr) {
    const char* const text = dlerror();
    return Fail(Errc::kNotFound, Shortened(text == nullptr ? "not found" : text, kMostErrorBytes));
  }
  NvmlLibrary nvml;
  Find(library, nvml.init, {"nvmlInit_v2", "nvmlInit"});
  Find(library, nvml.shutdown, {"nvmlShutdown"});
  Find(library, nvml.error_text, {"nvmlErrorString"});
  Find(library, nvml.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  Find(library, nvml.device, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  Find(library, nvml.uuid, {"nvmlDeviceGetUUID"});
  Find(library, nvml.name, {"nvmlDeviceGetName"});
  Find(library, nvml.pci, {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2"});
  Find(library, nvml.memory, {"nvmlDeviceGetMemoryInfo"});
  Find(library, nvml.capability, {"nvmlDeviceGetCudaComputeCapability"});
  FindLinksAndMig(library, nvml);
  if (nvml.init == nullptr || nvml.count == nullptr || nvml.device == nullptr ||
      nvml.uuid == nullptr) {
    return Fail(Errc::kUnavailable, "the library lacks functions to list GPUs");
  }
  return nvml;
}

Result<FoundMachine> ProbeNvml(const NvmlLibrary& nvml) {
  if (const NvmlReturn code = nvml.init(); code != kNvmlSuccess) {
    return Fail(Errc::kUnavailable, "start: " + nvml.ErrorText(code));
  }
  NvmlProbe probe(nvml);
  const Status listed = probe.FindGpus();
  if (listed) probe.FindLinks();
  if (nvml.shutdown != nullptr) nvml.shutdown();
  if (!listed) return tl::unexpected(listed.error());
  return std::move(probe).Take();
}

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
