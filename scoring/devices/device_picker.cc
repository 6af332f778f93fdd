// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/device_picker.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "base/text.h"
#include "scoring/devices/container_shares.h"
#include "scoring/devices/neighbours.h"
#include "scoring/mig/mig_tables.h"

namespace berth {
namespace {

TopologyManager::Offer OfferTo(const NodeSpec& spec, GpuMask free, GpuMask reusable, int count) {
  return spec.topology_manager.OfferTo(spec.links.numa_nodes(), free, reusable, count);
}

bool IsOneStep(const NodeSpec& spec, const RequestShape& shape) {
  return spec.topology_manager.by_pod || StepsOf(shape).size() == 1;
}

// One container after the other, each with the best of what it is offered. 0: one gets none.
GpuMask InTurn(const NodeSpec& spec, GpuMask free, GpuMask suiting, const RequestShape& shape,
               std::span<const GpuMask> tenants) {
  GpuMask chosen = 0, reusable = 0;
  for (const GpuStep& step : StepsOf(shape)) {
    const auto offer = OfferTo(spec, free, reusable, step.count);
    if (!offer.admits) return 0;
    const GpuMask reused = LowestBits(reusable, step.count);
    const int more = step.count - std::popcount(reused);
    const GpuMask fresh =
        more == 0 ? 0 : spec.links.Choose(offer.gpus & suiting, more, {}, tenants);
    if (more > 0 && fresh == 0) return 0;
    chosen |= fresh;
    free &= ~fresh;
    reusable = step.ends_first ? reusable | fresh : reusable & ~reused;
  }
  return chosen;
}

bool Satisfies(const NodeSpec& spec, GpuMask free, GpuMask gpus, const RequestShape& shape) {
  return std::popcount(gpus) == shape.gpu_count() && spec.links.Satisfies(gpus, shape.links) &&
         KubeletGives(spec, shape, free, gpus);
}

// The best by their links of all sets that suit the pod; the lowest of equal ones. 0 where there
// are more than kMostFree free GPUs: this is for pods of several containers that need links.
GpuMask OfAllSets(const NodeSpec& spec, GpuMask free, GpuMask suiting, const RequestShape& shape) {
  constexpr std::ptrdiff_t kMostFree = 8;
  const int wanted = shape.gpu_count();
  std::vector<GpuMask> bits;
  ForEachGpu(suiting, [&](int gpu) { bits.push_back(GpuBit(gpu)); });
  if (std::ssize(bits) < wanted || std::ssize(bits) > kMostFree) return 0;
  if (spec.links.Choose(suiting, wanted, shape.links) == 0) return 0;
  GpuMask best = 0;
  int best_quality = -1;
  const std::uint32_t end = std::uint32_t{1} << bits.size();
  for (std::uint32_t dense = 1; dense < end; ++dense) {
    if (std::popcount(dense) != wanted) continue;
    GpuMask set = 0;
    ForEachGpu(dense, [&](int at) { set |= bits[static_cast<std::size_t>(at)]; });
    const int quality = spec.links.quality(set);
    if (quality <= best_quality || !Satisfies(spec, free, set, shape)) continue;
    best = set;
    best_quality = quality;
  }
  return best;
}

int GpuCount(const Node& node) { return static_cast<int>(node.gpus().size()); }

const GpuFree& FreeOf(const Node& node, int gpu) {
  return node.gpus()[static_cast<std::size_t>(gpu)];
}

// Whether it is kube-scheduler that picks whole GPUs.
bool TakesFirstFit(const NodeSpec& spec, const RequestShape& shape) {
  return !spec.by_claims.empty() && shape.gpu_resource != kOfClaims;
}

// Free GPUs of a node whose links are known.
std::vector<DeviceChoice> LinkedChoice(const Node& node, const RequestShape& shape) {
  const GpuMask idle = IdleGpus(node);
  const GpuMask free = idle & AcceptedGpus(node.spec(), shape);
  const std::vector<GpuMask> holders = HoldersOf(node, idle);
  const GpuMask gpus = KubeletLimits(node.spec(), shape)
                           ? ChooseAligned(node, idle, free, shape, holders).gpus
                           : ChooseSuiting(node, free, shape, holders);
  DeviceChoice choice{gpus, kMilliPerGpu, 0};
  if (choice.gpus == 0) return {};
  const auto last = static_cast<std::size_t>(63 - __builtin_clzll(choice.gpus));
  choice.memory_mib = node.spec().gpus[last].memory_mib;
  return {choice};
}

int AlignedChoicesInTurn(const Node& node, const RequestShape& shape) {
  GpuMask idle = IdleGpus(node);
  const GpuMask accepted = AcceptedGpus(node.spec(), shape);
  std::vector<GpuMask> holders = HoldersOf(node, idle);
  int found = 0;
  while (const GpuMask gpus = ChooseAligned(node, idle, idle & accepted, shape, holders).gpus) {
    idle &= ~gpus;
    holders.push_back(gpus);
    ++found;
  }
  return found;
}

// Where kube-scheduler picks GPUs: those that it will take for the pod, or all if they are too few.
GpuMask Foreseen(const NodeSpec& spec, GpuMask idle, const RequestShape& shape) {
  const GpusByName* const name = FindByName(spec.by_claims, shape.gpu_resource);
  if (name == nullptr) return 0;
  const GpuMask first = FirstFree(*name, idle, shape.gpu_count());
  return first != 0 ? first : idle & GpusOf(*name);
}

// Whether these are as many as it asks for, all accepted and linked as it wants them.
bool Satisfies(const NodeSpec& spec, GpuMask gpus, const RequestShape& shape) {
  const int count = shape.gpu_count();
  if (std::popcount(gpus) < count || (gpus & ~AcceptedGpus(spec, shape)) != 0) return false;
  if (count < 2 || !shape.links.limits()) return true;
  return spec.links.known() && spec.links.Satisfies(gpus, shape.links);
}

std::vector<DeviceChoice> ForeseenChoice(const Node& node, const RequestShape& shape) {
  DeviceChoice choice{Foreseen(node.spec(), IdleGpus(node), shape), kMilliPerGpu, 0};
  if (!Satisfies(node.spec(), choice.gpus, shape)) return {};
  const auto last = static_cast<std::size_t>(63 - std::countl_zero(choice.gpus));
  choice.memory_mib = node.spec().gpus[last].memory_mib;
  return {choice};
}

int ForeseenInTurn(const Node& node, const RequestShape& shape) {
  int found = 0;
  for (GpuMask idle = IdleGpus(node);; ++found) {
    const GpuMask gpus = Foreseen(node.spec(), idle, shape);
    if (!Satisfies(node.spec(), gpus, shape)) return found;
    idle &= ~gpus;
  }
}

// The first `count` free GPUs.
std::vector<DeviceChoice> FirstChoice(const Node& node, int count, const RequestShape& shape) {
  DeviceChoice choice{0, kMilliPerGpu, 0};
  for (GpuMask free = FreeGpus(node, shape); free != 0 && count > 0; free &= free - 1, --count) {
    choice.gpus |= LowestBit(free);
    choice.memory_mib =
        node.spec().gpus[static_cast<std::size_t>(std::countr_zero(free))].memory_mib;
  }
  if (count > 0) return {};
  return {choice};
}

}  // namespace

AlignedChoice ChooseAligned(const Node& node, GpuMask free, GpuMask suiting,
                            const RequestShape& shape, std::span<const GpuMask> tenants) {
  const NodeSpec& spec = node.spec();
  if (IsOneStep(spec, shape)) {
    const auto offer = OfferTo(spec, free, 0, shape.gpu_count());
    if (!offer.admits) return {};
    return {true, ChooseSuiting(node, offer.gpus & suiting, shape, tenants)};
  }
  for (const GpuMask best : BySuitability(node, suiting, shape)) {
    // Whether there is a set is not to depend on the tenants.
    for (const auto& heeded : {tenants, std::span<const GpuMask>()}) {
      const GpuMask gpus = InTurn(spec, free, best, shape, heeded);
      if (gpus != 0 && Satisfies(spec, free, gpus, shape)) return {true, gpus};
      if (tenants.empty()) break;
    }
  }
  if (InTurn(spec, free, free, shape, {}) == 0) return {};
  return {true, OfAllSets(spec, free, suiting, shape)};
}

GpuMask AlignedGpus(const NodeSpec& spec, GpuMask free, const RequestShape& shape) {
  if (IsOneStep(spec, shape)) return OfferTo(spec, free, 0, shape.gpu_count()).gpus;
  return InTurn(spec, free, free, shape, {}) != 0 ? free : 0;
}

bool NeverAdmits(const NodeSpec& spec, GpuMask gpus, const RequestShape& shape) {
  if (IsOneStep(spec, shape)) return !OfferTo(spec, gpus, 0, shape.gpu_count()).admits;
  return std::ranges::any_of(StepsOf(shape), [&](const GpuStep& step) {
    return !OfferTo(spec, gpus, 0, step.count).admits;
  });
}

std::string AlignmentText(const NodeSpec& spec, GpuMask free, const RequestShape& shape) {
  int largest = shape.gpu_count();
  if (!IsOneStep(spec, shape)) {
    largest = std::ranges::max(StepsOf(shape), {}, &GpuStep::count).count;
  }
  int numa_nodes =
      spec.topology_manager.policy == TopologyPolicy::kSingleNumaNode
          ? 1
          : spec.links.LeastSpan(std::min(largest, static_cast<int>(spec.gpus.size())));
  return "needs " + std::to_string(largest) + " in " +
         (numa_nodes == 1 ? "one NUMA node" : std::to_string(numa_nodes) + " NUMA nodes") +
         (IsOneStep(spec, shape) ? "" : " for one container") + " (Topology Manager policy " +
         std::string(NameOf(spec.topology_manager.policy)) + "; at most " +
         std::to_string(spec.links.MostOfOneGroup(free)) + " idle in one)";
}

std::optional<DeviceChoice> ShareOn(const Node& node, int gpu, const RequestShape& shape,
                                    const GpuShare* part) {
  if (part == nullptr && !shape.may_stay_together()) return std::nullopt;
  const GpuSpec& spec = node.spec().gpus[static_cast<std::size_t>(gpu)];
  if (!spec.healthy || (!shape.gpu_rules.empty() && !shape.AdmitsGpu(spec.uuid)) ||
      !node.spec().AdmitsKindOf(static_cast<std::size_t>(gpu), shape)) {
    return std::nullopt;
  }
  const std::optional<DeviceGrant> grant =
      GrantOfShare(spec, gpu, part != nullptr ? *part : std::get<GpuShare>(shape.gpus));
  if (!grant) return std::nullopt;
  return DeviceChoice{GpuBit(gpu), grant->milli, grant->memory_mib};
}

bool IsIdle(const Node& node, int gpu) {
  const GpuSpec& spec = node.spec().gpus[static_cast<std::size_t>(gpu)];
  const GpuFree& free = FreeOf(node, gpu);
  return node.IsOpen(gpu) && free.idle() && free.memory_mib >= spec.memory_mib;
}

GpuMask IdleGpus(const Node& node) {
  GpuMask idle = 0;
  for (int gpu = 0; gpu < GpuCount(node); ++gpu) idle |= IsIdle(node, gpu) ? GpuBit(gpu) : 0;
  return idle;
}

GpuMask AcceptedGpus(const NodeSpec& spec, const RequestShape& shape) {
  GpuMask all = AllGpus(static_cast<int>(spec.gpus.size()));
  if (TakesFirstFit(spec, shape) && !shape.is_share()) {
    const GpusByName* const name = FindByName(spec.by_claims, shape.gpu_resource);
    all = name == nullptr ? 0 : GpusOf(*name);
  }
  if (JudgesKinds(spec, shape)) {
    GpuMask other = 0;
    ForEachGpu(all, [&](int gpu) {
      if (!spec.AdmitsKindOf(static_cast<std::size_t>(gpu), shape)) other |= GpuBit(gpu);
    });
    if (other != 0) all = shape.is_share() || GivesTheVeryGpu(spec) ? all & ~other : 0;
  }
  if (shape.min_gpu_memory_mib > 0 && GivesTheVeryGpu(spec)) {
    ForEachGpu(all, [&](int gpu) {
      const GpuSpec& one = spec.gpus[static_cast<std::size_t>(gpu)];
      if (one.memory_mib < shape.min_gpu_memory_mib) all &= ~GpuBit(gpu);
    });
  }
  if (shape.gpu_rules.empty()) return all;
  if (spec.gives_parts()) return 0;
  GpuMask accepted = 0;
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    if (shape.AdmitsGpu(spec.gpus[gpu].uuid)) accepted |= GpuBit(static_cast<int>(gpu)) & all;
  }
  return shape.is_share() || GivesTheVeryGpu(spec) || accepted == all ? accepted : 0;
}

