// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/dialect.h"

#include <algorithm>
#include <tuple>

#include "topology/gpu_vendor.h"

namespace berth::wire {

Dialects::Dialects(std::vector<std::unique_ptr<const Dialect>> in_order)
    : dialects_(std::move(in_order)) {
  for (const Dialect& dialect : *this) {
    const DialectKeys keys = dialect.keys();
    of_nodes_.Add(keys.of_nodes, dialect);
    conditions_.Add(keys.conditions, dialect);
    of_pods_.Add(keys.of_pods, dialect);
    of_pods_.Add(keys.grants, dialect);
    records_.Add(keys.grants, dialect);
    resources_.Add(keys.resources, dialect);
    of_node_resources_.Add(keys.node_resources, dialect);
  }
}

void Dialects::Keys::Add(std::span<const std::string_view> keys, const Dialect& dialect) {
  for (const std::string_view key : keys) {
    if (key.ends_with('/') || key.ends_with('-') || key.ends_with('.')) {
      beginnings_.emplace_back(key, &dialect);
    } else {
      whole_.emplace(key, &dialect);  // the first that reads it
    }
  }
}

const Dialect* Dialects::Keys::Find(std::string_view key) const {
  if (const auto found = whole_.find(key); found != whole_.end()) return found->second;
  for (const auto& [beginning, dialect] : beginnings_) {
    if (key.starts_with(beginning)) return dialect;
  }
  return nullptr;
}

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
