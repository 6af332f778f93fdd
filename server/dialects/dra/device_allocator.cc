// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_allocator.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "scoring/mig/offer_choice.h"
#include "server/kube/client/api_path.h"

namespace berth::dialects {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(2);
// A device that was written is held until the watch shows the claim; that a watch takes longer than
// this to come back, and lists, is not expected.
constexpr Duration kMostHeld = std::chrono::minutes(5);
constexpr int kAttempts = 3;  // a device that went to another claim meanwhile is chosen anew

kube::ApiRequest Patch(std::string path, std::string body) {
  kube::ApiRequest request;
  request.method = "PATCH";
  request.path = std::move(path);
  request.body = std::move(body);
  request.content_type = "application/merge-patch+json";
  return request;
}

}  // namespace

void DeviceAllocator::Ask(const PodId& pod, std::span<const std::string> claims) {
  MarkUnderWay(pod, claims, {.since = parts_.write.clock.Now() + kMost, .asked = true});
}

bool DeviceAllocator::Allocate(const PodId& pod, std::span<const std::string> claims,
                               std::span<const std::string> nodes) {
  const Outcome outcome =
      claims.size() == 1 ? TryAllocate(pod, claims.front(), nodes) : Outcome::kLeft;
  if (outcome == Outcome::kAllocated) ++allocated_;
  if (outcome == Outcome::kLeft) ++left_;
  if (outcome == Outcome::kLost) ++lost_;
  if (outcome == Outcome::kLeft || outcome == Outcome::kLost) Leave(pod, claims);
  if (outcome == Outcome::kHasDevice) {
    const MutexLock lock(mutex_);
    under_way_.erase(pod.namespace_name + "/" + claims.front());
  }
  return outcome == Outcome::kAllocated;
}

void DeviceAllocator::Leave(const PodId& pod, std::span<const std::string> claims) {
  MarkUnderWay(pod, claims, {.since = parts_.write.clock.Now()});
}

void DeviceAllocator::MarkUnderWay(const PodId& pod, std::span<const std::string> claims,
                                   const Left& left) {
  const MutexLock lock(mutex_);
  for (const std::string& name : claims) {
    std::string claim = pod.namespace_name + "/" + name;
    if (under_way_.size() >= kMostUnderWay) DropFinished();
    if (under_way_.size() >= kMostUnderWay && !under_way_.contains(claim)) {
      crowded_until_ = left.since + kMostBinding;  // it is not known when this one is over
      continue;
    }
    under_way_.insert_or_assign(std::move(claim), left);
  }
}

Instant DeviceAllocator::EndFor(const std::string& claim) {
  const Instant end =
      std::min(parts_.write.clock.Now() + kMost, parts_.write.fence.WritableUntil());
  const MutexLock lock(mutex_);
  const auto found = under_way_.find(claim);
  const bool was_asked = found != under_way_.end() && found->second.asked;
  return was_asked ? std::min(end, found->second.since) : end;
}

DeviceAllocator::Outcome DeviceAllocator::TryAllocate(const PodId& pod, const std::string& name,
                                                      std::span<const std::string> nodes) {
  const std::string full_name = pod.namespace_name + "/" + name;
  const Instant now = parts_.write.clock.Now();
  const Instant end = EndFor(full_name);
  const auto path = kube::ClaimPath(pod.namespace_name, name);
  if (!path) {
    Note(true, path.error().message);
    return Outcome::kLost;
  }
  const auto claim = Send({.path = *path}, end);
  if (!claim) {
    Note(true, "claims cannot be read: " + claim.error().message);
    return Outcome::kLost;
  }
  if (claim->allocated) return Outcome::kHasDevice;
  if (!claim->obstacle.empty()) {
    Note(false, "a claim is left to kube-scheduler: " + std::string(claim->obstacle));
    return Outcome::kLeft;
  }
  if (AllocatesOthers(full_name)) return Outcome::kLeft;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto device = ChooseOffered(*parts_.offers.Current(), claim->profile, nodes);
    if (!device) break;
    if (parts_.offers.Hold(full_name, *device, now, now + kMostHeld)) {
      return Write(*path, *claim, *device, pod, end);
    }
  }
  return Outcome::kLeft;
}