bool JudgesKinds(const NodeSpec& spec, const RequestShape& shape) {
  if (spec.gpus.empty() || shape.mig() != nullptr) return false;
  return !spec.gpu_models.empty() || (shape.min_capability > 0 && spec.knows_capabilities());
}

std::string KindsText(const NodeSpec& spec, const RequestShape& shape) {
  std::map<std::string, int> kinds;
  const bool says_capability = shape.min_capability > 0 && spec.knows_capabilities();
  bool is_some = false;
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    std::string kind = spec.gpu_models.empty() ? spec.gpu_model : spec.gpu_models[gpu];
    if (kind.empty()) kind = "GPU of unknown model";
    if (says_capability) kind += " (" + CapabilityText(spec.gpus[gpu].capability) + ")";
    ++kinds[kind];
    is_some = is_some || spec.AdmitsKindOf(gpu, shape);
  }
  const std::string text = Join(
      kinds, ", ", [](const auto& kind) { return std::to_string(kind.second) + " " + kind.first; });
  const bool is_plan = is_some && !shape.is_share() && !GivesTheVeryGpu(spec);
  return text + (is_plan ? " (the device plugin picks the GPU itself)" : "");
}

bool GivesTheVeryGpu(const NodeSpec& spec) { return !spec.share_agent.empty() || spec.carries_out; }

