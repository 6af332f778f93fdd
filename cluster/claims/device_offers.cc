// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_offers.h"

#include <algorithm>
#include <iterator>

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

// A claim may ask for devices of several pools that are alike, so that it matters which of their
// own attributes are: nobody compares these over pools.
std::optional<Digest> LikenessOf(const NodeDevices& node) {
  if (node.pools.size() != 1) return std::nullopt;
  Digester digester;
  digester.Add(node.pools.front().likeness.high);
  digester.Add(node.pools.front().likeness.low);
  for (const auto& [pool, device] : node.taken) digester.Add(device);
  for (const auto& [name, uses] : node.parts) {
    digester.Add(name.second);
    for (const auto& [capacity, milli] : uses) {
      digester.Add(capacity);
      digester.Add(static_cast<std::uint64_t>(milli));
    }
  }
  return digester.digest();
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
  for (auto& [name, gpus] : nodes) {
    const auto known = current_->find(name);
    if (known == current_->end() ? gpus.empty() : *known->second == gpus) continue;
    if (!next) next = std::make_shared<ByNode>(*current_);
    if (gpus.empty()) {
      next->erase(name);
    } else {
      next->insert_or_assign(name, std::make_shared<const OfferedGpus>(std::move(gpus)));
    }
  }
  if (next) current_ = std::move(next);
}

std::shared_ptr<const DeviceOffers::ByNode> DeviceOffers::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void DeviceOffers::Put(std::vector<std::pair<std::string, NodeDevices>> nodes) {
  const MutexLock lock(mutex_);
  std::shared_ptr<ByNode> next;  // copied when the first node changes
  for (auto& [name, devices] : nodes) {
    const auto known = put_.find(name);
    if (known == put_.end() ? devices.pools.empty() : known->second->IsSame(devices)) continue;
    if (!next) next = std::make_shared<ByNode>(*current_);
    if (devices.pools.empty()) {
      put_.erase(known);
    } else {
      devices.likeness = LikenessOf(devices);
      put_.insert_or_assign(name, std::make_shared<const NodeDevices>(std::move(devices)));
    }
    Publish(name, *next);
  }
  if (next) current_ = std::move(next);
}

void DeviceOffers::Publish(const std::string& node, ByNode& next) const {
  const auto put = put_.find(node);
  if (put == put_.end()) {
    next.erase(node);
    return;
  }
  std::shared_ptr<NodeDevices> with_holds;
  for (const auto& [claim, held] : holds_) {
    if (held.hold.node != node) continue;
    if (!with_holds) with_holds = std::make_shared<NodeDevices>(*put->second);
    with_holds->taken.insert(held.hold.devices.begin(), held.hold.devices.end());
    for (const auto& [device, uses] : held.hold.parts) AddUses(with_holds->parts[device], uses);
  }
  if (with_holds) with_holds->likeness = LikenessOf(*with_holds);
  next.insert_or_assign(node, with_holds ? Devices(std::move(with_holds)) : put->second);
}

Status DeviceOffers::Hold(const ByNode& chosen_from, const std::vector<ClaimHold>& holds,
                          Instant now, Instant until) {
  const MutexLock lock(mutex_);
  for (const ClaimHold& hold : holds) {
    const auto there_is = current_->find(hold.node);
    const auto before = chosen_from.find(hold.node);
    if (there_is == current_->end() || before == chosen_from.end() ||
        there_is->second != before->second) {
      return Fail(Errc::kConflict, "the devices of node " + hold.node + " have changed");
    }
  }
  auto next = std::make_shared<ByNode>(*current_);
  for (auto held = holds_.begin(); held != holds_.end();) {
    held = held->second.until <= now ? Drop(held, *next) : std::next(held);
  }
  for (const ClaimHold& hold : holds) {
    if (const auto held = holds_.find(hold.claim); held != holds_.end()) Drop(held, *next);
  }
  for (const ClaimHold& hold : holds) {
    holds_.insert_or_assign(hold.claim, Held{hold, until});
  }
  for (const ClaimHold& hold : holds) Publish(hold.node, *next);
  current_ = std::move(next);
  return {};
}

DeviceOffers::Holds::iterator DeviceOffers::Drop(Holds::iterator held, ByNode& next) {
  const std::string node = held->second.hold.node;
  const auto after = holds_.erase(held);
  Publish(node, next);
  return after;
}

void DeviceOffers::Release(std::string_view claim) {
  const MutexLock lock(mutex_);
  const auto held = holds_.find(claim);
  if (held == holds_.end()) return;
  auto next = std::make_shared<ByNode>(*current_);
  Drop(held, *next);
  current_ = std::move(next);
}

}  // namespace berth
