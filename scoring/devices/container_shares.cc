// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/container_shares.h"

#include <algorithm>
#include <tuple>

#include "scoring/devices/device_picker.h"
#include "scoring/devices/neighbours.h"

namespace berth {
namespace {

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

}  // namespace berth
