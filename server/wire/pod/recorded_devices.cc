// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/recorded_devices.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cluster/node/node.h"

namespace berth::wire {
namespace {

// Records are in whole percent and whole MiB, rounded either way.
constexpr int kMilliOff = kMilliPerGpu / 100;
constexpr std::int64_t kMibOff = 1;

tl::unexpected<Error> Differs(const RecordedAsk& ask, const std::string& asked,
                              const std::string& says) {
  return Invalid((ask.where.empty() ? "" : ask.where + ": ") + "want " + asked +
                 ", as the pod asks, got " + says);
}

// One amount of each GPU; 0 = not said, by the one or the other.
Status CheckAmount(const RecordedAsk& ask, std::int64_t asked, std::int64_t says,
                   std::int64_t least_off, const char* unit) {
  const std::int64_t off = asked > says ? asked - says : says - asked;
  if (asked == 0 || says == 0 || off < least_off) return {};
  const std::string of = std::string(unit) + " of a GPU";
  return Differs(ask, std::to_string(asked) + of, std::to_string(says));
}

Status Check(const RecordedAsk& ask) {
  if (ask.count != std::ssize(ask.gpus)) {
    return Differs(ask, CountText(ask.count, "GPU"), std::to_string(ask.gpus.size()));
  }
  for (const RecordedGpu& gpu : ask.gpus) {
    const GpuPart& says = gpu.says;
    BERTH_TRY_STATUS(CheckAmount(ask, ask.part.milli, says.milli, kMilliOff, " milli"));
    BERTH_TRY_STATUS(CheckAmount(ask, ask.part.memory_milli, says.memory_milli, kMilliOff,
                                 " milli of the memory"));
    BERTH_TRY_STATUS(CheckAmount(ask, ask.part.memory_mib, says.memory_mib, kMibOff + 1, " MiB"));
  }
  return {};
}

// What one pod takes of one GPU, container by container, as devices_annotation.cc adds it up.
struct Sum {
  const RecordedGpu* gpu = nullptr;
  GpuPart most, running;
};

GpuPart Plus(const GpuPart& a, const GpuPart& b) {
  return {std::min(a.milli + b.milli, kMilliPerGpu), Capped(a.memory_mib + b.memory_mib),
          std::min(a.memory_milli + b.memory_milli, kMilliPerGpu)};
}
GpuPart Larger(const GpuPart& a, const GpuPart& b) {
  return {std::max(a.milli, b.milli), std::max(a.memory_mib, b.memory_mib),
          std::max(a.memory_milli, b.memory_milli)};
}

Sum& SumOf(const RecordedGpu& gpu, std::vector<Sum>& sums) {
  const auto known = std::ranges::find_if(sums, [&gpu](const Sum& sum) {
    return sum.gpu->gpu == gpu.gpu && sum.gpu->uuid == gpu.uuid;
  });
  return known != sums.end() ? *known : sums.emplace_back(Sum{&gpu, {}, {}});
}

std::vector<DeviceGrant> AddUp(const std::vector<RecordedAsk>& asks) {
  std::vector<Sum> sums;
  for (const RecordedAsk& ask : asks) {
    for (const RecordedGpu& gpu : ask.gpus) {
      Sum& sum = SumOf(gpu, sums);
      const GpuPart together = Plus(sum.running, ask.part);
      sum.most = Larger(sum.most, together);
      if (!ask.ends_first) sum.running = together;
    }
  }
  std::vector<DeviceGrant> grants;
  for (const Sum& sum : sums) {
    const bool all = sum.most.memory_milli == kMilliPerGpu;  // of the memory: nobody else fits
    grants.push_back({.gpu = sum.gpu->gpu,
                      .milli = all ? kMilliPerGpu : sum.most.milli,
                      .memory_mib = all ? 0 : sum.most.memory_mib,
                      .uuid = sum.gpu->uuid,
                      .memory_milli = sum.most.memory_milli});
  }
  std::ranges::sort(grants, {}, &DeviceGrant::gpu);
  return grants;
}

// The same as one ask of the pod. Unequal parts of several GPUs are none of our asks: where they
// are not found they count as whole ones.
GpuAsk AskOf(const std::vector<DeviceGrant>& grants) {
  const DeviceGrant& first = grants.front();
  const auto count = static_cast<int>(grants.size());
  const bool alike = std::ranges::all_of(grants, [&first](const DeviceGrant& grant) {
    return grant.milli == first.milli && grant.memory_mib == first.memory_mib &&
           grant.memory_milli == first.memory_milli;
  });
  if (!alike || first.milli == kMilliPerGpu) return WholeGpus{count};
  return GpuShare{first.milli, first.memory_mib, first.memory_milli, count};
}

// Whether the pod's own ask is of as many GPUs, and of parts of them if these are.
bool IsAskOf(const RequestShape& shape, const std::vector<DeviceGrant>& grants) {
  const bool parts = std::holds_alternative<GpuShare>(AskOf(grants));
  return shape.gpu_count() == std::ssize(grants) && (shape.is_share() || !parts);
}

}  // namespace

Status TakeRecordedGpus(const std::vector<RecordedAsk>& asks, ObservedPod& observed) {
  for (const RecordedAsk& ask : asks) BERTH_TRY_STATUS(Check(ask));
  std::vector<DeviceGrant> grants = AddUp(asks);
  if (grants.empty()) return {};
  if (grants.size() > static_cast<std::size_t>(kMaxGpusPerNode)) {
    return Invalid("want at most " + std::to_string(kMaxGpusPerNode) + " GPUs, got " +
                   std::to_string(grants.size()));
  }
  // Agents may give each container GPUs of its own.
  RequestShape& shape = observed.pod.shape;
  if (!shape.may_divide() && !IsAskOf(shape, grants)) shape.gpus = AskOf(grants);
  observed.placement.grants = std::move(grants);
  return {};
}

Status TakeRecordedMig(const PodParts& asked, std::vector<MigGrant> devices,
                       ObservedPod& observed) {
  if (devices.empty()) return {};
  std::int64_t most = 0;  // init containers may have devices of their own
  for (const ContainerSpec& container : asked.containers) {
    most = Capped(most + container.ask.gpus);
  }
  const std::int64_t least = EffectiveAsk(asked).gpus;
  if (std::ssize(devices) < least || std::ssize(devices) > most) {
    return Invalid("want " + CountText(least, "MIG device") + ", as the pod asks, got " +
                   std::to_string(devices.size()));
  }
  observed.placement.mig = std::move(devices);
  return {};
}

RecordedAsk PlainAsk(const PodParts& asked) {
  const ResourceAsk all = EffectiveAsk(asked);
  if (all.gpus > 0) return {.count = all.gpus, .part = kWholeGpu};
  if (!all.wants_share()) return {};
  RecordedAsk ask{.count = std::max<std::int64_t>(all.share_gpus, 1)};
  ask.part.milli = static_cast<int>(std::min<std::int64_t>(all.share_milli, kMilliPerGpu));
  ask.part.memory_mib = (all.share_bytes >> 20) + (all.share_bytes % (1 << 20) != 0);
  if (all.share_bytes == 0) ask.part.memory_milli = ask.part.milli;
  return ask;
}

GpuAsk RefusedAsk(const PodParts& asked) {
  const ResourceAsk all = EffectiveAsk(asked);
  const auto count = [](std::int64_t gpus) {
    return static_cast<int>(std::clamp<std::int64_t>(gpus, 1, kMaxGpusPerPod));
  };
  if (all.gpus == 0 && all.share_gpus <= 1 && all.wants_share() && all.mig.empty()) {
    const RecordedAsk share = PlainAsk(asked);
    return GpuShare{share.part.milli, share.part.memory_mib};
  }
  if (all.gpus == 0 && !all.mig.empty() && all.mig.total() <= kMaxMigDevicesPerPod) {
    return all.mig.ToSlices();
  }
  return WholeGpus{count(std::max(all.gpus, all.share_gpus))};
}

}  // namespace berth::wire