bool IsPlanOnly(const NodeSpec& spec, const RequestShape& shape) {
  if (!std::holds_alternative<WholeGpus>(shape.gpus) || spec.gpus.empty()) return false;
  const bool is_certain = spec.carries_out || !spec.share_agent.empty() || !spec.by_claims.empty();
  // Of a pod that takes all of them there is nothing to choose.
  if (is_certain || shape.gpu_count() >= std::ssize(spec.gpus)) return false;
  return !shape.neighbours.empty() || shape.links.limits() ||
         shape.links.numa == NumaWish::kPreferred || shape.links.pattern != LinkPattern::kAny;
}

GpuMask FreeGpus(const Node& node, const RequestShape& shape) {
  if (!shape.is_share()) {
    const GpuMask idle = IdleGpus(node);
    if (TakesFirstFit(node.spec(), shape)) {
      return Foreseen(node.spec(), idle, shape) & AcceptedGpus(node.spec(), shape);
    }
    const bool limited = KubeletLimits(node.spec(), shape);
    return (limited ? AlignedGpus(node.spec(), idle, shape) : idle) &
           AcceptedGpus(node.spec(), shape);
  }
  GpuMask free = 0;
  for (int gpu = 0; gpu < GpuCount(node); ++gpu) {
    const auto add = [&](const std::optional<DeviceChoice>& part) {
      if (part && HasFree(node, gpu, *part, shape)) free |= GpuBit(gpu);
    };
    add(ShareOn(node, gpu, shape));
    for (const GpuStep& step : shape.gpu_steps) add(ShareOn(node, gpu, shape, &step.share));
  }
  return free;
}

