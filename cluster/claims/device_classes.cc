// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_classes.h"

#include <set>
#include <utility>

namespace berth {

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

void DeviceClasses::Put(DeviceClass added) {
  const MutexLock lock(mutex_);
  std::string name = added.name;
  by_name_.insert_or_assign(std::move(name), std::move(added));
}

void DeviceClasses::Remove(std::string_view name) {
  const MutexLock lock(mutex_);
  if (const auto known = by_name_.find(name); known != by_name_.end()) by_name_.erase(known);
}

void DeviceClasses::Reset(std::vector<DeviceClass> classes) {
  const MutexLock lock(mutex_);
  by_name_.clear();
  for (DeviceClass& each : classes) {
    std::string name = each.name;
    by_name_.insert_or_assign(std::move(name), std::move(each));
  }
}

}  // namespace berth
