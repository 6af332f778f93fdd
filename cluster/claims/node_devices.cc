// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/node_devices.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "cluster/claims/device_likeness.h"

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

}  // namespace berth
