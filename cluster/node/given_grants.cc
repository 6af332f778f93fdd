// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/given_grants.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <tuple>
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

bool LeavesOpen(const DeviceGrant& grant) {
  return !grant.uuid.empty() || grant.milli == 0 || grant.memory_milli > 0;
}

void Complete(DeviceGrant& grant, const GpuSpec& gpu) {
  grant.milli = MilliOf(gpu, grant.milli);
  grant.memory_mib = MibOf(gpu, grant.memory_mib);
  const int part = std::exchange(grant.memory_milli, 0);
  if (part > 0 && part <= kMilliPerGpu) {
    grant.memory_mib += gpu.memory_mib * part / kMilliPerGpu;
    if (grant.milli == 0) grant.milli = part;
  } else if (grant.memory_mib == 0) {
    grant.memory_mib = gpu.memory_mib * grant.milli / kMilliPerGpu;
  }
  if (grant.milli == 0) {
    const auto filled = GrantOfShare(gpu, grant.gpu, {0, grant.memory_mib / gpu.unit_mib});
    grant.milli = filled ? filled->milli : kMilliPerGpu;
  }
}

bool Shows(const NodeSpec& node, const std::string& agent) {
  return std::ranges::find(node.agents, agent) != node.agents.end();
}

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
    std::erase_if(said.grants,
                  [](const DeviceGrant& grant) { return !grant.uuid.empty() && grant.gpu < 0; });
  }
  for (DeviceGrant& grant : said.grants) {
    if (!LeavesOpen(grant)) continue;
    if (!grant.uuid.empty()) {
      const auto gpu = std::ranges::find(gpus, grant.uuid, &GpuSpec::uuid);
      const bool has_index = grant.gpu >= 0;
      if (gpu != gpus.end()) {
        grant.gpu = static_cast<int>(gpu - gpus.begin());
      } else if (!has_index || !node->UuidOf(grant.gpu).empty()) {
        grant.gpu = DeviceGrant::kUnknown;
        continue;
      }
      grant.uuid.clear();
      if (has_index && !LeavesOpen(grant)) continue;
    }
    if (const GpuSpec* const gpu = node->FindGpu(grant.gpu)) Complete(grant, *gpu);
  }
  std::ranges::sort(said.grants, {}, &DeviceGrant::gpu);
  return said;
}

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
