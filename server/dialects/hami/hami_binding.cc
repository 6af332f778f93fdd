// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_binding.h"

#include <algorithm>
#include <cstdint>

#include "cluster/mig_use.h"
#include "server/dialects/hami/hami_mig.h"
#include "server/wire/strict_json.h"

namespace berth::dialects {
namespace {

using wire::Annotations;
using wire::Json;

constexpr int kCoresPerGpu = 100;

// One device of one container, as both texts have it.
struct Device {
  int container = 0;
  int index = 0;  // in the container
  const std::string& uuid;
  const MigRow& row;
  int start = 0;
};

std::vector<Device> DevicesOf(const PodRequest& pod, const Placement& placement,
                              const MigSpec& mig) {
  std::vector<Device> devices;
  for (const auto& [name, grants] : MigByContainer(pod, placement)) {
    const auto container = std::ranges::find(pod.containers, name, &ContainerAsk::name);
    int index = 0;
    for (const MigGrant& grant : grants) {
      const auto slot = SlotOf(mig, grant);
      if (container == pod.containers.end() || !slot) continue;
      const auto row = static_cast<std::size_t>(
          mig.product->placements()[static_cast<std::size_t>(slot->placement)].row);
      devices.push_back({container->index, index++, mig.gpus[slot->gpu].uuid,
                         mig.product->rows()[row], grant.start});
    }
  }
  return devices;
}

std::string Segments(const std::vector<Device>& devices, int containers, int slices_of_gpu) {
  std::string out;
  for (int container = 0; container < containers; ++container) {
    for (const Device& device : devices) {
      if (device.container != container) continue;
      const int cores = device.row.profile.compute_slices * kCoresPerGpu / slices_of_gpu;
      out += device.uuid + ",NVIDIA," + std::to_string(device.row.memory_mib) + "," +
             std::to_string(cores) + ":";
    }
    out += ';';
  }
  return out;
}

std::string Allocations(const std::vector<Device>& devices) {
  Json json = Json::array();
  for (const Device& device : devices) {
    json.push_back({{"containerIndex", device.container},
                    {"deviceIndex", device.index},
                    {"gpuUUID", device.uuid},
                    {"profile", MigProfileName(device.row.profile)},
                    {"placement", {{"start", device.start}, {"size", device.row.memory_units}}}});
  }
  return wire::JsonText(json);
}

}  // namespace

bool SpeaksHami(const Placement& placement, const NodeSpec& node) {
  return !placement.mig.empty() && node.mig.known() && node.mig->agent == kHamiAgent;
}

Annotations HamiAnnotations(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                            WallTime now) {
  const MigSpec& mig = *node.mig;
  const std::vector<Device> devices = DevicesOf(pod, placement, mig);
  const std::string segments =
      Segments(devices, pod.container_count, mig.product->compute_slices());
  const std::string time = std::to_string(std::chrono::system_clock::to_time_t(now));
  return {{"hami.io/vgpu-node", placement.node},
          {"hami.io/vgpu-time", time},
          {"hami.io/vgpu-devices-to-allocate", segments},
          {"hami.io/vgpu-devices-allocated", segments},
          {std::string(kHamiMigAnnotation), Allocations(devices)},
          {"hami.io/bind-phase", "allocating"},
          {"hami.io/bind-time", time}};
}

}  // namespace berth::dialects
