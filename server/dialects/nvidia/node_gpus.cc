// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/nvidia/node_gpus.h"

#include <algorithm>

#include "base/number.h"

namespace berth::dialects {
namespace {

using wire::DeviceCount;
using wire::GpuDraft;
using wire::NodeFacts;

std::string_view LabelOf(const Labels& labels, std::string_view key) {
  const std::string* const value = FindLabel(labels, key);
  return value == nullptr ? std::string_view() : *value;
}

std::int64_t NumberOf(const Labels& labels, std::string_view key) {
  const auto number = ParseInt(LabelOf(labels, key), 0, kMaxGpuPlaces);
  return number ? *number : 0;
}

bool HaveSeveralUsers(const NodeFacts& facts, const std::string& resource, std::int64_t devices,
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

void CountNodeGpus(const NodeFacts& facts, GpuDraft& draft) {
  const DeviceCount* most = nullptr;
  for (const DeviceCount& count : draft.devices) {
    if (std::max(count.capacity, count.allocatable) == 0) continue;
    const DeviceCount* other = &count;
    if (most == nullptr || other->allocatable > most->allocatable) std::swap(most, other);
    if (other == nullptr || other->allocatable == 0) continue;
    if (!draft.problem.empty()) draft.problem += "; ";
    draft.problem += "allocatable " + other->resource + ": want GPUs of one resource on a node, " +
                     "those of " + most->resource + " count alone";
  }
  if (most == nullptr) return;
  const std::int64_t all = std::max(most->capacity, most->allocatable);
  const std::int64_t devices = std::min<std::int64_t>(
      all - std::clamp<std::int64_t>(draft.partitioned, 0, all), kMaxGpuPlaces);
  draft.resource = most->resource;
  draft.missing = static_cast<int>(std::min(all - most->allocatable, devices));
  const std::int64_t healthy = devices - draft.missing;
  if (draft.shared_by_other || HaveSeveralUsers(facts, most->resource, devices, healthy)) {
    draft.places.count = static_cast<int>(devices);
  } else {
    draft.gpus = static_cast<int>(devices);
  }
  draft.places.foreign = draft.served_by_other && devices > 0;
}

}  // namespace berth::dialects
