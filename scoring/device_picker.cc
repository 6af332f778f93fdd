// SPDX-License-Identifier: Apache-2.0
#include "scoring/device_picker.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "base/random.h"
#include "scoring/crowding.h"
#include "scoring/mig/mig_plan.h"

namespace berth {
namespace {

int GpuCount(const Node& node) { return static_cast<int>(node.gpus().size()); }

const GpuFree& FreeOf(const Node& node, int gpu) {
  return node.gpus()[static_cast<std::size_t>(gpu)];
}

// The holders of the GPUs that are not idle. Pods that share GPUs count as one holder, which leaves
// with the last of them.
std::vector<GpuMask> TenantsOf(const Node& node, GpuMask idle) {
  std::vector<GpuMask> tenants;
  for (const auto& pod : node.pods()) {
    GpuMask held = 0;
    for (const DeviceGrant& grant : pod->placement.grants) {
      if (grant.gpu < 0 || grant.gpu >= GpuCount(node)) continue;
      if (node.spec().gpus[static_cast<std::size_t>(grant.gpu)].healthy) {
        held |= GpuBit(grant.gpu) & ~idle;
      }
    }
    if (held == 0) continue;
    std::erase_if(tenants, [&held](GpuMask other) {
      const bool together = (other & held) != 0;
      if (together) held |= other;
      return together;
    });
    tenants.push_back(held);
  }
  return tenants;
}

// `count` idle GPUs of a node whose links are known.
std::vector<DeviceChoice> LinkedChoice(const Node& node, int count, const LinkAsk& ask) {
  const GpuMask idle = IdleGpus(node);
  const GpuMask gpus = node.spec().links.Choose(idle, count, ask, TenantsOf(node, idle));
  DeviceChoice choice{gpus, kMilliPerGpu, 0};
  if (choice.gpus == 0) return {};
  const auto last = static_cast<std::size_t>(63 - __builtin_clzll(choice.gpus));
  choice.memory_mib = node.spec().gpus[last].memory_mib;
  return {choice};
}

// The first `count` idle GPUs.
std::vector<DeviceChoice> FirstChoice(const Node& node, int count) {
  DeviceChoice choice{0, kMilliPerGpu, 0};
  for (int gpu = 0; gpu < GpuCount(node) && count > 0; ++gpu) {
    if (!IsIdle(node, gpu)) continue;
    choice.gpus |= GpuBit(gpu);
    choice.memory_mib = node.spec().gpus[static_cast<std::size_t>(gpu)].memory_mib;
    --count;
  }
  if (count > 0) return {};
  return {choice};
}

std::uint64_t HashOf(const Node& node) {
  std::uint64_t hash = 0;
  for (const char c : node.spec().name) hash = Mix64(hash ^ static_cast<unsigned char>(c));
  for (const GpuFree& gpu : node.gpus()) {
    hash = Mix64(hash ^ static_cast<std::uint64_t>(gpu.milli));
  }
  return Mix64(hash ^ static_cast<std::uint64_t>(node.free_cpu_milli()));
}

std::vector<DeviceChoice> FittingShares(const Node& node, const GpuShare& share) {
  std::vector<DeviceChoice> fitting;
  for (int gpu = 0; gpu < GpuCount(node); ++gpu) {
    const std::optional<DeviceChoice> choice = ShareOn(node, gpu, share);
    if (choice && HasFree(node, gpu, *choice)) fitting.push_back(*choice);
  }
  return fitting;
}

int LowestGpu(const DeviceChoice& choice) { return __builtin_ctzll(choice.gpus); }

// Puts the GPUs that others miss least first (DeviceRule).
void LeastMissedFirst(const Node& node, std::vector<DeviceChoice>& choices) {
  const GpuLinks& links = node.spec().links;
  const GpuMask idle = IdleGpus(node);
  const GpuMask worst = links.Choose(idle, 1, {}, TenantsOf(node, idle));
  std::ranges::stable_sort(choices, {}, [&](const DeviceChoice& choice) {
    std::int64_t bandwidth = 0;
    ForEachGpu(idle & ~choice.gpus,
               [&](int gpu) { bandwidth += links.Between(LowestGpu(choice), gpu); });
    return std::tuple((choice.gpus & idle) != 0, choice.gpus != worst, bandwidth);
  });
}

// Drops GPUs that equal an earlier one: they score the same and lose the tie.
void KeepDistinct(const Node& node, std::vector<DeviceChoice>& choices) {
  std::size_t kept = 0;
  for (const DeviceChoice& choice : choices) {
    const bool seen = std::any_of(
        choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(kept),
        [&](const DeviceChoice& earlier) {
          return FreeOf(node, LowestGpu(earlier)) == FreeOf(node, LowestGpu(choice)) &&
                 earlier.memory_mib == choice.memory_mib && earlier.milli == choice.milli;
        });
    if (!seen) choices[kept++] = choice;
  }
  choices.resize(kept);
}

// Drops the GPUs that have more pods of the shape's workload than others.
void KeepLeastCrowded(const Node& node, const RequestShape& shape,
                      std::vector<DeviceChoice>& choices) {
  const int least = CrowdOn(node, shape);
  std::erase_if(choices, [&](const DeviceChoice& choice) {
    return CrowdOnGpu(node, LowestGpu(choice), shape) > least;
  });
}

std::vector<DeviceChoice> ShareChoices(const Node& node, const RequestShape& shape,
                                       DeviceRule rule) {
  std::vector<DeviceChoice> fitting = FittingShares(node, std::get<GpuShare>(shape.gpus));
  if (fitting.empty()) return fitting;
  if (shape.spread == Spread::kCard) KeepLeastCrowded(node, shape, fitting);
  if (rule != DeviceRule::kFirst && node.spec().links.known()) LeastMissedFirst(node, fitting);
  switch (rule) {
    case DeviceRule::kFirst:
      return {fitting.front()};
    case DeviceRule::kTightest:
      return {*std::ranges::min_element(fitting, {}, [&](const DeviceChoice& choice) {
        return FreeOf(node, LowestGpu(choice)).milli;
      })};
    case DeviceRule::kRandom:
      return {fitting[HashOf(node) % fitting.size()]};
    case DeviceRule::kBestScore:
      break;
  }
  KeepDistinct(node, fitting);
  return fitting;
}

}  // namespace

std::optional<DeviceChoice> ShareOn(const Node& node, int gpu, const GpuShare& share) {
  const GpuSpec& spec = node.spec().gpus[static_cast<std::size_t>(gpu)];
  if (!spec.healthy) return std::nullopt;
  const std::optional<DeviceGrant> grant = GrantOfShare(spec, gpu, share);
  if (!grant) return std::nullopt;
  return DeviceChoice{GpuBit(gpu), grant->milli, grant->memory_mib};
}

bool IsIdle(const Node& node, int gpu) {
  const GpuSpec& spec = node.spec().gpus[static_cast<std::size_t>(gpu)];
  const GpuFree& free = FreeOf(node, gpu);
  return node.IsOpen(gpu) && free.idle() && free.memory_mib >= spec.memory_mib;
}

std::uint64_t IdleGpus(const Node& node) {
  std::uint64_t idle = 0;
  for (int gpu = 0; gpu < GpuCount(node); ++gpu) idle |= IsIdle(node, gpu) ? GpuBit(gpu) : 0;
  return idle;
}

bool HasFree(const Node& node, int gpu, const DeviceChoice& choice) {
  const GpuFree& free = FreeOf(node, gpu);
  return node.IsOpen(gpu) && choice.milli <= free.milli &&
         HasPlace(node.spec().gpus[static_cast<std::size_t>(gpu)], free) &&
         (choice.memory_mib == 0 || choice.memory_mib <= free.memory_mib);
}

int GpusInsteadOfMig(const Node& node, const RequestShape& shape) {
  const MigSlices* const ask = shape.mig();
  if (ask == nullptr || ask->by_name() || !node.spec().mig.known()) return 0;
  const MigSpec& spec = *node.spec().mig;
  if (!spec.single || node.spec().places.count > 0) return 0;
  const MigWant& want = ask->wants.front();
  return IsEnough(want, spec.single->compute_slices, spec.single_memory_mib) ? want.count : 0;
}

std::vector<DeviceChoice> DeviceChoices(const Node& node, const RequestShape& shape,
                                        DeviceRule rule) {
  if (const auto* whole = std::get_if<WholeGpus>(&shape.gpus)) {
    if (node.spec().places.count > 0) {
      if (whole->count > node.free_places()) return {};
      return {DeviceChoice{}};
    }
    return node.spec().links.known() ? LinkedChoice(node, whole->count, shape.links)
                                     : FirstChoice(node, whole->count);
  }
  if (shape.is_share()) return ShareChoices(node, shape, rule);
  if (const MigSlices* const ask = shape.mig()) {
    if (const int devices = GpusInsteadOfMig(node, shape); devices > 0) {
      return FirstChoice(node, devices);
    }
    if (!node.spec().mig.known() || !PlanMig(*node.spec().mig, node.mig(), *ask)) return {};
  }
  return {DeviceChoice{}};
}

int WholeChoicesInTurn(const Node& node, int count, const LinkAsk& ask) {
  GpuMask idle = IdleGpus(node);
  const GpuLinks& links = node.spec().links;
  if (!links.known() || !ask.limits()) return std::popcount(idle) / count;
  std::vector<GpuMask> tenants = TenantsOf(node, idle);
  int found = 0;
  while (const GpuMask gpus = links.Choose(idle, count, ask, tenants)) {
    idle &= ~gpus;
    tenants.push_back(gpus);
    ++found;
  }
  return found;
}

Placement PlacementFor(const Node& node, const RequestShape& shape, const DeviceChoice& choice) {
  Placement placement{node.spec().name, shape.cpu_milli, shape.memory_bytes, {}};
  for (int gpu = 0; gpu < GpuCount(node); ++gpu) {
    if ((choice.gpus & GpuBit(gpu)) == 0) continue;
    // GPUs of one node may differ in memory: a whole grant takes all of its own GPU.
    const std::int64_t memory_mib = choice.milli == kMilliPerGpu && !shape.is_share()
                                        ? node.spec().gpus[static_cast<std::size_t>(gpu)].memory_mib
                                        : choice.memory_mib;
    placement.grants.push_back({gpu, choice.milli, memory_mib});
  }
  if (node.spec().places.count > 0) placement.places = shape.gpu_count();
  if (shape.mig() != nullptr && choice.gpus == 0 && node.spec().mig.known()) {
    // A function of the node and the ask: the same plan on which the choice was based.
    auto plan = PlanMig(*node.spec().mig, node.mig(), *shape.mig());
    if (plan) placement.mig = std::move(plan->grants);
  }
  return placement;
}

}  // namespace berth
