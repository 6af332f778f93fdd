// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node_gpus.h"

#include <algorithm>

#include "base/number.h"

namespace berth::wire {
namespace {

std::string_view LabelOf(const Labels& labels, std::string_view key) {
  const std::string* const value = FindLabel(labels, key);
  return value == nullptr ? std::string_view() : *value;
}

std::int64_t NumberOf(const Labels& labels, std::string_view key) {
  const auto number = ParseInt(LabelOf(labels, key), 0, kMaxGpuPlaces);
  return number ? *number : 0;
}

bool HaveSeveralUsers(const GpuFacts& facts, const std::string& resource, std::int64_t devices,
                      std::int64_t healthy) {
  const std::string_view strategy = LabelOf(facts.labels, "nvidia.com/gpu.sharing-strategy");
  if (!strategy.empty() && strategy != "none") return true;
  if (NumberOf(facts.labels, "nvidia.com/gpu.replicas") > 1) return true;
  if (facts.product.ends_with("-SHARED") || resource.ends_with(".shared")) return true;
  const bool each_is_cut = facts.product.find("-MIG-") != std::string_view::npos;
  const std::int64_t gpus = NumberOf(facts.labels, "nvidia.com/gpu.count");
  return (!each_is_cut && gpus > 0 && healthy >= 2 * gpus) || devices > kMaxGpusPerNode;
}

}  // namespace

NodeGpus ReadNodeGpus(const GpuFacts& facts) {
  NodeGpus found;
  const DeviceCount* most = nullptr;
  for (const DeviceCount& count : facts.devices) {
    if (std::max(count.capacity, count.allocatable) == 0) continue;
    const DeviceCount* other = &count;
    if (most == nullptr || other->allocatable > most->allocatable) std::swap(most, other);
    if (other == nullptr || other->allocatable == 0) continue;
    if (!found.problem.empty()) found.problem += "; ";
    found.problem += "allocatable " + other->resource + ": want GPUs of one resource on a node, " +
                     "those of " + most->resource + " count alone";
  }
  if (most == nullptr) return found;
  const std::int64_t all = std::max(most->capacity, most->allocatable);
  const std::int64_t devices = std::min<std::int64_t>(
      all - std::clamp<std::int64_t>(facts.cut_by_hami, 0, all), kMaxGpuPlaces);
  found.resource = most->resource;
  found.missing = static_cast<int>(std::min(all - most->allocatable, devices));
  const std::int64_t healthy = devices - found.missing;
  if (facts.shared_by_hami || HaveSeveralUsers(facts, most->resource, devices, healthy)) {
    found.places.count = static_cast<int>(devices);
  } else {
    found.gpus = static_cast<int>(devices);
  }
  found.places.foreign = facts.served_by_hami && devices > 0;
  return found;
}

}  // namespace berth::wire