std::vector<GpuMask> HoldersOf(const Node& node, GpuMask idle) {
  std::vector<GpuMask> holders;
  for (const auto& pod : node.pods()) {
    GpuMask held = 0;
    for (const DeviceGrant& grant : pod->placement.grants) {
      const GpuSpec* const gpu = node.spec().FindGpu(grant.gpu);
      if (gpu != nullptr && gpu->healthy) held |= GpuBit(grant.gpu) & ~idle;
    }
    if (held == 0) continue;
    std::erase_if(holders, [&held](GpuMask other) {
      const bool together = (other & held) != 0;
      if (together) held |= other;
      return together;
    });
    holders.push_back(held);
  }
  return holders;
}

std::vector<int> PlacesFor(const Node& node, const RequestShape& shape) {
  if (!node.spec().carries_out) return {};
  const std::vector<int>& unwell = node.spec().places.unwell;
  const GpuMask claimed = node.claimed_places();
  std::vector<int> on;
  std::vector<int> taken(node.places_on().begin(), node.places_on().end());
  for (int i = 0; i < shape.gpu_count(); ++i) {
    const auto rank = [&](std::size_t gpu) {
      return std::tuple(CrowdOnGpu(node, static_cast<int>(gpu), shape), taken[gpu], gpu);
    };
    std::size_t best = taken.size();
    for (std::size_t gpu = 0; gpu < taken.size(); ++gpu) {
      if (taken[gpu] >= node.spec().places.each()) continue;
      if (std::ranges::find(unwell, static_cast<int>(gpu)) != unwell.end()) continue;
      if ((claimed & GpuBit(static_cast<int>(gpu))) != 0) continue;
      if (best == taken.size() || rank(gpu) < rank(best)) best = gpu;
    }
    if (best == taken.size()) return {};
    ++taken[best];
    on.push_back(static_cast<int>(best));
  }
  std::ranges::sort(on);
  return on;
}

