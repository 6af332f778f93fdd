// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_offers.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <string_view>
#include <variant>

namespace berth {
namespace {

using Slices = std::vector<std::shared_ptr<const PublishedSlice>>;

void KeepNewest(Slices& slices) {
  std::int64_t newest = slices.front()->generation;
  for (const auto& slice : slices) newest = std::max(newest, slice->generation);
  std::erase_if(slices, [newest](const auto& slice) { return slice->generation != newest; });
}

// Whether no name stands for two devices or counter sets, and every counter that is used is there.
bool IsSound(const Slices& slices) {
  std::set<std::string_view> devices;
  std::set<std::pair<std::string_view, std::string_view>> counters;
  std::map<std::string_view, const PublishedSlice*> sets;
  for (const auto& slice : slices) {
    for (const ConsumedCounter& there_is : slice->counters) {
      const auto set = sets.emplace(there_is.set, slice.get()).first;
      const bool is_new = counters.emplace(there_is.set, there_is.counter).second;
      if (!is_new || set->second != slice.get()) return false;
    }
  }
  for (const auto& slice : slices) {
    for (const PublishedDevice& device : slice->devices) {
      if (!devices.insert(device.name).second) return false;
      for (const ConsumedCounter& used : device.consumed()) {
        if (!counters.contains({used.set, used.counter})) return false;
      }
    }
  }
  return true;
}

bool Binds(const DevicePool& pool) {
  return std::ranges::any_of(pool.slices, [](const auto& slice) {
    return std::ranges::any_of(slice->devices, &PublishedDevice::binds);
  });
}

std::size_t HashOf(const ConsumedCounters& counters) {
  std::size_t hash = counters.size();
  for (const ConsumedCounter& used : counters) {
    hash = hash * 31 + std::hash<std::string_view>()(used.set);
    hash = hash * 31 + std::hash<std::string_view>()(used.counter);
    hash = hash * 31 + std::hash<std::int64_t>()(used.milli);
  }
  return hash;
}

std::size_t HashOf(const DeviceCapacities& capacities) {
  std::size_t hash = capacities.size();
  for (const DeviceCapacity& capacity : capacities) {
    hash = hash * 31 + std::hash<std::string_view>()(capacity.name);
    hash = hash * 31 + std::hash<std::int64_t>()(capacity.there_is);
  }
  return hash;
}

template <class Domains>
std::size_t BytesOf(const Domains& domains) {
  std::size_t bytes = 0;
  for (const auto& domain : domains) {
    bytes += sizeof(domain) + domain.name.size() + domain.entries.size() * sizeof(void*) * 2;
  }
  return bytes;
}

class PoolDigester {
 public:
  void Add(const DevicePool& pool) {
    digester_.Add(pool.driver);
    Count(pool.usable);
    Count(pool.slices.size());
    for (const auto& slice : pool.slices) {
      Count(slice->in_part);
      Add(slice->counters);
      Count(slice->devices.size());
      for (const PublishedDevice& device : slice->devices) Add(device);
    }
  }
  [[nodiscard]] Digest digest() const { return digester_.digest(); }

 private:
  template <class Number>
  void Count(Number number) {
    digester_.Add(static_cast<std::uint64_t>(number));
  }

  void Add(const ConsumedCounters& counters) {
    Count(counters.size());
    for (const ConsumedCounter& counter : counters) {
      digester_.Add(counter.set);
      digester_.Add(counter.counter);
      Count(counter.milli);
    }
  }

  void Add(const PublishedDevice& device) {
    digester_.Add(device.name);
    Count(device.divisible);
    Count(device.binds);
    Count(device.seen.allow_multiple_allocations());
    Add(device.consumed());
    Count(device.capacities().size());
    for (const DeviceCapacity& capacity : device.capacities()) Add(capacity);
    Count(device.taints.size());
    for (const Taint& taint : device.taints) {
      digester_.Add(taint.key);
      digester_.Add(taint.value);
      Count(taint.effect);
    }
    Count(device.seen.attributes().size());
    for (const auto& domain : device.seen.attributes()) {
      digester_.Add(domain.name);
      Count(domain.entries.size());
      for (const auto& entry : domain.entries) {
        digester_.Add(entry->id);
        if (cel::IsIdentity(entry->id)) {
          Count(NumberOf(entry->value));
        } else {
          Add(entry->value);
        }
      }
    }
    Count(device.seen.capacity().size());
    for (const auto& domain : device.seen.capacity()) {
      digester_.Add(domain.name);
      Count(domain.entries.size());
      for (const auto& entry : domain.entries) {
        digester_.Add(entry->id);
        entry->value.AddTo(digester_);
      }
    }
  }

  void Add(const DeviceCapacity& capacity) {
    digester_.Add(capacity.name);
    Count(capacity.is_exact);
    Count(capacity.there_is);
    AddOne(capacity.values);
    for (const auto& bound : {capacity.unasked, capacity.least, capacity.most, capacity.step}) {
      Count(bound.has_value());
      Count(bound.value_or(0));
    }
  }

