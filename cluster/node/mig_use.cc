// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/mig_use.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/random.h"
#include "base/text.h"
#include "cluster/node/node.h"
#include "topology/mig/mig_product.h"

namespace berth {
namespace {

// -1: none of them.
int IndexOf(const NodeSpec& node, const ClaimedGpu& claimed) {
  bool all_known = !claimed.uuid.empty();
  for (std::size_t gpu = 0; gpu < node.gpus.size() && !claimed.uuid.empty(); ++gpu) {
    if (node.gpus[gpu].uuid == claimed.uuid) return static_cast<int>(gpu);
    all_known = all_known && !node.gpus[gpu].uuid.empty();
  }
  return all_known ? -1 : claimed.index;
}

constexpr std::int64_t kMibPerGb = 1024;

// A lower bound if the driver's value is unknown: among all printed values, the name (rounded up to
// eighths of the whole memory) is off by 11 % at most.
std::int64_t UsableMib(const MigRow& row) {
  return row.memory_mib > 0 ? row.memory_mib : row.profile.memory_gb * kMibPerGb * 7 / 8;
}

// The GPU that the grant names.
std::optional<std::size_t> GpuOf(const MigSpec& spec, const MigGrant& grant) {
  if (grant.uuid.empty()) return spec.PositionOf(grant.gpu);
  const auto gpu = std::ranges::find(spec.gpus, grant.uuid, &MigGpu::uuid);
  if (gpu == spec.gpus.end()) return std::nullopt;
  return static_cast<std::size_t>(gpu - spec.gpus.begin());
}

MigStartRule StartRuleOf(MigAllocator allocator) {
  switch (allocator) {
    case MigAllocator::kFirstFit:
    case MigAllocator::kKubeScheduler:
      return MigStartRule::kLowest;
    case MigAllocator::kHighOrLow:
      return MigStartRule::kHighOrLow;
    case MigAllocator::kBerth:
    case MigAllocator::kDriver:
      break;
  }
  return MigStartRule::kDriver;
}

// Grants with only a profile come last, in the order in which they are picked.
std::vector<MigGrant> InOrder(const MigSpec& spec, std::span<const MigGrant> grants) {
  std::vector<MigGrant> order(grants.begin(), grants.end());
  const auto rank = [&spec](const MigGrant& grant) {
    const auto row =
        spec.product && !grant.exact() ? spec.product->RowOf(grant.profile) : std::nullopt;
    return std::pair(!grant.exact(), row ? RankOf(*spec.product, *row) : MigRank());
  };
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

MigWant WantOf(const MigGrant& grant) { return {grant.profile, grant.shared, 0, 0, 1}; }

// Books pods one after the other, and keeps what each of them got.
class Booking {
 public:
  Booking(const MigSpec& spec, const PodRecords& pods, std::span<const ClaimedGpu> claims)
      : spec_(spec), pods_(pods), slots_(pods.size()), use_(spec) {
    for (const MigSlot& slot : SlotsOfClaims(spec, claims)) use_.Take(slot);
    if (spec.by_claims()) return;
    BookKnown(true);
    BookKnown(false);
    for (std::size_t i = 0; i < pods_.size(); ++i) BookAssumed(i);
  }

  std::vector<std::vector<MigSlot>> slots_of() && { return std::move(slots_); }
  MigUse use_of() && { return std::move(use_); }

 private:
  // The devices of those pods that were given theirs, or of the others.
  void BookKnown(bool given) {
    for (std::size_t pod = 0; pod < pods_.size(); ++pod) {
      if (IsGiven(*pods_[pod]) != given) continue;
      for (const MigGrant& grant : pods_[pod]->placement.mig) {
        const auto slot = KnownSlot(*pods_[pod], grant);
        if (slot) Book(pod, *slot);
        if (slot && given) given_.Take(*slot);
      }
    }
  }

  static bool IsGiven(const PodRecord& pod) { return pod.evidence() != Evidence::kPlan; }

  [[nodiscard]] std::optional<MigSlot> KnownSlot(const PodRecord& pod,
                                                 const MigGrant& grant) const {
    const auto slot = SlotOf(spec_, grant);
    if (!slot || IsGiven(pod)) return slot;
    const bool anothers = (given_.taken()[slot->gpu] >> slot->placement & 1) != 0;
    return anothers ? std::nullopt : slot;
  }

  void BookAssumed(std::size_t pod) {
    const PodRecord& record = *pods_[pod];
    for (const MigGrant& grant : InOrder(spec_, record.placement.mig)) {
      if (!KnownSlot(record, grant)) Assume(pod, WantOf(grant));
    }
    const MigSlices* const ask = record.pod.shape.mig();
    if (ask == nullptr || !record.unattributed()) return;
    for (const MigWant& want : ask->wants) {
      for (int i = 0; i < want.count; ++i) Assume(pod, want);
    }
  }

  void Assume(std::size_t pod, const MigWant& want) {
    if (!want.shared && spec_.product != nullptr) {
      for (const int row : RowsFor(*spec_.product, want)) {
        const auto slot = use_.NextSlot(spec_, row);
        if (slot) return Book(pod, *slot);
      }
    }
    if (const auto stock = use_.NextShared(spec_, want)) use_.TakeShared(*stock);
  }

  void Book(std::size_t pod, const MigSlot& slot) {
    slots_[pod].push_back(slot);
    use_.Take(slot);
  }

  const MigSpec& spec_;
  const PodRecords& pods_;
  std::vector<std::vector<MigSlot>> slots_;
  MigUse use_;
  MigUse given_{spec_};  // what pods were given
};

}  // namespace

std::uint64_t NumberOfClaim(std::string_view name) {
  Digester digester;
  digester.Add(name);
  return std::max<std::uint64_t>(digester.digest().high, 1);
}

bool ClaimedGpu::IsWholeOf(const PodRequest& asks) const {
  const std::string_view name = claim, space = asks.id.namespace_name;
  if (pod.empty() || pod != asks.id.uid || !profile.empty()) return false;
  if (!name.starts_with(space) || name.substr(space.size()).substr(0, 1) != "/") return false;
  return asks.made_claim == 0 || asks.made_claim == NumberOfClaim(name.substr(space.size() + 1));
}

std::string TextOfPart(std::int64_t milli, std::string_view capacity, std::string_view whose) {
  std::string amount = std::to_string(milli) + "m";
  if (milli % 1000 == 0) {
    std::int64_t units = milli / 1000;
    std::size_t power = 0;
    constexpr std::string_view kPowers = "KMGTP";
    for (; units != 0 && units % 1024 == 0 && power < kPowers.size(); ++power) units /= 1024;
    amount = std::to_string(units);
    if (power > 0) amount.append(1, kPowers[power - 1]).append("i");
  }
  return amount.append(" of ").append(whose).append(capacity.substr(capacity.find('/') + 1));
}

std::string WithParts(const std::string& name, const ClaimedGpu& claimed) {
  if (claimed.parts.empty()) return name;
  return name + " (" +
         Join(claimed.parts, " and ",
              [](const OtherResource& part) { return TextOfPart(part.amount, part.name); }) +
         ")";
}

GpuMask HeldByClaims(const NodeSpec& node, std::span<const ClaimedGpu> claimed) {
  GpuMask held = 0;
  for (const ClaimedGpu& device : claimed) {
    const int gpu = IndexOf(node, device);
    if (gpu >= 0 && static_cast<std::size_t>(gpu) < node.gpus.size()) held |= GpuBit(gpu);
  }
  return held;
}

GpuMask PlacesHeldByClaims(const GpuPlaces& places, std::span<const ClaimedGpu> claimed) {
  GpuMask held = 0;
  for (const ClaimedGpu& device : claimed) {
    const auto named = std::ranges::find(places.uuids, device.uuid);
    const bool by_name = !places.uuids.empty() && !device.uuid.empty();
    const std::ptrdiff_t gpu = by_name ? named - places.uuids.begin() : device.index;
    if (gpu >= 0 && gpu < std::min(places.gpus, kMaxGpusPerNode)) {
      held |= GpuBit(static_cast<int>(gpu));
    }
  }
  return held;
}

std::vector<DeviceGrant> GrantsByClaim(const NodeSpec& node, std::span<const ClaimedGpu> claimed,
                                       const PodRequest& pod) {
  if (node.by_claims.empty()) return {};
  std::vector<ClaimedGpu> own;
  std::ranges::copy_if(claimed, std::back_inserter(own),
                       [&pod](const ClaimedGpu& held) { return held.IsWholeOf(pod); });
  std::vector<DeviceGrant> grants;
  ForEachGpu(HeldByClaims(node, own), [&](int gpu) {
    grants.push_back({gpu, kMilliPerGpu, node.FindGpu(gpu)->memory_mib});
  });
  return grants;
}

std::optional<MigSlot> SlotOf(const MigSpec& spec, const MigGrant& grant) {
  const auto gpu = GpuOf(spec, grant);
  if (!gpu || !grant.exact() || grant.shared) return std::nullopt;
  const auto row = spec.product->RowOf(grant.profile);
  const auto placement = row ? spec.product->PlacementAt(*row, grant.start) : std::nullopt;
  if (!placement) return std::nullopt;
  const bool there = spec.dynamic || (spec.gpus[*gpu].instances >> *placement & 1) != 0;
  return there ? std::optional(MigSlot{*gpu, *placement}) : std::nullopt;
}

std::vector<MigSlot> SlotsOfClaims(const MigSpec& spec, std::span<const ClaimedGpu> claims) {
  std::vector<MigSlot> slots;
  for (const ClaimedGpu& held : claims) {
    const auto profile = ParseMigProfile(held.profile);
    for (std::size_t gpu = 0; gpu < spec.gpus.size() && held.profile.empty(); ++gpu) {
      const MigGpu& whole = spec.gpus[gpu];
      const bool by_name = !whole.uuid.empty() && !held.uuid.empty();
      if (by_name ? whole.uuid != held.uuid : whole.index != held.index) continue;
      for (MigSet left = whole.instances; left != 0; left &= left - 1) {
        slots.push_back({gpu, std::countr_zero(left)});
      }
    }
    if (!profile || spec.product == nullptr) continue;
    auto slot = SlotOf(spec, {.start = held.start, .profile = *profile, .uuid = held.uuid});
    if (!slot) {
      slot = SlotOf(spec, {.gpu = held.index, .start = held.start, .profile = *profile});
      // By its index, unless that GPU has another UUID.
      if (slot && !held.uuid.empty() && !spec.gpus[slot->gpu].uuid.empty()) slot.reset();
    }
    if (slot) slots.push_back(*slot);
  }
  return slots;
}

MigRank RankOf(const MigProduct& product, int row) {
  const MigRow& of = product.row(row);
  return {-of.memory_units, std::popcount(of.starts), row};
}

bool IsEnough(const MigWant& want, int slices, std::int64_t memory_mib) {
  return slices >= want.min_slices && memory_mib >= want.min_memory_mib;
}

std::vector<int> RowsFor(const MigProduct& product, const MigWant& want) {
  std::vector<int> rows;
  if (want.profile) {
    if (const auto row = product.RowOf(*want.profile)) rows.push_back(*row);
    return rows;
  }
  for (int i = 0; i < static_cast<int>(product.rows().size()); ++i) {
    const MigRow& row = product.row(i);
    if (row.profile.extension == MigExtension::kNone &&
        IsEnough(want, row.profile.compute_slices, UsableMib(row))) {
      rows.push_back(i);
    }
  }
  std::ranges::stable_sort(rows, {}, [&](int i) {
    return std::tuple(product.row(i).memory_units, product.row(i).profile.compute_slices);
  });
  return rows;
}

MigUse::MigUse(const MigSpec& spec, const PodRecords& pods, std::span<const ClaimedGpu> claims)
    : MigUse(Booking(spec, pods, claims).use_of()) {}

std::optional<MigSlot> MigUse::NextSlot(const MigSpec& spec, int row) const {
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    if (!spec.dynamic || spec.by_claims()) {  // the lowest start of those that may be taken
      const MigSet free = spec.Free(gpu, taken_[gpu]) & spec.product->PlacementsOf(row);
      if (free != 0) return MigSlot{gpu, std::countr_zero(free)};
    } else if (const auto placement =
                   MigStartBy(StartRuleOf(spec.allocator), *spec.product, taken_[gpu], row)) {
      return MigSlot{gpu, *placement};
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> MigUse::NextShared(const MigSpec& spec, const MigWant& want) const {
  for (std::size_t i = 0; want.profile && i < spec.shared.size(); ++i) {
    const MigStock& stock = spec.shared[i];
    if (stock.resource.profile == *want.profile && stock.resource.shared == want.shared &&
        shared_taken_[i] < stock.count) {
      return i;
    }
  }
  return std::nullopt;
}

Status MigUse::TakeAll(const MigSpec& spec, std::span<const MigGrant> grants) {
  const auto none_free = [](const MigGrant& grant) {
    return Fail(Errc::kConflict, "mig " + NameOf(grant) + ": not free");
  };
  for (const MigGrant& grant : InOrder(spec, grants)) {
    if (grant.exact()) {
      const auto slot = SlotOf(spec, grant);
      if (!slot) {
        return Fail(Errc::kConflict, "mig " + NameOf(grant) + ": the node has no such device");
      }
      if ((spec.Free(slot->gpu, taken_[slot->gpu]) >> slot->placement & 1) == 0) {
        return none_free(grant);
      }
      Take(*slot);
      continue;
    }
    const MigWant want = WantOf(grant);
    const auto row =
        spec.product == nullptr || grant.shared ? std::nullopt : spec.product->RowOf(grant.profile);
    const auto slot = row ? NextSlot(spec, *row) : std::nullopt;
    const auto stock = slot ? std::nullopt : NextShared(spec, want);
    if (!slot && !stock) return none_free(grant);
    if (slot) Take(*slot);
    if (stock) TakeShared(*stock);
  }
  return {};
}

std::vector<std::vector<MigSlot>> SlotsByPod(const MigSpec& spec, const PodRecords& pods,
                                             std::span<const ClaimedGpu> claims) {
  return Booking(spec, pods, claims).slots_of();
}

std::string NameOf(const MigGrant& grant) {
  std::string name = MigProfileName(grant.profile);
  if (grant.shared) name += " shared";
  if (grant.start >= 0) name += " at " + std::to_string(grant.start);
  if (grant.gpu >= 0) name += " of GPU " + std::to_string(grant.gpu);
  if (grant.gpu < 0 && !grant.uuid.empty()) name += " of " + grant.uuid;
  return name;
}

}  // namespace berth
