// SPDX-License-Identifier: Apache-2.0
#include "cluster/placement.h"

#include <algorithm>

namespace berth {
namespace {

// A container's part of the pod's share; what it left open follows the share in proportion.
DeviceGrant PartOfShare(const GpuShare& part, const GpuShare& whole, DeviceGrant grant) {
  if (whole.milli > 0 && part.milli > 0) {
    grant.memory_mib =
        whole.memory_mib > 0 ? part.memory_mib : grant.memory_mib * part.milli / whole.milli;
    grant.milli = part.milli;
  } else if (whole.memory_mib > 0) {
    grant.milli = static_cast<int>(grant.milli * part.memory_mib / whole.memory_mib);
    grant.memory_mib = part.memory_mib;
  }
  return grant;
}

}  // namespace

std::vector<std::pair<std::string, std::vector<DeviceGrant>>> GrantsByContainer(
    const PodRequest& pod, const Placement& placement) {
  std::vector<std::pair<std::string, std::vector<DeviceGrant>>> result;
  std::size_t next = 0;
  for (const ContainerAsk& container : pod.containers) {
    std::vector<DeviceGrant> grants;
    if (const auto* whole = std::get_if<WholeGpus>(&container.gpus)) {
      const std::size_t to =
          std::min(next + static_cast<std::size_t>(whole->count), placement.grants.size());
      for (std::size_t i = next; i < to; ++i) grants.push_back(placement.grants[i]);
      if (!container.ends_first) next = to;
    } else if (const auto* part = std::get_if<GpuShare>(&container.gpus)) {
      const auto* share = std::get_if<GpuShare>(&pod.shape.gpus);
      if (share != nullptr && !placement.grants.empty()) {
        grants.push_back(PartOfShare(*part, *share, placement.grants.front()));
      }
    }
    if (!grants.empty()) result.emplace_back(container.name, std::move(grants));
  }
  return result;
}

}  // namespace berth
