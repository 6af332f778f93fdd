// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/container_shares.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"

namespace berth {
namespace {

int LowestGpu(const DeviceChoice& choice) { return std::countr_zero(choice.gpus); }

const GpuFree& FreeOf(const Node& node, const DeviceChoice& part) {
  return node.gpus()[static_cast<std::size_t>(LowestGpu(part))];
}

std::uint64_t HashOf(const Node& node) {
  std::uint64_t hash = 0;
  for (const char c : node.spec().name) hash = Mix64(hash ^ static_cast<unsigned char>(c));
  for (const GpuFree& gpu : node.gpus()) {
    hash = Mix64(hash ^ static_cast<std::uint64_t>(gpu.milli));
  }
  return Mix64(hash ^ static_cast<std::uint64_t>(node.free_cpu_milli()));
}

// Of each GPU that fits.
std::vector<DeviceChoice> FittingShares(const Node& node, const RequestShape& shape) {
  std::vector<DeviceChoice> fitting;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    const std::optional<DeviceChoice> choice = ShareOn(node, gpu, shape);
    if (choice && HasFree(node, gpu, *choice, shape)) fitting.push_back(*choice);
  }
  return fitting;
}

// Puts the GPUs that others miss least first (DeviceRule).
void LeastMissedFirst(const Node& node, std::vector<DeviceChoice>& parts) {
  const GpuLinks& links = node.spec().links;
  const GpuMask idle = IdleGpus(node);
  const GpuMask worst = links.Choose(idle, 1, {}, HoldersOf(node, idle));
  std::ranges::stable_sort(parts, {}, [&](const DeviceChoice& part) {
    std::int64_t bandwidth = 0;
    ForEachGpu(idle & ~part.gpus,
               [&](int gpu) { bandwidth += links.Between(LowestGpu(part), gpu); });
    return std::tuple((part.gpus & idle) != 0, part.gpus != worst, bandwidth);
  });
}

GpuMask GpusOf(std::span<const DeviceChoice> parts) {
  GpuMask gpus = 0;
  for (const DeviceChoice& part : parts) gpus |= part.gpus;
  return gpus;
}

// Drops the GPUs that have more pods of the shape's workload than as many others as are needed.
void KeepLeastCrowded(const Node& node, const RequestShape& shape,
                      std::vector<DeviceChoice>& parts) {
  const int least = CrowdOnGpus(node, GpusOf(parts), shape);
  std::erase_if(parts, [&](const DeviceChoice& part) {
    return CrowdOnGpu(node, LowestGpu(part), shape) > least;
  });
}

// Of unequal GPUs the amounts are the largest.
void Add(const DeviceChoice& part, DeviceChoice& set) {
  set.gpus |= part.gpus;
  set.milli = std::max(set.milli, part.milli);
  set.memory_mib = std::max(set.memory_mib, part.memory_mib);
}

std::int64_t BandwidthTo(const Node& node, const DeviceChoice& part, GpuMask set) {
  std::int64_t bandwidth = 0;
  if (!node.spec().links.known()) return bandwidth;
  ForEachGpu(set, [&](int gpu) { bandwidth += node.spec().links.Between(LowestGpu(part), gpu); });
  return bandwidth;
}

// The GPU with `count` - 1 others, the fullest. Requires: `parts` are sorted so.
DeviceChoice SetAround(const Node& node, std::span<const DeviceChoice> parts,
                       const DeviceChoice& seed, int count) {
  DeviceChoice set = seed;
  for (int more = count - 1; more > 0; --more) {
    const DeviceChoice* best = nullptr;
    std::int64_t bandwidth = 0;
    for (const DeviceChoice& part : parts) {
      if ((part.gpus & set.gpus) != 0) continue;
      if (best != nullptr && FreeOf(node, part).milli > FreeOf(node, *best).milli) break;
      const std::int64_t to_set = BandwidthTo(node, part, set.gpus);
      if (best != nullptr && to_set <= bandwidth) continue;
      best = &part;
      bandwidth = to_set;
    }
    Add(*best, set);
  }
  return set;
}

// `count` of the parts from that position on, round to the first.
DeviceChoice SetFrom(std::span<const DeviceChoice> parts, std::size_t from, int count) {
  DeviceChoice set;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    Add(parts[(from + i) % parts.size()], set);
  }
  return set;
}

