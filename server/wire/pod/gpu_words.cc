// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/gpu_words.h"

#include <algorithm>
#include <tuple>

#include "topology/gpu_vendor.h"

namespace berth::wire {

GpuWords::GpuWords(const std::vector<ResourceRule>& configured) {
  for (const ResourceRule& rule : configured) {
    configured_.try_emplace(rule.name,
                            GpuWord{{}, rule.meaning, UnitFactor(rule), GpuRank::kConfigured});
  }
  for (const ResourceRule& rule : BerthsOwnResources()) {
    known_.try_emplace(rule.name, GpuWord{{}, rule.meaning, UnitFactor(rule), GpuRank::kWhole});
  }
  for (const GpuVendor& vendor : GpuVendors()) {
    for (const GpuResource& resource : vendor.resources) {
      if (resource.family) continue;
      known_.try_emplace(std::string(resource.name),
                         GpuWord{resource.same_as, ResourceMeaning::kWholeGpus, 1,
                                 resource.part ? GpuRank::kPart : GpuRank::kWhole});
    }
  }
}

std::optional<GpuWord> GpuWords::Find(std::string_view resource) const {
  if (const auto found = configured_.find(resource); found != configured_.end()) {
    if (found->second.meaning == ResourceMeaning::kIgnored) return std::nullopt;
    return found->second;
  }
  if (resource.find('/') == std::string_view::npos) return std::nullopt;  // cpu, memory, pods, ...
  if (const auto found = known_.find(resource); found != known_.end()) return found->second;
  const GpuResource* const row = FindGpuResource(resource);
  if (row == nullptr) return std::nullopt;
  return GpuWord{{},
                 ResourceMeaning::kWholeGpus,
                 1,
                 IsPart(*row, resource) ? GpuRank::kPart : GpuRank::kWhole};
}

const DeviceCount* CountedOf(const std::vector<DeviceCount>& devices) {
  const DeviceCount* counted = nullptr;
  const auto key = [](const DeviceCount& count) {
    return std::tuple(count.allocatable > 0, count.rank, count.allocatable);
  };
  for (const DeviceCount& count : devices) {
    if (std::max(count.capacity, count.allocatable) == 0) continue;
    if (counted == nullptr || key(count) > key(*counted) ||
        (key(count) == key(*counted) && count.resource < counted->resource)) {
      counted = &count;
    }
  }
  return counted;
}

bool IsRdma(std::string_view resource) {
  return resource == "vpc.amazonaws.com/efa" || resource.starts_with("rdma/");
}

}  // namespace berth::wire
