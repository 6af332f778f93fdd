// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/assumed_grants.h"

#include <algorithm>
#include <tuple>

#include "cluster/node/node.h"

namespace berth {
namespace {

bool IsWholeIdle(const GpuSpec& spec, const GpuFree& free) {
  return spec.healthy && free.idle() && free.memory_mib >= spec.memory_mib;
}

std::vector<DeviceGrant> AssumeWhole(std::span<const GpuSpec> gpus, std::span<const GpuFree> free,
                                     int count) {
  std::vector<int> order(gpus.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto rank = [&](int gpu) {
    const auto i = static_cast<std::size_t>(gpu);
    return std::tuple(IsWholeIdle(gpus[i], free[i]), free[i].milli, gpu);
  };
  std::ranges::sort(order, std::ranges::greater{}, rank);
  order.resize(std::min(order.size(), static_cast<std::size_t>(std::max(count, 0))));
  std::ranges::sort(order);
  std::vector<DeviceGrant> grants;
  grants.reserve(order.size());
  for (const int gpu : order) {
    grants.push_back({gpu, kMilliPerGpu, gpus[static_cast<std::size_t>(gpu)].memory_mib});
  }
  return grants;
}

// Of one of the GPUs that are not `taken`. Requires: there is one.
DeviceGrant AssumeOnOne(std::span<const GpuSpec> gpus, std::span<const GpuFree> free,
                        const GpuShare& share, GpuMask taken) {
  std::optional<DeviceGrant> tightest;
  DeviceGrant freest{DeviceGrant::kUnknown, kMilliPerGpu, 0};
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const int gpu = static_cast<int>(i);
    if ((taken & GpuBit(gpu)) != 0) continue;
    const std::optional<DeviceGrant> grant = GrantOfShare(gpus[i], gpu, share);
    const bool fits = grant && gpus[i].healthy && grant->milli <= free[i].milli &&
                      (grant->memory_mib == 0 || grant->memory_mib <= free[i].memory_mib);
    if (fits &&
        (!tightest || free[i].milli <= free[static_cast<std::size_t>(tightest->gpu)].milli)) {
      tightest = grant;
    }
    if (freest.gpu < 0 || free[i].milli >= free[static_cast<std::size_t>(freest.gpu)].milli) {
      const int milli = share.milli > 0 ? share.milli : kMilliPerGpu;
      freest = grant ? *grant : DeviceGrant{gpu, milli, gpus[i].memory_mib};
    }
  }
  return tightest ? *tightest : freest;
}

std::vector<DeviceGrant> AssumeShare(std::span<const GpuSpec> gpus, std::span<const GpuFree> free,
                                     const GpuShare& share) {
  std::vector<DeviceGrant> grants;
  GpuMask taken = 0;
  const std::size_t count = std::min(gpus.size(), static_cast<std::size_t>(share.count));
  while (grants.size() < count) {
    grants.push_back(AssumeOnOne(gpus, free, share, taken));
    taken |= GpuBit(grants.back().gpu);
  }
  std::ranges::sort(grants, {}, &DeviceGrant::gpu);
  return grants;
}

}  // namespace

std::vector<DeviceGrant> AssumeGrants(std::span<const GpuSpec> gpus, std::span<const GpuFree> free,
                                      const GpuAsk& ask) {
  if (gpus.empty()) return {};
  if (const auto* whole = std::get_if<WholeGpus>(&ask))
    return AssumeWhole(gpus, free, whole->count);
  if (const auto* share = std::get_if<GpuShare>(&ask)) return AssumeShare(gpus, free, *share);
  const auto* mig = std::get_if<MigSlices>(&ask);
  if (mig != nullptr && !mig->by_name()) return AssumeWhole(gpus, free, mig->count());
  return {};
}

}  // namespace berth