// Drops the GPUs that suit the pod less than as many others as are needed (neighbours.h).
void KeepMostSuiting(const Node& node, const RequestShape& shape,
                     std::vector<DeviceChoice>& parts) {
  for (const GpuMask suiting : BySuitability(node, GpusOf(parts), shape)) {
    if (std::popcount(suiting) < shape.gpu_count()) continue;
    std::erase_if(parts, [&](const DeviceChoice& part) { return (part.gpus & suiting) == 0; });
    return;
  }
}

std::vector<DeviceChoice> LinkedSet(const Node& node, std::span<const DeviceChoice> parts,
                                    const RequestShape& shape) {
  const GpuMask gpus = ChooseSuiting(node, GpusOf(parts), shape);
  if (gpus == 0) return {};
  DeviceChoice set;
  for (const DeviceChoice& part : parts) {
    if ((part.gpus & gpus) != 0) Add(part, set);
  }
  return {set};
}

// Drops sets of GPUs that equal those of an earlier one: they score the same and lose the tie.
void KeepDistinct(const Node& node, std::vector<DeviceChoice>& choices) {
  using Free = std::tuple<int, int, std::int64_t>;
  using Key = std::pair<std::pair<int, std::int64_t>, std::vector<Free>>;
  std::vector<Key> seen;
  std::erase_if(choices, [&](const DeviceChoice& choice) {
    Key key{{choice.milli, choice.memory_mib}, {}};
    ForEachGpu(choice.gpus, [&](int gpu) {
      const GpuFree& free = node.gpus()[static_cast<std::size_t>(gpu)];
      key.second.emplace_back(free.milli, free.users, free.memory_mib);
    });
    std::ranges::sort(key.second);
    if (std::ranges::find(seen, key) != seen.end()) return true;
    seen.push_back(std::move(key));
    return false;
  });
}

// The same for sets of one GPU each.
void KeepDistinctGpus(const Node& node, std::vector<DeviceChoice>& parts) {
  std::size_t kept = 0;
  for (const DeviceChoice& part : parts) {
    const bool seen = std::any_of(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(kept),
                                  [&](const DeviceChoice& earlier) {
                                    return FreeOf(node, earlier) == FreeOf(node, part) &&
                                           earlier.memory_mib == part.memory_mib &&
                                           earlier.milli == part.milli;
                                  });
    if (!seen) parts[kept++] = part;
  }
  parts.resize(kept);
}

// Every GPU with the fullest others, and the freest together.
std::vector<DeviceChoice> SetsToScore(const Node& node, std::span<const DeviceChoice> parts,
                                      std::span<const DeviceChoice> fullest_first, int count) {
  std::vector<DeviceChoice> sets;
  for (const DeviceChoice& seed : parts) {
    sets.push_back(SetAround(node, fullest_first, seed, count));
  }
  sets.push_back(SetFrom(fullest_first, parts.size() - static_cast<std::size_t>(count), count));
  KeepDistinct(node, sets);
  return sets;
}

struct Card {
  const GpuSpec* spec = nullptr;
  GpuFree free;         // before the pod
  DeviceGrant grant{};  // of its containers, none at first
};

// A search in depth.
class Division {
 public:
  // cards: in the order in which they are tried.
  Division(const Node& node, const RequestShape& shape, std::vector<Card> cards)
      : links_(node.spec().links), shape_(shape), cards_(std::move(cards)) {}

  std::vector<DeviceGrant> Run() {
    std::vector<DeviceGrant> grants;
    if (!Place(0, shape_.gpu_steps.front().count, 0, 0)) return grants;
    for (const Card& card : cards_) {
      if (card.grant.containers != 0) grants.push_back(card.grant);
    }
    std::ranges::sort(grants, {}, &DeviceGrant::gpu);
    return grants;
  }

 private:
  static constexpr int kMostTries = 1024;

  // So many more cards for the container, of those from that one on, beside the GPUs that it has;
  // then all for the containers after it.
  bool Place(std::size_t step, int more, std::size_t from, GpuMask has) {
    const std::vector<GpuStep>& steps = shape_.gpu_steps;
    if (more == 0) {
      const bool linked = steps[step].count == 1 || !shape_.links.limits() ||
                          (links_.known() && links_.Satisfies(has, shape_.links));
      if (!linked || ++step == steps.size()) return linked;
      return Place(step, steps[step].count, 0, 0);
    }
    for (std::size_t at = from; at < cards_.size(); ++at) {
      if (LikeOneBefore(from, at)) continue;
      if (++tries_ > kMostTries) return false;
      const DeviceGrant before = cards_[at].grant;
      const GpuMask with = has | GpuBit(before.gpu);
      if (Add(step, cards_[at]) && Place(step, more - 1, at + 1, with)) return true;
      cards_[at].grant = before;
    }
    return false;
  }

