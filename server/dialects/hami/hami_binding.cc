// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_binding.h"

#include <algorithm>
#include <cstdint>

#include "base/cleanup.h"
#include "cluster/node/mig_use.h"
#include "server/dialects/hami/hami_mig.h"
#include "server/dialects/vgpu/vgpu_devices.h"
#include "server/kube/write/api_binder.h"
#include "server/wire/json/strict_json.h"

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

std::vector<VgpuDevice> AsVgpu(const std::vector<Device>& devices, int slices_of_gpu) {
  std::vector<VgpuDevice> all;
  for (const Device& device : devices) {
    all.push_back({device.container, device.uuid, device.row.memory_mib,
                   device.row.profile.compute_slices * kCoresPerGpu / slices_of_gpu});
  }
  return all;
}

std::string Segments(const std::vector<VgpuDevice>& devices, int containers) {
  std::string out;
  for (int container = 0; container < containers; ++container) {
    out += VgpuSegment(devices, container) + ";";
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
  if (!placement.grants.empty() && node.share_agent == kHamiAgent) return true;
  return !placement.mig.empty() && node.mig.known() && node.mig->agent == kHamiAgent;
}

Annotations HamiAnnotations(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                            WallTime now) {
  std::vector<VgpuDevice> given = VgpuDevicesOf(pod, placement, node);
  std::string mig;
  if (!placement.mig.empty()) {
    const std::vector<Device> devices = DevicesOf(pod, placement, *node.mig);
    given = AsVgpu(devices, node.mig->product->compute_slices());
    mig = Allocations(devices);
  }
  const std::string segments = Segments(given, pod.container_count);
  const std::string time = std::to_string(std::chrono::system_clock::to_time_t(now));
  Annotations all = {{"hami.io/vgpu-node", placement.node},
                     {"hami.io/vgpu-time", time},
                     {"hami.io/vgpu-devices-to-allocate", segments},
                     {std::string(kHamiDevicesAnnotation), segments},
                     {"hami.io/bind-phase", "allocating"},
                     {"hami.io/bind-time", time}};
  if (!mig.empty()) all.emplace_back(kHamiMigAnnotation, std::move(mig));
  return all;
}

Status HamiBinds::AroundBind(const BindOrder& order, const std::function<Status()>& bind) {
  if (!SpeaksHami(order.placement, order.node)) return bind();
  const std::string pod = order.pod.id.full_name();
  {
    const MutexLock lock(mutex_);
    binding_.insert(pod);
  }
  const Cleanup leave([&] {
    const MutexLock lock(mutex_);
    binding_.erase(binding_.find(pod));
  });
  return BindUnderLock(order, bind);
}

bool HamiBinds::IsBinding(const std::string& full_name) const {
  const MutexLock lock(mutex_);
  const auto is_it = [&](const Locked& left) { return left.pod.full_name() == full_name; };
  return binding_.contains(full_name) || std::ranges::any_of(left_, is_it);
}

Status HamiBinds::BindUnderLock(const BindOrder& order, const std::function<Status()>& bind) {
  const PodId& id = order.pod.id;
  HamiNodeLock::Held held{order.node.name};
  Status bound = lock_.Take(id, order.deadline, held);
  if (bound) {
    {
      const MutexLock lock(mutex_);  // this bind now has the lock that an earlier one left
      std::erase_if(
          left_, [&](const Locked& left) { return left.pod == id && left.held.node == held.node; });
    }
    bound = bind();
  }
  if (!bound && !held.text.empty()) (void)LetGo({id, std::move(held)});  // else Upkeep does
  return bound;
}

bool HamiBinds::LetGo(Locked locked) {
  const Result<PodTruth> truth = kube::FindPod(write_.client, rules_, locked.pod);
  const bool known = truth || truth.error().code == Errc::kNotFound;
  if (truth && truth->placement && truth->placement->node == locked.held.node) return true;
  if (known && lock_.Release(locked.held)) return true;
  const MutexLock lock(mutex_);
  left_.push_back(std::move(locked));
  return false;
}

void HamiBinds::Upkeep() {
  std::vector<Locked> left;
  {
    const MutexLock lock(mutex_);
    left.swap(left_);
  }
  auto next = left.begin();
  while (next != left.end() && LetGo(std::move(*next++))) {
  }
  const MutexLock lock(mutex_);
  left_.insert(left_.end(), next, left.end());
}

}  // namespace berth::dialects
