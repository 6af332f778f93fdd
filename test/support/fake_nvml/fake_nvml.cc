// SPDX-License-Identifier: Apache-2.0
//
// A libnvidia-ml.so.1 with invented GPUs, for tests of what asks NVIDIA's library. The file that
// FAKE_NVML names describes the machine, a word and its numbers a line; it is read by nvmlInit:
//
//   gpu GPU-a 00000000:17:00.0      the next GPU
//   name NVIDIA A100-SXM4-80GB      of all of them
//   is 1 24564 8 9 NVIDIA GeForce RTX 4090   GPU 1: memory in MiB (0: it fails), compute
//                                   capability and name; 81920, 8 and 0 of the others
//   mode 2                          GPU 2 is in MIG mode
//   mig 2 4 1g.10gb MIG-x           a MIG device: GPU, first memory slice, profile, UUID
//   near 0 1 10                     the common ancestor of GPUs 0 and 1 (nvmlGpuTopologyLevel_t)
//   link 0 1 4                      four NVLinks between GPUs 0 and 1
//   switch 0 12                     twelve from GPU 0 to an NVSwitch
//   down 0 3                        NVLink 3 of GPU 0 is not active
//   fail nvmlDeviceGetUUID 15       the function returns that; "fail * 999" is all of them
//   hang nvmlInit_v2, crash nvmlInit_v2
//
// Built a second time with FAKE_NVML_OLD: without the functions for NVLinks, MIG and ancestors.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kOk = 0, kInvalid = 2, kNotSupported = 3, kNotFound = 6;
constexpr unsigned kAllFar = 50;

struct Link {
  int peer = -1;  // -1: a switch
  bool active = true;
};

struct Mig {
  std::string profile, uuid;
  unsigned start = 0, id = 0;
};

struct Device {
  std::string uuid, bus;
  bool mig_mode = false;
  std::string name;  // "": that of all
  unsigned long long memory_mib = 81920;
  int major = 8, minor = 0;
  std::vector<Link> links;
  std::vector<Mig> mig;
  int parent = -1;     // of a MIG device: its GPU
  std::size_t at = 0;  // of a MIG device: its place in the GPU's list
};

struct Machine {
  std::string name = "NVIDIA A100-SXM4-80GB";
  std::vector<Device> gpus, mig;
  std::map<std::pair<int, int>, unsigned> near;
  std::map<std::string, std::string> fails;  // function: "15", "hang", "crash"
};

Machine machine;

void ReadLinks(const std::string& word, std::istringstream& rest) {
  std::size_t a = 0, b = 0, count = 0;
  rest >> a >> b;
  if (word == "switch") {
    machine.gpus[a].links.resize(machine.gpus[a].links.size() + b);
  } else if (word == "down") {
    machine.gpus[a].links[b].active = false;
  } else {
    rest >> count;
    for (std::size_t i = 0; i < count; ++i) {
      machine.gpus[a].links.push_back({static_cast<int>(b)});
      machine.gpus[b].links.push_back({static_cast<int>(a)});
    }
  }
}

void ReadMig(std::istringstream& rest) {
  std::size_t gpu = 0;
  Mig mig;
  rest >> gpu >> mig.start >> mig.profile >> mig.uuid;
  std::vector<Mig>& all = machine.gpus[gpu].mig;
  mig.id = static_cast<unsigned>(all.size()) + 1;
  Device device;
  device.uuid = mig.uuid;
  device.parent = static_cast<int>(gpu);
  device.at = all.size();
  all.push_back(mig);
  machine.mig.push_back(device);
}

void ReadLine(const std::string& line) {
  std::istringstream rest(line);
  std::string word, text;
  rest >> word;
  if (word == "gpu") {
    Device device;
    rest >> device.uuid >> device.bus;
    machine.gpus.push_back(device);
  } else if (word == "name") {
    machine.name = line.substr(5);
  } else if (word == "is") {
    std::size_t gpu = 0;
    rest >> gpu;
    Device& device = machine.gpus[gpu];
    rest >> device.memory_mib >> device.major >> device.minor >> std::ws;
    std::getline(rest, device.name);
  } else if (word == "mode") {
    std::size_t gpu = 0;
    rest >> gpu;
    machine.gpus[gpu].mig_mode = true;
  } else if (word == "mig") {
    ReadMig(rest);
  } else if (word == "near") {
    int a = 0, b = 0;
    unsigned level = 0;
    rest >> a >> b >> level;
    machine.near[{a, b}] = machine.near[{b, a}] = level;
  } else if (word == "link" || word == "switch" || word == "down") {
    ReadLinks(word, rest);
  } else if (word == "fail") {
    rest >> word >> text;
    machine.fails[word] = text;
  } else if (word == "hang" || word == "crash") {
    rest >> text;
    machine.fails[text] = word;
  }
}

void ReadMachine() {
  machine = Machine();
  const char* const path = std::getenv("FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  for (std::string line; std::getline(file, line);) ReadLine(line);
}

// What the function returns before it does anything; kOk: it does its work.
int Trouble(const char* function) {
  auto found = machine.fails.find(function);
  if (found == machine.fails.end()) found = machine.fails.find("*");
  if (found == machine.fails.end()) return kOk;
  if (found->second == "hang") {
    while (true) sleep(1);
  }
  if (found->second == "crash") std::abort();
  return std::atoi(found->second.c_str());
}

Device* DeviceOf(void* handle) { return static_cast<Device*>(handle); }

int IndexOf(const Device* device) { return static_cast<int>(device - machine.gpus.data()); }

int Copy(const std::string& text, char* out, unsigned size) {
  if (text.size() + 1 > size) return 7;  // insufficient size
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kOk;
}

struct Pci {
  std::array<char, 16> old_bus_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> bus_id;
};

void FillPci(const std::string& bus, Pci* pci) {
  *pci = Pci{};
  std::snprintf(pci->bus_id.data(), pci->bus_id.size(), "%s", bus.c_str());
}

}  // namespace

