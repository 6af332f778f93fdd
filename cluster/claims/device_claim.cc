// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_claim.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

namespace berth {

void AddUses(CapacityUses& to, const CapacityUses& added) {
  for (const auto& [name, milli] : added) {
    std::int64_t& sum = to[name];
    if (__builtin_add_overflow(sum, milli, &sum)) sum = std::numeric_limits<std::int64_t>::max();
  }
}

std::string NameOf(const DeviceRequest& request, const DeviceWant& want) {
  return want.name.empty() ? request.name : request.name + "/" + want.name;
}

bool Covers(const std::vector<std::string>& names, const DeviceRequest& request,
            const DeviceWant& want) {
  return names.empty() || std::ranges::find(names, request.name) != names.end() ||
         std::ranges::find(names, NameOf(request, want)) != names.end();
}

namespace {

struct Got {
  const DeviceRequest& request;
  const DeviceWant& want;
};

std::vector<Got> GotBy(const DeviceClaim& claim, std::span<const int> wants) {
  std::vector<Got> got;
  for (std::size_t i = 0; i < claim.requests.size(); ++i) {
    const DeviceRequest& request = claim.requests[i];
    got.push_back({request, request.wants[static_cast<std::size_t>(wants[i])]});
  }
  return got;
}

bool Covers(const AllocationConfig& config, const Got& got) {
  return Covers(config.requests, got.request, got.want);
}

}  // namespace

std::vector<AllocationConfig> ConfigsOf(const DeviceClaim& claim, std::span<const int> wants,
                                        const ConfigsOfClass& of_class) {
  const std::vector<Got> got = GotBy(claim, wants);
  std::vector<AllocationConfig> configs;
  std::map<std::string_view, std::pair<std::size_t, std::size_t>> of_classes;  // begin, end
  for (const Got& each : got) {
    const std::string name = NameOf(each.request, each.want);
    const std::string_view class_name = each.want.device_class;
    const auto known = of_classes.find(class_name);
    if (known != of_classes.end()) {
      for (std::size_t i = known->second.first; i < known->second.second; ++i) {
        configs[i].requests.push_back(name);
      }
      continue;
    }
    const std::size_t begin = configs.size();
    for (DeviceConfig& config : of_class(class_name)) {
      configs.push_back({true, {name}, std::move(config.content)});
    }
    of_classes.emplace(class_name, std::pair(begin, configs.size()));
  }
  for (const DeviceConfig& config : claim.configs) {
    const AllocationConfig copied{false, config.requests, config.content};
    if (std::ranges::any_of(got, [&copied](const Got& each) { return Covers(copied, each); })) {
      configs.push_back(copied);
    }
  }
  for (AllocationConfig& config : configs) {
    if (std::ranges::all_of(got, [&config](const Got& each) { return Covers(config, each); })) {
      config.requests.clear();
    }
  }
  return configs;
}

std::optional<DeviceClass> DeviceClasses::ClassOf(std::string_view resource) const {
  if (resource.starts_with(kDeviceClassPrefix)) {
    return Named(resource.substr(kDeviceClassPrefix.size()));
  }
  const MutexLock lock(mutex_);
  const DeviceClass* const newest = Newest(resource);
  return newest == nullptr ? std::nullopt : std::optional(*newest);
}

const DeviceClass* DeviceClasses::Newest(std::string_view resource) const {
  const DeviceClass* newest = nullptr;
  for (const auto& [name, candidate] : by_name_) {
    if (candidate.extended_resource.empty() || candidate.extended_resource != resource) continue;
    if (newest == nullptr || newest->created < candidate.created) newest = &candidate;
  }
  return newest;
}

std::optional<DeviceClass> DeviceClasses::Named(std::string_view name) const {
  const MutexLock lock(mutex_);
  const auto named = by_name_.find(name);
  return named == by_name_.end() ? std::nullopt : std::optional(named->second);
}

std::map<std::string, DeviceClass> DeviceClasses::WholeByName() const {
  const MutexLock lock(mutex_);
  std::map<std::string, DeviceClass> found;
  for (const auto& [name, each] : by_name_) {
    if (!each.whole || found.size() + 2 > kMostWholeNames) continue;
    found.emplace(std::string(kDeviceClassPrefix) + name, each);
    if (Newest(each.extended_resource) == &each) found.emplace(each.extended_resource, each);
  }
  return found;
}

std::vector<DeviceClass> DeviceClasses::All() const {
  const MutexLock lock(mutex_);
  std::vector<DeviceClass> all;
  for (const auto& [name, of] : by_name_) all.push_back(of);
  return all;
}

std::vector<MigProfile> DeviceClasses::Profiles() const {
  const MutexLock lock(mutex_);
  std::set<MigProfile> profiles;
  for (const auto& [name, each] : by_name_) {
    if (each.profile) profiles.insert(*each.profile);
  }
  return {profiles.begin(), profiles.end()};
}

void DeviceClasses::Put(const DeviceClass& added) {
  const MutexLock lock(mutex_);
  by_name_.insert_or_assign(added.name, added);
}

void DeviceClasses::Remove(std::string_view name) {
  const MutexLock lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end()) by_name_.erase(known);
}

void DeviceClasses::Reset(const std::vector<DeviceClass>& classes) {
  const MutexLock lock(mutex_);
  by_name_.clear();
  for (const DeviceClass& each : classes) by_name_.insert_or_assign(each.name, each);
}

}  // namespace berth
