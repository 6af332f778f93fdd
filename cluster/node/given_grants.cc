// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/given_grants.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>
#include <variant>

namespace berth {
namespace {

// Whether all devices of `now` were said before, and others too.
bool LeavesOut(const GivenDevices& now, const GivenDevices& before) {
  const auto count = [](const GivenDevices& given) {
    const std::size_t gpus = given.replicas.empty() ? given.ids.size() : 0;
    return std::accumulate(given.replicas.begin(), given.replicas.end(), gpus) + given.mig.size() +
           given.claimed.size();
  };
  return count(now) < count(before) && std::ranges::includes(before.ids, now.ids) &&
         std::ranges::includes(before.mig, now.mig) &&
         std::ranges::includes(before.claimed, now.claimed);
}

bool IsNamed(const GivenDevices& given, const std::string& id) {
  return std::ranges::any_of(
      std::array{&given.ids, &given.mig, &given.claimed},
      [&id](const auto* names) { return std::ranges::binary_search(*names, id); });
}

std::optional<PodDevices> GpusGiven(const GivenDevices& given, const RequestShape& shape,
                                    const PodDevices& planned, const NodeSpec& node) {
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
  for (const DeviceGrant& grant : planned.grants) {
    if (grants.size() >= asked) break;
    const bool known = std::ranges::find(grants, grant.gpu, &DeviceGrant::gpu) != grants.end();
    if (!known && node.FindGpu(grant.gpu) != nullptr) grants.push_back(grant);
  }
  if (grants.size() < asked) return std::nullopt;
  std::ranges::sort(grants, {}, &DeviceGrant::gpu);
  return PodDevices{.grants = std::move(grants)};
}

std::optional<PodDevices> PlacesGiven(const GivenDevices& given, const RequestShape& shape,
                                      const PodDevices& planned, const NodeSpec& node) {
  const std::vector<std::string>& uuids = node.places.uuids;
  std::vector<int> on;
  for (std::size_t i = 0; i < given.ids.size(); ++i) {
    const auto gpu = std::ranges::find(uuids, given.ids[i]);
    if (gpu == uuids.end()) return std::nullopt;
    const int replicas = given.replicas.empty() ? 1 : given.replicas[i];
    on.insert(on.end(), static_cast<std::size_t>(replicas), static_cast<int>(gpu - uuids.begin()));
  }
  if (on.empty()) return std::nullopt;
  std::ranges::sort(on);
  const auto asked = static_cast<std::size_t>(shape.gpu_count());
  std::vector<int> left;
  std::ranges::set_difference(planned.places_on, on, std::back_inserter(left));
  left.resize(std::min(left.size(), asked - std::min(asked, on.size())));
  on.insert(on.end(), left.begin(), left.end());
  std::ranges::sort(on);
  return PodDevices{.places_on = std::move(on)};
}

// What the pod asks for and `mig` does not have: of `planned`, then by the profile alone.
void FillUp(const MigWant& want, const PodDevices& planned, std::vector<MigGrant>& mig) {
  const auto is_such = [&want](const MigGrant& grant) {
    return grant.profile == *want.profile && grant.shared == want.shared;
  };
  const std::vector<MigGrant> seen = mig;
  auto lacking = want.count - std::ranges::count_if(seen, is_such);
  for (const MigGrant& grant : planned.mig) {
    const bool known = std::ranges::find(seen, grant) != seen.end();
    if (lacking <= 0 || known || !grant.exact() || !is_such(grant)) continue;
    mig.push_back(grant);
    --lacking;
  }
  for (; lacking > 0; --lacking) {
    mig.push_back({.profile = *want.profile, .shared = want.shared});
  }
}

std::optional<PodDevices> MigGiven(const GivenDevices& given, const MigSlices& ask,
                                   const PodDevices& planned, const MigSpec& spec) {
  std::vector<MigGrant> mig;
  for (const std::string& id : given.mig) {
    const auto device = spec.FindNamed(id);
    if (!device) return std::nullopt;
    mig.push_back(*device);
  }
  if (mig.empty()) return std::nullopt;
  for (const MigWant& want : ask.wants) FillUp(want, planned, mig);
  if (mig.size() > kMaxMigDevicesPerPod) return std::nullopt;
  std::ranges::sort(mig);
  return PodDevices{.mig = std::move(mig)};
}

}  // namespace

std::optional<PodDevices> DevicesGiven(const GivenDevices& given, const RequestShape& shape,
                                       const PodDevices& planned, const NodeSpec& node) {
  const bool by_agent = given.by == Evidence::kAgent;
  if (const MigSlices* const ask = shape.mig()) {
    const bool has =
        ask->by_name() && node.mig.known() && node.mig->takes_names() && !node.mig->by_claims();
    if (!has || (by_agent && node.mig->allocator != MigAllocator::kBerth)) return std::nullopt;
    return MigGiven(given, *ask, planned, *node.mig);
  }
  const bool says_nothing = !node.share_agent.empty() || !node.by_claims.empty();
  if (!std::holds_alternative<WholeGpus>(shape.gpus) || says_nothing) return std::nullopt;
  if (by_agent && !node.carries_out) return std::nullopt;
  return node.places.count > 0 ? PlacesGiven(given, shape, planned, node)
                               : GpusGiven(given, shape, planned, node);
}

std::shared_ptr<const GivenDevices> Strongest(std::shared_ptr<const GivenDevices> before,
                                              std::shared_ptr<const GivenDevices> now) {
  if (now == nullptr || before == now) return before;
  if (before == nullptr) return now;
  if (before->by > now->by || *before == *now) return before;
  const bool ended = now->by == Evidence::kKubelet && before->by == now->by;
  if (!ended || !LeavesOut(*now, *before)) return now;
  GivenDevices both = *before;
  std::erase_if(both.unwell,
                [&now](const std::string& id) { return IsNamed(*now, id) && !now->IsUnwell(id); });
  std::vector<std::string> unwell;
  std::ranges::set_union(both.unwell, now->unwell, std::back_inserter(unwell));
  both.unwell = std::move(unwell);
  if (both == *before) return before;
  return std::make_shared<const GivenDevices>(std::move(both));
}

}  // namespace berth