DeviceAllocator::Outcome DeviceAllocator::Write(const std::string& path, const OpenClaim& claim,
                                                const OfferedDevice& device, const PodId& pod,
                                                Instant end) {
  kube::FencedWrite write(parts_.write.fence);
  end = std::min(end, parts_.write.fence.WritableUntil());
  const std::string name = claim.namespace_name + "/" + claim.name;
  Result<OpenClaim> ours = claim;
  if (!claim.has_finalizer()) ours = Send(Patch(path, EncodeFinalizerPatch(claim)), end);
  const bool may_go_on = ours.has_value();
  if (may_go_on) {
    const ClaimAllocation allocation{device.node, device.pool, device.device};
    ours = Send(Patch(path + "/status",
                      EncodeAllocationPatch(*ours, allocation, pod, parts_.write.clock.Wall())),
                end);
  }
  if (ours) {
    AwaitSeen(name, end);
    return Outcome::kAllocated;
  }
  // Without an answer it may be allocated all the same: the watch will show it, and until then the
  // device is held.
  if (ours.error().code == Errc::kUnavailable) write.Unanswered();
  if (!may_go_on || ours.error().code != Errc::kUnavailable) parts_.offers.Release(name);
  if (ours.error().code != Errc::kConflict) {
    Note(true, "claims cannot be allocated: " + ours.error().message);
  }
  return Outcome::kLost;
}

Result<OpenClaim> DeviceAllocator::Send(kube::ApiRequest request, Instant end) const {
  const Instant now = parts_.write.clock.Now();
  if (end <= now)
    return Fail(Errc::kDeadline, "no time is left, or this process is not the leader");
  request.timeout = end - now;
  BERTH_TRY(kube::ApiResponse response, parts_.write.client.Send(request));
  if (response.status == 409) return Fail(Errc::kConflict, kube::RefusalText(response));
  if (response.status >= 500) return Fail(Errc::kUnavailable, kube::RefusalText(response));
  if (!response.ok()) return Invalid(kube::RefusalText(response));
  auto claim = DecodeOpenClaim(PaddedText(std::move(response.body)));
  if (!claim) return Fail(Errc::kUnavailable, std::move(claim).error().message);
  return claim;
}

void DeviceAllocator::AwaitSeen(const std::string& claim, Instant end) const {
  while (parts_.claims.SeenOf(claim) != DeviceClaims::Seen::kAllocated &&
         parts_.write.clock.Now() < end) {
    parts_.write.sleep(kLook);
  }
  parts_.write.sleep(kItsDelay);
}

bool DeviceAllocator::AllocatesOthers(const std::string& claim) {
  for (;; parts_.write.sleep(kLook)) {
    const Instant now = parts_.write.clock.Now();
    const MutexLock lock(mutex_);
    under_way_.erase(claim);  // its pod is asked about anew: that try is over
    DropFinished();
    if (now < crowded_until_) return true;
    const auto is_since = [](Instant when) {
      return [when](const auto& entry) { return entry.second.since <= when; };
    };
    if (std::ranges::none_of(under_way_, is_since(now))) return false;
    if (std::ranges::any_of(under_way_, is_since(now - kFresh))) return true;
  }
}

void DeviceAllocator::DropFinished() {
  const Instant oldest = parts_.write.clock.Now() - kMostBinding;
  for (auto entry = under_way_.begin(); entry != under_way_.end();) {
    auto& [claim, left] = *entry;
    const DeviceClaims::Seen seen = parts_.claims.SeenOf(claim);
    const bool is_gone = left.seen && seen == DeviceClaims::Seen::kNever;
    left.seen = left.seen || seen != DeviceClaims::Seen::kNever;
    const bool is_over = is_gone || seen == DeviceClaims::Seen::kAllocated || left.since <= oldest;
    entry = is_over ? under_way_.erase(entry) : std::next(entry);
  }
}

void DeviceAllocator::Note(bool is_problem, const std::string& why) {
  constexpr std::size_t kMostNotes = 100;  // texts of an API server may differ each time
  {
    const MutexLock lock(mutex_);
    if (noted_.size() >= kMostNotes || !noted_.insert(why).second) return;
  }
  parts_.on_note(is_problem, why);
}

}  // namespace berth::dialects
