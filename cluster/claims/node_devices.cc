// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/node_devices.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
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

}  // namespace

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

void SharedDevices::Share(PublishedSlice& slice) {
  constexpr int kMostAlike = 8;
  if (counters_.size() >= sweep_at_) {
    std::erase_if(counters_, [](const auto& entry) { return entry.second.expired(); });
    sweep_at_ = std::max<std::size_t>(1024, 2 * counters_.size());
  }
  for (PublishedDevice& device : slice.devices) {
    values_.Share(device.seen);
    if (device.consumes == nullptr) continue;
    const std::size_t hash = HashOf(*device.consumes);
    int compared = 0;
    bool is_known = false;
    auto [at, end] = counters_.equal_range(hash);
    for (; at != end && !is_known && compared < kMostAlike; ++at, ++compared) {
      const auto other = at->second.lock();
      is_known = other != nullptr && *other == *device.consumes;
      if (is_known) device.consumes = other;
    }
    if (!is_known && compared < kMostAlike) counters_.emplace(hash, device.consumes);
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

}  // namespace berth
