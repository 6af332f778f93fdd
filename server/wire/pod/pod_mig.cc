// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_mig.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/text.h"

namespace berth::wire {
namespace {

constexpr std::string_view kSlicesKey = "berth.dev/mig-min-slices";
constexpr std::string_view kMemoryKey = "berth.dev/mig-min-memory-gib";
constexpr int kMostNeeded = 100'000;  // beyond any GPU
constexpr std::int64_t kMibPerGib = 1024;

constexpr std::int64_t kMostDevices =
    std::numeric_limits<std::int64_t>::max() / 4;  // as in pod_rules

auto KeyOf(const MigResource& resource) { return std::tuple(resource.profile, resource.shared); }

GpuAsk WithNeed(const GpuAsk& ask, MigWant need) {
  const auto* whole = std::get_if<WholeGpus>(&ask);
  if (whole == nullptr) return ask;
  need.count = whole->count;
  return MigSlices{{need}};
}

}  // namespace

MigCount& MigCounts::Of(const MigResource& resource) {
  const auto at = std::ranges::lower_bound(counts_, KeyOf(resource), {},
                                           [](const MigCount& c) { return KeyOf(c.resource); });
  if (at != counts_.end() && at->resource == resource) return *at;
  return *counts_.insert(at, {resource, 0});
}

void MigCounts::Add(const MigResource& resource, std::int64_t count) {
  // Of more names than a pod may have devices it is known that they are too many.
  if (count == 0 || counts_.size() > kMaxMigDevicesPerPod) return;
  MigCount& sum = Of(resource);
  sum.count = std::min(sum.count + count, kMostDevices);
}

MigCounts& MigCounts::operator+=(const MigCounts& other) {
  for (const MigCount& added : other.counts_) Add(added.resource, added.count);
  return *this;
}

void MigCounts::Raise(const MigCounts& other) {
  for (const MigCount& least : other.counts_) {
    if (counts_.size() > kMaxMigDevicesPerPod) return;
    MigCount& here = Of(least.resource);
    here.count = std::max(here.count, least.count);
  }
}

std::int64_t MigCounts::total() const {
  std::int64_t sum = 0;
  for (const MigCount& count : counts_) sum = std::min(sum + count.count, kMostDevices);
  return sum;
}

MigSlices MigCounts::ToSlices() const {
  MigSlices slices;
  for (const MigCount& count : counts_) {
    slices.wants.push_back(
        {count.resource.profile, count.resource.shared, 0, 0, static_cast<int>(count.count)});
  }
  std::ranges::sort(slices.wants);
  return slices;
}

bool IsMigNeedKey(std::string_view key) { return key == kSlicesKey || key == kMemoryKey; }

Status ReadMigNeed(std::string_view key, std::string_view value, MigWant& need) {
  BERTH_TRY(const std::int64_t least, ParseInt(value, 1, kMostNeeded));
  if (key == kSlicesKey) need.min_slices = static_cast<int>(least);
  if (key == kMemoryKey) need.min_memory_mib = least * kMibPerGib;
  return {};
}

Status ApplyMigNeed(const MigWant& need, PodRequest& pod) {
  if (!std::holds_alternative<WholeGpus>(pod.shape.gpus)) {
    return Invalid("annotation " + std::string(need.min_slices > 0 ? kSlicesKey : kMemoryKey) +
                   ": want a pod that also asks for whole GPUs (nvidia.com/gpu)");
  }
  pod.shape.gpus = WithNeed(pod.shape.gpus, need);
  for (ContainerAsk& container : pod.containers) container.gpus = WithNeed(container.gpus, need);
  return {};
}

Status CheckMigName(std::string_view resource) {
  constexpr std::string_view kNearly = "nvidia.com/mig";
  if (!resource.starts_with(kNearly)) return {};
  const std::string meant = std::string(kMigResourcePrefix).append(resource.substr(kNearly.size()));
  if (!ParseMigResource(meant)) return {};
  return Invalid(std::string(resource) + ": no node has this resource, did you mean " + meant +
                 "?");
}

}  // namespace berth::wire
