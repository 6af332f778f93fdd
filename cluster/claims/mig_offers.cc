// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/mig_offers.h"

#include <algorithm>
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

}  // namespace berth
