// SPDX-License-Identifier: Apache-2.0
#include "cluster/named_grants.h"

#include <algorithm>

namespace berth {
namespace {

bool LeavesOpen(const DeviceGrant& grant) { return !grant.uuid.empty() || grant.milli == 0; }

void Complete(DeviceGrant& grant, const GpuSpec& gpu) {
  if (grant.memory_mib == 0) {
    grant.memory_mib = gpu.memory_mib * grant.milli / kMilliPerGpu;
  }
  if (grant.milli == 0) {
    const auto filled = GrantOfShare(gpu, grant.gpu, {0, grant.memory_mib});
    grant.milli = filled ? filled->milli : kMilliPerGpu;
  }
}

}  // namespace

bool HasNamedGrants(const Placement& placement) {
  return std::ranges::any_of(placement.grants, LeavesOpen);
}

Placement WithIndices(Placement said, const NodeSpec* node) {
  if (node == nullptr || !HasNamedGrants(said)) return said;
  const std::vector<GpuSpec>& gpus = node->gpus;
  if (gpus.empty()) {
    std::erase_if(said.grants, [](const DeviceGrant& grant) { return !grant.uuid.empty(); });
  }
  for (DeviceGrant& grant : said.grants) {
    if (!LeavesOpen(grant)) continue;
    if (!grant.uuid.empty()) {
      const auto gpu = std::ranges::find(gpus, grant.uuid, &GpuSpec::uuid);
      if (gpu == gpus.end()) continue;
      grant.gpu = static_cast<int>(gpu - gpus.begin());
      grant.uuid.clear();
    }
    if (const GpuSpec* const gpu = node->FindGpu(grant.gpu)) Complete(grant, *gpu);
  }
  std::ranges::sort(said.grants, {}, &DeviceGrant::gpu);
  return said;
}

}  // namespace berth
