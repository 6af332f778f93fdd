// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/placement.h"

#include <algorithm>

namespace berth {
namespace {

// A container's part of `amount` if it asks for `part` of `whole` and the containers before it
// asked for `before`: rounded so that consecutive parts add up to the whole.
std::int64_t Cut(std::int64_t amount, std::int64_t whole, std::int64_t before, std::int64_t part) {
  return amount * (before + part) / whole - amount * before / whole;
}

// A container's part of the pod's share of a GPU; an amount that it left open follows the share in
// proportion.
DeviceGrant PartOfShare(const GpuShare& part, const GpuShare& whole, const GpuShare& before,
                        DeviceGrant grant) {
  const bool has_compute = whole.milli > 0 && part.milli > 0;
  const auto by_memory = [&](std::int64_t amount) {
    return whole.memory_mib > 0
               ? Cut(amount, whole.memory_mib, before.memory_mib, part.memory_mib)
               : Cut(amount, whole.memory_milli, before.memory_milli, part.memory_milli);
  };
  const bool says_memory = whole.memory_mib > 0 || whole.memory_milli > 0;
  if (!has_compute && !says_memory) return grant;
  const int milli = has_compute ? part.milli : static_cast<int>(by_memory(grant.milli));
  if (whole.memory_mib > 0) {
    grant.memory_mib = part.memory_mib;
  } else if (says_memory) {
    grant.memory_mib = by_memory(grant.memory_mib);
  } else {
    grant.memory_mib = Cut(grant.memory_mib, whole.milli, before.milli, part.milli);
  }
  grant.milli = milli;
  return grant;
}

}  // namespace

GpuMask GpusAmong(std::span<const DeviceGrant> grants, std::size_t gpus) {
  GpuMask among = 0;
  for (const DeviceGrant& grant : grants) {
    const bool is_there = grant.gpu >= 0 && static_cast<std::size_t>(grant.gpu) < gpus;
    if (is_there) among |= GpuBit(grant.gpu);
  }
  return among;
}

Placement WithoutDevices(std::string node, const RequestShape& shape) {
  Placement placement{std::move(node), shape.cpu_milli, shape.memory_bytes, {}};
  placement.ephemeral_bytes = shape.ephemeral_bytes;
  return placement;
}

GpuShare AskedOf(const DeviceGrant& grant, const RequestShape& shape) {
  return shape.may_divide() ? SumOf(shape.gpu_steps, grant.containers)
                            : std::get<GpuShare>(shape.gpus);
}

std::vector<std::pair<std::string, std::vector<DeviceGrant>>> GrantsByContainer(
    const PodRequest& pod, const Placement& placement) {
  std::vector<std::pair<std::string, std::vector<DeviceGrant>>> result;
  std::size_t next = 0;
  std::vector<GpuShare> before(placement.grants.size());  // by grant
  for (std::size_t at = 0; at < pod.containers.size(); ++at) {
    const ContainerAsk& container = pod.containers[at];
    std::vector<DeviceGrant> grants;
    const auto* whole = std::get_if<WholeGpus>(&container.gpus);
    const auto* mig = std::get_if<MigSlices>(&container.gpus);
    if (whole != nullptr || mig != nullptr) {
      // GPUs for a pod that asks for MIG devices: those of a node that counts each as a GPU.
      const int count = whole != nullptr ? whole->count : mig->count();
      const std::size_t to =
          std::min(next + static_cast<std::size_t>(count), placement.grants.size());
      for (std::size_t i = next; i < to; ++i) grants.push_back(placement.grants[i]);
      if (!container.ends_first) next = to;
    } else if (const auto* part = std::get_if<GpuShare>(&container.gpus)) {
      for (std::size_t i = 0; i < placement.grants.size() && pod.shape.is_share(); ++i) {
        DeviceGrant grant = placement.grants[i];
        const GpuShare all = AskedOf(grant, pod.shape);
        const ContainerMask with = std::exchange(grant.containers, 0);
        if (with != 0 && (with >> at & 1) == 0) continue;
        grants.push_back(PartOfShare(*part, all, before[i], std::move(grant)));
        if (!container.ends_first) before[i] = Plus(before[i], *part);
      }
    }
    if (!grants.empty()) result.emplace_back(container.name, std::move(grants));
  }
  return result;
}

std::vector<std::pair<std::string, std::vector<MigGrant>>> MigByContainer(
    const PodRequest& pod, const Placement& placement) {
  std::vector<std::pair<std::string, std::vector<MigGrant>>> result;
  std::vector<MigGrant> left = placement.mig;
  for (const ContainerAsk& container : pod.containers) {
    const auto* mig = std::get_if<MigSlices>(&container.gpus);
    if (mig == nullptr) continue;
    std::vector<MigGrant> grants;
    for (const MigWant& want : mig->wants) {
      int more = want.count;
      for (const MigGrant& grant : left) {
        if (more > 0 && (!want.profile || grant.profile == *want.profile)) {
          grants.push_back(grant);
          --more;
        }
      }
    }
    std::ranges::sort(grants);
    if (!container.ends_first) {
      for (const MigGrant& grant : grants) left.erase(std::ranges::find(left, grant));
    }
    if (!grants.empty()) result.emplace_back(container.name, std::move(grants));
  }
  return result;
}

std::vector<std::pair<std::string, std::vector<int>>> PlacesByContainer(
    const PodRequest& pod, const Placement& placement) {
  std::vector<std::pair<std::string, std::vector<int>>> result;
  std::span<const int> left = placement.places_on;
  for (const ContainerAsk& container : pod.containers) {
    const auto* const whole = std::get_if<WholeGpus>(&container.gpus);
    if (whole == nullptr || left.empty()) continue;
    const auto own = left.first(std::min(left.size(), static_cast<std::size_t>(whole->count)));
    result.emplace_back(container.name, std::vector<int>(own.begin(), own.end()));
    if (!container.ends_first) left = left.subspan(own.size());
  }
  return result;
}

PodDevices DevicesOf(const Placement& placement) {
  return {placement.grants, placement.mig, placement.places_on};
}

void SetDevices(PodDevices devices, Placement& placement) {
  placement.grants = std::move(devices.grants);
  placement.mig = std::move(devices.mig);
  placement.places_on = std::move(devices.places_on);
}

bool AreAsPlanned(const PodDevices& planned, const PodDevices& has) {
  const auto has_it = [&has](const MigGrant& grant) {
    return !grant.exact() || std::ranges::find(has.mig, grant) != has.mig.end();
  };
  return (planned.places_on.empty() || planned.places_on == has.places_on) &&
         (planned.grants.empty() || std::ranges::equal(planned.grants, has.grants, {},
                                                       &DeviceGrant::gpu, &DeviceGrant::gpu)) &&
         std::ranges::all_of(planned.mig, has_it);
}

}  // namespace berth
