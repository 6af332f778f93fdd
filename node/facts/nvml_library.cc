// SPDX-License-Identifier: Apache-2.0
#include "node/facts/nvml_library.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>

#include "base/text.h"

namespace berth::node {
namespace {

constexpr std::string_view kName = "libnvidia-ml.so.1";
constexpr std::size_t kMostErrorBytes = 200;

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
  FindLinksAndMig(library, nvml);
  if (nvml.init == nullptr || nvml.count == nullptr || nvml.device == nullptr ||
      nvml.uuid == nullptr) {
    return Fail(Errc::kUnavailable, "the library lacks functions to list GPUs");
  }
  return nvml;
}

}  // namespace berth::node
