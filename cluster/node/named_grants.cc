// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/named_grants.h"

#include <algorithm>

namespace berth {
namespace {

bool LeavesOpen(const DeviceGrant& grant) {
  return !grant.uuid.empty() || grant.milli == 0 || grant.memory_milli > 0;
}

void Complete(DeviceGrant& grant, const GpuSpec& gpu) {
  if (grant.memory_milli > 0) {
    grant.memory_mib += gpu.memory_mib * grant.memory_milli / kMilliPerGpu;
    if (grant.milli == 0) grant.milli = grant.memory_milli;
    grant.memory_milli = 0;
  } else if (grant.memory_mib == 0) {
    grant.memory_mib = gpu.memory_mib * grant.milli / kMilliPerGpu;
  }
  if (grant.milli == 0) {
    const auto filled = GrantOfShare(gpu, grant.gpu, {0, grant.memory_mib});
    grant.milli = filled ? filled->milli : kMilliPerGpu;
  }
}

bool Shows(const NodeSpec& node, const std::string& agent) {
  return std::ranges::find(node.agents, agent) != node.agents.end();
}

}  // namespace

bool HasNamedGrants(const Placement& placement) {
  return !placement.agent.empty() || std::ranges::any_of(placement.grants, LeavesOpen);
}

Placement WithIndices(Placement said, const NodeSpec* node) {
  if (node == nullptr || !HasNamedGrants(said)) return said;
  const bool counts = said.agent.empty() || Shows(*node, said.agent);
  if (!counts) said.grants.clear();
  // Of a node that is not partitioned nobody has MIG devices.
  if (!counts || (!said.agent.empty() && !node->mig.known())) said.mig.clear();
  said.agent.clear();
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
