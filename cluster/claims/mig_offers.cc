// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/mig_offers.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace berth {
namespace {

bool IsOn(const ClaimedGpu& claimed, const OfferedGpu& gpu) {
  return claimed.uuid.empty() || gpu.uuid.empty() ? claimed.index == gpu.index
                                                  : claimed.uuid == gpu.uuid;
}

std::optional<int> PlacementOf(const ClaimedGpu& claimed, const MigProduct& product) {
  const auto profile = ParseMigProfile(claimed.profile);
  const auto row = profile ? product.RowOf(*profile) : std::nullopt;
  return row ? product.PlacementAt(*row, claimed.start) : std::nullopt;
}

// False if part of it is taken already.
bool Take(const ClaimedGpu& claimed, OfferedGpu& gpu) {
  const auto placement = PlacementOf(claimed, *gpu.product);
  const MigSet set = placement ? MigSet{1} << *placement : 0;
  const bool was_free = placement ? !gpu.whole && (gpu.product->Addable(gpu.taken) & set) != 0
                                  : !gpu.whole && gpu.taken == 0;
  gpu.taken |= set;
  gpu.whole = gpu.whole || !placement;
  return was_free;
}

}  // namespace

std::vector<const ClaimedGpu*> TakeClaimed(std::span<const ClaimedGpu> claimed, OfferedGpus& gpus) {
  std::vector<const ClaimedGpu*> overlapping;
  for (const ClaimedGpu& held : claimed) {
    const auto gpu = std::ranges::find_if(
        gpus, [&held](const OfferedGpu& offered) { return IsOn(held, offered); });
    if (gpu != gpus.end() && !Take(held, *gpu)) overlapping.push_back(&held);
  }
  return overlapping;
}

NodeMig MigByExtendedResources(std::span<const OfferedGpu> gpus,
                               std::span<const MigProfile> profiles) {
  if (gpus.empty()) return NodeMig();
  MigSpec spec;
  spec.product = gpus.front().product;
  spec.dynamic = true;
  spec.knowledge = MigKnowledge::kExact;
  spec.allocator = MigAllocator::kKubeScheduler;
  MigSet by_name = 0;
  for (const MigProfile& profile : profiles) {
    if (const auto row = spec.product->RowOf(profile)) by_name |= spec.product->PlacementsOf(*row);
  }
  MigSet any = 0;
  for (const OfferedGpu& gpu : gpus) {
    if (gpu.product != spec.product || gpu.index < 0 || spec.PositionOf(gpu.index)) continue;
    any |= gpu.offered & by_name;
    const MigSet offered = gpu.whole ? 0 : gpu.offered & by_name;
    spec.gpus.push_back({.index = gpu.index, .uuid = gpu.uuid, .offered = offered});
  }
  return any == 0 ? NodeMig() : NodeMig(std::move(spec));
}

std::shared_ptr<const MigOffers::ByNode> MigOffers::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void MigOffers::Put(std::vector<std::pair<std::string, OfferedGpus>> nodes) {
  const MutexLock lock(mutex_);
  std::shared_ptr<ByNode> next;  // copied when the first node changes
  for (auto& node : nodes) {
    const std::string& name = node.first;
    OfferedGpus& gpus = node.second;
    const auto known = put_.find(name);
    if (known == put_.end() ? gpus.empty() : *known->second == gpus) continue;
    if (!next) next = std::make_shared<ByNode>(*current_);
    if (gpus.empty()) {
      put_.erase(known);
    } else {
      put_.insert_or_assign(name, std::make_shared<const OfferedGpus>(std::move(gpus)));
    }
    Publish(name, *next);
  }
  if (next) current_ = std::move(next);
}

void MigOffers::Publish(const std::string& node, ByNode& next) const {
  const auto put = put_.find(node);
  if (put == put_.end()) {
    next.erase(node);
    return;
  }
  std::shared_ptr<OfferedGpus> with_holds;
  for (const auto& [claim, held] : holds_) {
    if (held.node != node) continue;
    if (!with_holds) with_holds = std::make_shared<OfferedGpus>(*put->second);
    for (OfferedGpu& gpu : *with_holds) {
      if (gpu.pool == held.pool && gpu.index == held.gpu && gpu.uuid == held.uuid) {
        gpu.taken |= MigSet{1} << held.placement;
      }
    }
  }
  next.insert_or_assign(node, with_holds ? std::move(with_holds) : put->second);
}

Status MigOffers::Hold(const std::string& claim, const OfferedDevice& device, Instant now,
                       Instant until) {
  const MutexLock lock(mutex_);
  for (auto held = holds_.begin(); held != holds_.end();) {
    held = held->second.until <= now || held->first == claim ? Drop(held) : std::next(held);
  }
  const auto gpus = current_->find(device.node);
  for (const OfferedGpu& gpu : gpus == current_->end() ? OfferedGpus() : *gpus->second) {
    const auto name = std::ranges::find(gpu.devices, device.device);
    if (gpu.pool != device.pool || name == gpu.devices.end()) continue;
    const int placement = static_cast<int>(name - gpu.devices.begin());
    if ((gpu.Free() >> placement & 1) == 0) {
      return Fail(Errc::kConflict, "device " + device.device + " is not free");
    }
    holds_.insert_or_assign(claim,
                            Held{device.node, device.pool, gpu.index, gpu.uuid, placement, until});
    auto next = std::make_shared<ByNode>(*current_);
    Publish(device.node, *next);
    current_ = std::move(next);
    return {};
  }
  return Fail(Errc::kNotFound, "node " + device.node + " offers no device " + device.device);
}

MigOffers::Holds::iterator MigOffers::Drop(Holds::iterator held) {
  const std::string node = held->second.node;
  const auto after = holds_.erase(held);
  auto next = std::make_shared<ByNode>(*current_);
  Publish(node, *next);
  current_ = std::move(next);
  return after;
}

void MigOffers::Release(std::string_view claim) {
  const MutexLock lock(mutex_);
  if (const auto held = holds_.find(claim); held != holds_.end()) Drop(held);
}

}  // namespace berth
