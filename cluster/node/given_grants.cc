// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/given_grants.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <variant>

namespace berth {
namespace {

// Whether all devices of `now` were said before, and others too.
bool LeavesOut(const GivenDevices& now, const GivenDevices& before) {
  return now.ids.size() < before.ids.size() && std::ranges::includes(before.ids, now.ids);
}

}  // namespace

std::optional<std::vector<DeviceGrant>> GrantsGiven(const GivenDevices& given,
                                                    const RequestShape& shape,
                                                    std::span<const DeviceGrant> planned,
                                                    const NodeSpec& node) {
  const bool says_nothing = !node.share_agent.empty() || !node.by_claims.empty();
  if (!std::holds_alternative<WholeGpus>(shape.gpus) || says_nothing) {
    return std::nullopt;
  }
  if (given.by == Evidence::kAgent && !node.carries_out) return std::nullopt;
  std::vector<DeviceGrant> grants;
  for (const std::string& id : given.ids) {
    const auto gpu = std::ranges::find(node.gpus, id, &GpuSpec::uuid);
    if (gpu == node.gpus.end()) return std::nullopt;
    grants.push_back({.gpu = static_cast<int>(gpu - node.gpus.begin()),
                      .milli = kMilliPerGpu,
                      .memory_mib = gpu->memory_mib});
  }
  if (grants.empty()) return std::nullopt;
  const auto asked = static_cast<std::size_t>(shape.gpu_count());
  for (const DeviceGrant& grant : planned) {
    if (grants.size() >= asked) break;
    const bool known = std::ranges::find(grants, grant.gpu, &DeviceGrant::gpu) != grants.end();
    if (!known && node.FindGpu(grant.gpu) != nullptr) grants.push_back(grant);
  }
  if (grants.size() < asked) return std::nullopt;
  std::ranges::sort(grants, {}, &DeviceGrant::gpu);
  return grants;
}

std::shared_ptr<const GivenDevices> Strongest(std::shared_ptr<const GivenDevices> before,
                                              std::shared_ptr<const GivenDevices> now) {
  if (now == nullptr || before == now) return before;
  if (before == nullptr) return now;
  if (before->by > now->by || *before == *now) return before;
  const bool ended = now->by == Evidence::kKubelet && before->by == now->by;
  if (!ended || !LeavesOut(*now, *before)) return now;
  GivenDevices both = *before;
  std::erase_if(both.unwell, [&now](const std::string& id) {
    return std::ranges::binary_search(now->ids, id) && !now->IsUnwell(id);
  });
  std::vector<std::string> unwell;
  std::ranges::set_union(both.unwell, now->unwell, std::back_inserter(unwell));
  both.unwell = std::move(unwell);
  if (both == *before) return before;
  return std::make_shared<const GivenDevices>(std::move(both));
}

}  // namespace berth