bool HasFree(const Node& node, int gpu, const DeviceChoice& choice, const RequestShape& shape) {
  const GpuFree& free = FreeOf(node, gpu);
  return node.IsOpen(gpu) && choice.milli <= free.milli &&
         (node.KeptFrom(shape) & GpuBit(gpu)) == 0 &&
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
  if (node.spec().IsOfOtherGpus(shape)) return {DeviceChoice{}};
  if (const auto* whole = std::get_if<WholeGpus>(&shape.gpus)) {
    if (node.spec().places.count > 0) {
      if (whole->count > node.free_places()) return {};
      return {DeviceChoice{}};
    }
    if (TakesFirstFit(node.spec(), shape)) return ForeseenChoice(node, shape);
    return node.spec().links.known() ? LinkedChoice(node, shape)
                                     : FirstChoice(node, whole->count, shape);
  }
  if (shape.is_share()) {
    std::vector<DeviceChoice> choices = ShareChoices(node, shape, rule);
    if (!choices.empty() || !shape.may_divide()) return choices;
    const std::vector<DeviceGrant> grants = GrantsApart(node, shape);
    if (!grants.empty()) choices.push_back(ChoiceOf(node, grants));
    return choices;
  }
  if (const MigSlices* const ask = shape.mig()) {
    if (const int devices = GpusInsteadOfMig(node, shape); devices > 0) {
      return FirstChoice(node, devices, shape);
    }
    if (!node.spec().mig.known() || !PlanMig(*node.spec().mig, node.mig(), *ask)) return {};
  }
  return {DeviceChoice{}};
}

int WholeChoicesInTurn(const Node& node, int count, const RequestShape& shape) {
  if (KubeletLimits(node.spec(), shape)) return AlignedChoicesInTurn(node, shape);
  if (TakesFirstFit(node.spec(), shape)) return ForeseenInTurn(node, shape);
  GpuMask free = FreeGpus(node, shape);
  const GpuLinks& links = node.spec().links;
  if (!links.known() || !shape.links.limits()) return std::popcount(free) / count;
  std::vector<GpuMask> holders = HoldersOf(node, IdleGpus(node));
  int found = 0;
  while (const GpuMask gpus = links.Choose(free, count, shape.links, holders)) {
    free &= ~gpus;
    holders.push_back(gpus);
    ++found;
  }
  return found;
}

DeviceChoice ChoiceOf(const Node& node, std::span<const DeviceGrant> grants) {
  DeviceChoice choice{.gpus = GpusAmong(grants, node.gpus().size())};
  for (const DeviceGrant& grant : grants) {
    choice.milli = std::max(choice.milli, grant.milli);
    choice.memory_mib = std::max(choice.memory_mib, grant.memory_mib);
  }
  return choice;
}

Placement PlacementFor(const Node& node, const RequestShape& shape, const DeviceChoice& choice) {
  Placement placement = WithoutDevices(node.spec().name, shape);
  // On fewer GPUs each container would have its part of each of them.
  const bool apart = !shape.may_stay_together() ||
                     (shape.may_divide() && std::popcount(choice.gpus) > shape.gpu_count());
  if (apart) placement.grants = GrantsApart(node, shape);
  const GpuMask alike = placement.grants.empty() ? choice.gpus : 0;
  for (int gpu = 0; gpu < GpuCount(node); ++gpu) {
    if ((alike & GpuBit(gpu)) == 0) continue;
    // GPUs of one node may differ in memory: a whole grant takes all of its own GPU, and a share
    // may take other amounts of each.
    const GpuSpec& spec = node.spec().gpus[static_cast<std::size_t>(gpu)];
    DeviceGrant grant{gpu, choice.milli, choice.memory_mib};
    if (choice.milli == kMilliPerGpu && !shape.is_share()) grant.memory_mib = spec.memory_mib;
    if (shape.gpu_count() > 1 && shape.is_share()) {
      grant = GrantOfShare(spec, gpu, std::get<GpuShare>(shape.gpus)).value_or(grant);
    }
    placement.grants.push_back(grant);
  }
  if (node.spec().places.count > 0 && !node.spec().IsOfOtherGpus(shape)) {
    placement.places = shape.gpu_count();
    placement.places_on = PlacesFor(node, shape);
  }
  if (shape.mig() != nullptr && choice.gpus == 0 && node.spec().mig.known()) {
    // A function of the node and the ask: the same plan on which the choice was based.
    auto plan = PlanMig(*node.spec().mig, node.mig(), *shape.mig());
    if (plan) placement.mig = std::move(plan->grants);
  }
  return placement;
}

}  // namespace berth