  // Whether a card from that one on, tried in vain, is like it: then this one would be in vain too.
  // Links tell cards apart, so that where they limit each is tried.
  bool LikeOneBefore(std::size_t from, std::size_t at) const {
    if (shape_.links.limits()) return false;
    const Card& card = cards_[at];
    const auto like = [&](const Card& other) {
      return other.free == card.free && other.grant.containers == card.grant.containers &&
             other.spec->memory_mib == card.spec->memory_mib &&
             other.spec->cores == card.spec->cores;
    };
    return std::any_of(cards_.begin() + static_cast<std::ptrdiff_t>(from),
                       cards_.begin() + static_cast<std::ptrdiff_t>(at), like);
  }

  // Whether it has room.
  bool Add(std::size_t step, Card& card) const {
    const ContainerMask containers = card.grant.containers | ContainerMask{1} << step;
    const auto grant =
        GrantOfShare(*card.spec, card.grant.gpu, SumOf(shape_.gpu_steps, containers));
    if (!grant || grant->milli > card.free.milli) return false;
    card.grant = *grant;
    card.grant.containers = containers;
    return grant->memory_mib == 0 || grant->memory_mib <= card.free.memory_mib;
  }

  const GpuLinks& links_;
  const RequestShape& shape_;
  std::vector<Card> cards_;
  int tries_ = 0;
};

}  // namespace

std::vector<DeviceGrant> GrantsApart(const Node& node, const RequestShape& shape, bool emptied) {
  constexpr GpuShare kAny{.milli = 1};
  GpuMask all = emptied ? 0 : FreeGpus(node, shape);
  for (int gpu = 0; emptied && gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    if (ShareOn(node, gpu, shape, &kAny)) all |= GpuBit(gpu);
  }
  std::vector<DeviceGrant> grants;
  for (const GpuMask gpus : BySuitability(node, all, shape)) {
    std::vector<Card> cards;
    ForEachGpu(gpus, [&](int gpu) {
      const GpuSpec& spec = node.spec().gpus[static_cast<std::size_t>(gpu)];
      const GpuFree empty{.memory_mib = spec.memory_mib};
      cards.push_back(
          {&spec, emptied ? empty : node.gpus()[static_cast<std::size_t>(gpu)], {.gpu = gpu}});
    });
    std::ranges::stable_sort(cards, {}, [&](const Card& card) {
      return std::tuple(CrowdOnGpu(node, card.grant.gpu, shape), card.free.milli,
                        card.free.memory_mib);
    });
    grants = Division(node, shape, std::move(cards)).Run();
    if (!grants.empty()) return grants;
  }
  return grants;
}

std::vector<DeviceChoice> ShareChoices(const Node& node, const RequestShape& shape,
                                       DeviceRule rule) {
  const int count = shape.gpu_count();
  std::vector<DeviceChoice> parts = FittingShares(node, shape);
  if (std::ssize(parts) < count) return {};
  if (count > 1 && shape.links.limits()) return LinkedSet(node, parts, shape);
  if (shape.spread == Spread::kCard) KeepLeastCrowded(node, shape, parts);
  if (MindsNeighbours(shape)) KeepMostSuiting(node, shape, parts);
  if (rule != DeviceRule::kFirst && node.spec().links.known()) LeastMissedFirst(node, parts);
  const auto free = [&node](const DeviceChoice& part) { return FreeOf(node, part).milli; };
  switch (rule) {
    case DeviceRule::kFirst:
      return {SetFrom(parts, 0, count)};
    case DeviceRule::kRandom:
      return {SetFrom(parts, HashOf(node) % parts.size(), count)};
    case DeviceRule::kTightest:
      if (count == 1) return {*std::ranges::min_element(parts, {}, free)};
      std::ranges::stable_sort(parts, {}, free);
      return {SetAround(node, parts, parts.front(), count)};
    case DeviceRule::kBestScore:
      break;
  }
  if (count == 1) {
    KeepDistinctGpus(node, parts);
    return parts;
  }
  std::vector<DeviceChoice> fullest_first = parts;
  std::ranges::stable_sort(fullest_first, {}, free);
  return SetsToScore(node, parts, fullest_first, count);
}

}  // namespace berth
