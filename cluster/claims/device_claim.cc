// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_claim.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

namespace berth {
namespace {

// Contents that a new claim is compared with.
constexpr int kMostCompared = 64;

std::size_t BytesOf(const std::vector<std::string>& texts) {
  std::size_t bytes = 0;
  for (const std::string& text : texts) bytes += sizeof(text) + text.size();
  return bytes;
}

// "namespace/UID" of the pod that a claim of that name was made for.
std::string PodOf(const std::string& claim, const std::string& uid) {
  return claim.substr(0, claim.find('/') + 1) + uid;
}

// About.
std::size_t BytesOf(const DeviceClaim& claim) {
  std::size_t bytes = sizeof(claim);
  for (const DeviceRequest& request : claim.requests) {
    bytes += sizeof(request) + request.name.size();
    for (const DeviceWant& want : request.wants) {
      bytes += sizeof(want) + want.name.size() + want.device_class.size();
      bytes += BytesOf(want.selectors) + 3 * want.tolerations_json.size();
      for (const auto& [name, milli] : want.capacity) bytes += 96 + name.size();
    }
  }
  for (const DeviceConstraint& constraint : claim.constraints) {
    bytes += sizeof(constraint) + constraint.attribute.size() + BytesOf(constraint.requests);
  }
  for (const DeviceConfig& config : claim.configs) {
    bytes += sizeof(config) + config.content.size() + BytesOf(config.requests);
  }
  return bytes;
}

}  // namespace

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

void OpenClaims::Put(Shown claims, bool replace_all) {
  const MutexLock lock(mutex_);
  if (replace_all) {
    claims_.clear();
    contents_.clear();
    made_for_.clear();
    bytes_ = 0;
  }
  for (auto& [name, known] : claims) {
    Drop(name);
    Judge(name, known);
    const auto content = known.asks == nullptr ? contents_.end() : Keep(std::move(known.asks));
    known.asks = content == contents_.end() ? nullptr : content->asks;
    if (!known.made_for.empty()) ++made_for_[PodOf(name, known.made_for)];
    claims_.emplace(std::move(name), Entry{std::move(known), content});
  }
}

void OpenClaims::Remove(const std::string& claim) {
  const MutexLock lock(mutex_);
  Drop(claim);
  awaited_.erase(claim);
}

void OpenClaims::Outdate(const std::string& claim, std::int64_t version) {
  if (version == 0) return;
  const MutexLock lock(mutex_);
  const auto shown = claims_.find(claim);
  if (shown != claims_.end()) {
    KnownClaim& known = shown->second.known;
    if (known.version >= version) return;
    known.allocated = false;
  }
  const auto awaited = awaited_.find(claim);
  if (awaited != awaited_.end()) {
    awaited->second = std::max(awaited->second, version);
    return;
  }
  if (awaited_.size() >= kMostAwaited) {  // the watch may have missed that a claim came and went
    for (auto entry = awaited_.begin(); entry != awaited_.end();) {
      entry = claims_.contains(entry->first) ? std::next(entry) : awaited_.erase(entry);
    }
  }
  if (awaited_.size() < kMostAwaited) awaited_.emplace(claim, version);
}

void OpenClaims::Judge(const std::string& claim, KnownClaim& known) {
  const auto awaited = awaited_.find(claim);
  if (awaited == awaited_.end() || known.version == 0) return;
  if (known.version >= awaited->second) {
    awaited_.erase(awaited);
  } else {
    known.allocated = false;
  }
}

std::optional<KnownClaim> OpenClaims::Find(const std::string& claim) const {
  const MutexLock lock(mutex_);
  const auto found = claims_.find(claim);
  if (found == claims_.end()) return std::nullopt;
  return found->second.known;
}

bool OpenClaims::IsMadeFor(const std::string& pod) const {
  const MutexLock lock(mutex_);
  return made_for_.contains(pod);
}

std::size_t OpenClaims::bytes() const {
  const MutexLock lock(mutex_);
  return bytes_;
}

void OpenClaims::Drop(const std::string& claim) {
  const auto found = claims_.find(claim);
  if (found == claims_.end()) return;
  const auto content = found->second.content;
  const auto made = made_for_.find(PodOf(claim, found->second.known.made_for));
  if (made != made_for_.end() && --made->second == 0) made_for_.erase(made);
  claims_.erase(found);
  if (content == contents_.end() || --content->claims > 0) return;
  bytes_ -= content->bytes;
  contents_.erase(content);
}

OpenClaims::Contents::iterator OpenClaims::Keep(std::shared_ptr<const DeviceClaim> asks) {
  int compared = 0;
  for (auto content = contents_.begin(); content != contents_.end(); ++content) {
    if (++compared > kMostCompared) break;
    if (*content->asks != *asks) continue;
    ++content->claims;
    return content;
  }
  const std::size_t bytes = BytesOf(*asks);
  if (bytes_ + bytes > most_bytes_) return contents_.end();
  bytes_ += bytes;
  contents_.push_front({std::move(asks), 1, bytes});
  return contents_.begin();
}

}  // namespace berth