  void Add(const cel::AttributeValue& value) {
    Count(value.index());
    std::visit([this](const auto& it) { AddOne(it); }, value);
  }
  void AddOne(std::int64_t number) { Count(number); }
  void AddOne(bool flag) { Count(flag); }
  void AddOne(const std::string& text) { digester_.Add(text); }
  void AddOne(const cel::Version& version) { version.AddTo(digester_); }
  template <class T>
  void AddOne(const std::vector<T>& list) {
    Count(list.size());
    for (const auto& item : list) AddOne(static_cast<const T&>(item));
  }

  // The first value of the pool is 0, the next that differs 1, ...
  std::size_t NumberOf(const cel::AttributeValue& value) {
    Count(value.index());
    const auto* const text = std::get_if<std::string>(&value);
    if (text != nullptr) return texts_.try_emplace(*text, texts_.size()).first->second;
    Add(value);  // no driver publishes one that is no text
    return 0;
  }

  Digester digester_;
  std::map<std::string_view, std::size_t> texts_;
};

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

std::optional<std::int64_t> DeviceCapacity::TakenFor(const std::int64_t* asked) const {
  if (asked == nullptr) return unasked.value_or(there_is);
  if (least) {
    if (*asked <= *least) return *least;
    if (!step || *step <= 0) return *asked;
    const std::int64_t above = *asked - *least;
    const std::int64_t count = above / *step + (above % *step == 0 ? 0 : 1);
    std::int64_t taken = 0;
    if (__builtin_mul_overflow(count, *step, &taken)) return std::nullopt;
    if (__builtin_add_overflow(taken, *least, &taken)) return std::nullopt;
    return taken;
  }
  const auto rounded = std::ranges::lower_bound(values, *asked);
  return rounded == values.end() ? *asked : *rounded;
}

bool DeviceCapacity::Admits(std::int64_t taken) const {
  if (unasked == taken) return true;
  if (most && taken > *most) return false;
  if (step && *step > 0 && (taken - least.value_or(0)) % *step != 0) return false;
  return values.empty() || std::ranges::find(values, taken) != values.end();
}

const PublishedDevice* DevicePool::Find(std::string_view device) const {
  for (const auto& slice : slices) {
    const auto found = std::ranges::find(slice->devices, device, &PublishedDevice::name);
    if (found != slice->devices.end()) return &*found;
  }
  return nullptr;
}

DevicePools GatherPools(Slices slices) {
  std::map<std::pair<std::string, std::string>, Slices> by_pool;
  for (auto& slice : slices) by_pool[{slice->driver, slice->pool}].push_back(std::move(slice));
  DevicePools pools;
  for (auto& [id, of_pool] : by_pool) {
    KeepNewest(of_pool);
    std::ranges::sort(of_pool, {}, [](const auto& slice) { return std::string_view(slice->name); });
    const bool complete =
        static_cast<std::int64_t>(of_pool.size()) == of_pool.front()->slices_in_pool;
    const bool usable = complete && IsSound(of_pool);
    DevicePool& pool =
        pools.emplace_back(DevicePool{id.first, id.second, usable, std::move(of_pool)});
    for (const auto& slice : pool.slices) pool.devices += slice->devices.size();
    pool.likeness = LikenessOf(pool);
  }
  std::stable_partition(pools.begin(), pools.end(),
                        [](const DevicePool& pool) { return !Binds(pool); });
  return pools;
}

template <class T>
void SharedDevices::ShareOne(std::shared_ptr<const T>& it, Known<T>& known) {
  constexpr int kMostAlike = 8;
  if (it == nullptr) return;
  if (known.by_hash.size() >= known.sweep_at) {
    std::erase_if(known.by_hash, [](const auto& entry) { return entry.second.expired(); });
    known.sweep_at = std::max<std::size_t>(1024, 2 * known.by_hash.size());
  }
  const std::size_t hash = HashOf(*it);
  int compared = 0;
  for (auto [at, end] = known.by_hash.equal_range(hash); at != end; ++at) {
    if (++compared > kMostAlike) return;
    const auto other = at->second.lock();
    if (other == nullptr || *other != *it) continue;
    it = other;
    return;
  }
  known.by_hash.emplace(hash, it);
}

void SharedDevices::Share(PublishedSlice& slice) {
  for (PublishedDevice& device : slice.devices) {
    values_.Share(device.seen);
    ShareOne(device.consumes, counters_);
    ShareOne(device.capacity, capacities_);
  }
  slice.devices.shrink_to_fit();
}

std::size_t OwnBytes(const PublishedSlice& slice) {
  std::size_t bytes = sizeof(slice) + slice.counters.size() * sizeof(ConsumedCounter);
  for (const PublishedDevice& device : slice.devices) {
    bytes += sizeof(device) + device.name.size() + device.taints.size() * sizeof(Taint);
    bytes += BytesOf(device.seen.attributes()) + BytesOf(device.seen.capacity());
  }
  return bytes;
}

Digest LikenessOf(const DevicePool& pool) {
  PoolDigester digester;
  digester.Add(pool);
  return digester.digest();
}

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
