// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/open_claims.h"

#include <algorithm>
#include <iterator>

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
