// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/claimed_gpu.h"

#include <algorithm>
#include <iterator>

#include "cluster/node/node.h"

namespace berth {
namespace {

// -1: none of them.
int IndexOf(const NodeSpec& node, const ClaimedGpu& claimed) {
  bool all_known = !claimed.uuid.empty();
  for (std::size_t gpu = 0; gpu < node.gpus.size() && !claimed.uuid.empty(); ++gpu) {
    if (node.gpus[gpu].uuid == claimed.uuid) return static_cast<int>(gpu);
    all_known = all_known && !node.gpus[gpu].uuid.empty();
  }
  return all_known ? -1 : claimed.index;
}

}  // namespace

GpuMask HeldByClaims(const NodeSpec& node, std::span<const ClaimedGpu> claimed) {
  GpuMask held = 0;
  for (const ClaimedGpu& device : claimed) {
    const int gpu = IndexOf(node, device);
    if (gpu >= 0 && static_cast<std::size_t>(gpu) < node.gpus.size()) held |= GpuBit(gpu);
  }
  return held;
}

std::vector<DeviceGrant> GrantsByClaim(const NodeSpec& node, std::span<const ClaimedGpu> claimed,
                                       std::string_view uid) {
  if (node.by_claims.empty()) return {};
  std::vector<ClaimedGpu> own;
  std::ranges::copy_if(claimed, std::back_inserter(own),
                       [uid](const ClaimedGpu& held) { return held.IsWholeOf(uid); });
  std::vector<DeviceGrant> grants;
  ForEachGpu(HeldByClaims(node, own), [&](int gpu) {
    grants.push_back({gpu, kMilliPerGpu, node.FindGpu(gpu)->memory_mib});
  });
  return grants;
}

}  // namespace berth