#define FAKE(name, ...)                                                    \
  extern "C" __attribute__((visibility("default"))) int name(__VA_ARGS__); \
  extern "C" int name(__VA_ARGS__) {                                       \
    if (const int trouble = Trouble(#name); trouble != kOk) return trouble;

// clang-format off
extern "C" __attribute__((visibility("default"))) int nvmlInit_v2();
extern "C" int nvmlInit_v2() { ReadMachine(); return Trouble("nvmlInit_v2"); }
FAKE(nvmlShutdown, void) return kOk; }
extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int code);
extern "C" const char* nvmlErrorString(int code) {
  return code == 9 ? "Driver Not Loaded" : code == 15 ? "GPU is lost" : code == 3 ? "Not Supported" : "Unknown Error";
}
FAKE(nvmlDeviceGetCount_v2, unsigned* count) *count = static_cast<unsigned>(machine.gpus.size()); return kOk; }
FAKE(nvmlDeviceGetHandleByIndex_v2, unsigned index, void** device)
  if (index >= machine.gpus.size()) return kInvalid;
  *device = &machine.gpus[index];
  return kOk; }
FAKE(nvmlDeviceGetUUID, void* device, char* text, unsigned size) return Copy(DeviceOf(device)->uuid, text, size); }
FAKE(nvmlDeviceGetName, void* handle, char* text, unsigned size)
  const Device* const device = DeviceOf(handle);
  if (device->parent < 0) {
    return Copy(device->name.empty() ? machine.name : device->name, text, size);
  }
  const Mig& mig = machine.gpus[static_cast<std::size_t>(device->parent)].mig[device->at];
  return Copy(machine.name + " MIG " + mig.profile, text, size); }
FAKE(nvmlDeviceGetPciInfo_v3, void* device, Pci* pci) FillPci(DeviceOf(device)->bus, pci); return kOk; }
#ifndef FAKE_NVML_OLD
FAKE(nvmlDeviceGetMemoryInfo, void* device, unsigned long long* memory)
  if (DeviceOf(device)->memory_mib == 0) return kNotSupported;
  memory[0] = DeviceOf(device)->memory_mib << 20;
  return kOk; }
FAKE(nvmlDeviceGetCudaComputeCapability, void* device, int* major, int* minor)
  *major = DeviceOf(device)->major;
  *minor = DeviceOf(device)->minor;
  return kOk; }
FAKE(nvmlDeviceGetTopologyCommonAncestor, void* a, void* b, unsigned* level)
  const auto found = machine.near.find({IndexOf(DeviceOf(a)), IndexOf(DeviceOf(b))});
  *level = found == machine.near.end() ? kAllFar : found->second;
  return kOk; }
FAKE(nvmlDeviceGetNvLinkState, void* handle, unsigned link, unsigned* active)
  const Device* const device = DeviceOf(handle);
  if (device->links.empty()) return kNotSupported;
  if (link >= device->links.size()) return kInvalid;
  *active = device->links[link].active ? 1 : 0;
  return kOk; }
FAKE(nvmlDeviceGetNvLinkRemotePciInfo_v2, void* handle, unsigned link, Pci* pci)
  const Device* const device = DeviceOf(handle);
  if (link >= device->links.size()) return kInvalid;
  const int peer = device->links[link].peer;
  FillPci(peer < 0 ? "00000000:C0:00.0" : machine.gpus[static_cast<std::size_t>(peer)].bus, pci);
  return kOk; }
FAKE(nvmlDeviceGetNvLinkRemoteDeviceType, void* handle, unsigned link, unsigned* type)
  *type = DeviceOf(handle)->links[link].peer < 0 ? 2 : 0;
  return kOk; }
FAKE(nvmlDeviceGetMigMode, void* device, unsigned* now, unsigned* pending)
  *now = *pending = DeviceOf(device)->mig_mode ? 1 : 0;
  return kOk; }
FAKE(nvmlDeviceGetMaxMigDeviceCount, void* device, unsigned* most) (void)device; *most = 7; return kOk; }
FAKE(nvmlDeviceGetMigDeviceHandleByIndex, void* gpu, unsigned index, void** device)
  for (Device& mig : machine.mig) {
    if (mig.parent == IndexOf(DeviceOf(gpu)) && mig.at == index) { *device = &mig; return kOk; }
  }
  return kNotFound; }
FAKE(nvmlDeviceGetGpuInstanceId, void* handle, unsigned* id)
  const Device* const device = DeviceOf(handle);
  *id = machine.gpus[static_cast<std::size_t>(device->parent)].mig[device->at].id;
  return kOk; }
FAKE(nvmlDeviceGetGpuInstanceById, void* gpu, unsigned id, void** instance)
  for (Mig& mig : DeviceOf(gpu)->mig) {
    if (mig.id == id) { *instance = &mig; return kOk; }
  }
  return kNotFound; }
FAKE(nvmlGpuInstanceGetInfo, void* instance, unsigned* info)
  info[4] = static_cast<Mig*>(instance)->start;  // after a pointer, the id and the profile
  return kOk; }
#endif
