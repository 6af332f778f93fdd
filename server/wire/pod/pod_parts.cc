// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_parts.h"

#include <algorithm>
#include <array>
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

constexpr std::array kAmounts = {&ResourceAsk::cpu_milli,         &ResourceAsk::memory_bytes,
                                 &ResourceAsk::ephemeral_bytes,   &ResourceAsk::gpus,
                                 &ResourceAsk::share_milli,       &ResourceAsk::share_bytes,
                                 &ResourceAsk::share_memory_milli};

template <class Join>
void JoinAmounts(ResourceAsk& ask, const ResourceAsk& other, Join join) {
  for (const auto amount : kAmounts) ask.*amount = join(ask.*amount, other.*amount);
  for (std::size_t i = 0; i < ask.agent_amounts.size(); ++i) {
    ask.agent_amounts[i] = join(ask.agent_amounts[i], other.agent_amounts[i]);
  }
  for (const OtherResource& one : other.others) {
    std::int64_t* const amount = AmountOf(ask.others, one.name);
    if (amount != nullptr) *amount = join(*amount, one.amount);
  }
}

constexpr std::string_view kDoNotDisrupt = "karpenter.sh/do-not-disrupt";
constexpr std::string_view kSafeToEvict = "cluster-autoscaler.kubernetes.io/safe-to-evict";
constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

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

bool PodMoveWords::Reads(std::string_view key) {
  return key == kDoNotDisrupt || key == kSafeToEvict || key == kDeletionCost;
}

void PodMoveWords::Take(std::string_view key, std::string_view value) {
  if (key == kDoNotDisrupt) do_not_disrupt = value == "true";
  if (key == kSafeToEvict) {
    not_safe = value == "false";
    safe = value == "true";
  }
  if (key != kDeletionCost) return;
  if (const auto cost = ReadNumber<int>(value)) deletion_cost = *cost;
}

Mobility PodMoveWords::mobility() const {
  if (do_not_disrupt) return Mobility::kDoNotDisrupt;
  if (not_safe) return Mobility::kNotSafeToEvict;
  return has_host_path && !safe ? Mobility::kHostPath : Mobility::kMoves;
}

ResourceAsk& ResourceAsk::operator+=(const ResourceAsk& other) {
  AddWords(other);
  JoinAmounts(*this, other, [](std::int64_t a, std::int64_t b) { return Capped(a + b); });
  mig += other.mig;
  return *this;
}

void ResourceAsk::Raise(const ResourceAsk& other) {
  AddWords(other);
  JoinAmounts(*this, other, [](std::int64_t a, std::int64_t b) { return std::max(a, b); });
  mig.Raise(other.mig);
}

void ResourceAsk::AddWords(const ResourceAsk& other) {
  gpu_memory_mib_each = std::max(gpu_memory_mib_each, other.gpu_memory_mib_each);
  gpu_memory_percent = std::max(gpu_memory_percent, other.gpu_memory_percent);
  gpu_cores_percent = std::max(gpu_cores_percent, other.gpu_cores_percent);
  several_share_agents = several_share_agents || other.several_share_agents ||
                         (wants_share() && other.wants_share() && share_agent != other.share_agent);
  share_gpus = std::max(share_gpus, other.share_gpus);
  share_by_container = share_by_container || other.share_by_container;
  other_devices = other_devices || other.other_devices;
  rdma_devices = rdma_devices || other.rdma_devices;
  unread = unread || other.unread;
  if (share_agent.empty()) share_agent = other.share_agent;
  if (part_resource.empty()) part_resource = other.part_resource;
  if (gpu_resource.empty()) gpu_resource = other.gpu_resource;
  for (const std::string* const resource : {&other.gpu_resource, &other.other_gpu_resource}) {
    if (other_gpu_resource.empty() && *resource != gpu_resource) other_gpu_resource = *resource;
  }
}

ResourceAsk EffectiveAsk(const PodParts& parts) {
  ResourceAsk together, sidecars, highest_init;
  for (const ContainerSpec& container : parts.containers) {
    switch (container.kind) {
      case ContainerKind::kMain:
        together += container.ask;
        break;
      case ContainerKind::kSidecar:
        sidecars += container.ask;
        highest_init.Raise(sidecars);
        break;
      case ContainerKind::kInit: {
        ResourceAsk with_sidecars = sidecars;
        with_sidecars += container.ask;
        highest_init.Raise(with_sidecars);
        break;
      }
    }
  }
  together += sidecars;
  together.Raise(highest_init);
  if (parts.pod_cpu_milli) together.cpu_milli = *parts.pod_cpu_milli;
  if (parts.pod_memory_bytes) together.memory_bytes = *parts.pod_memory_bytes;
  together += parts.overhead;
  return together;
}

tl::unexpected<Error> WrongAnnotation(std::string_view key, std::string_view what) {
  return Invalid("annotation " + std::string(key) + ": " + std::string(what));
}

std::string WantedText(std::string_view want, std::string_view got) {
  return "want " + std::string(want) + ", got \"" + std::string(got.substr(0, 40)) + '"';
}

}  // namespace berth::wire
