// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_allocator.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

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

std::string NameOfClaim(const PodId& pod, const std::string& claim) {
  return pod.namespace_name + "/" + claim;
}

std::string NameOfClaim(const OpenClaim& claim) { return claim.namespace_name + "/" + claim.name; }

}  // namespace

void DeviceAllocator::Ask(const PodId& pod, std::span<const std::string> claims) {
  MarkUnderWay(pod, claims, {.since = parts_.write.clock.Now() + kMost, .asked = true});
}

bool DeviceAllocator::Allocate(const PodId& pod, std::span<const std::string> claims,
                               std::span<const std::string> nodes) {
  const Outcome outcome = TryAllocate(pod, {claims.begin(), claims.end()}, nodes);
  if (outcome == Outcome::kAllocated) ++allocated_;
  if (outcome == Outcome::kLeft) ++left_;
  if (outcome == Outcome::kLost) ++lost_;
  if (outcome == Outcome::kLeft || outcome == Outcome::kLost) Leave(pod, claims);
  if (outcome == Outcome::kHasDevice) {
    const MutexLock lock(mutex_);
    for (const std::string& name : claims) under_way_.erase(NameOfClaim(pod, name));
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
    std::string claim = NameOfClaim(pod, name);
    if (under_way_.size() >= kMostUnderWay) DropFinished();
    if (under_way_.size() >= kMostUnderWay && !under_way_.contains(claim)) {
      crowded_until_ = left.since + kMostBinding;  // it is not known when this one is over
      continue;
    }
    under_way_.insert_or_assign(std::move(claim), left);
  }
}

Instant DeviceAllocator::EndFor(std::span<const std::string> claims) {
  Instant end = std::min(parts_.write.clock.Now() + kMost, parts_.write.fence.WritableUntil());
  const MutexLock lock(mutex_);
  for (const std::string& claim : claims) {
    const auto found = under_way_.find(claim);
    if (found != under_way_.end() && found->second.asked) end = std::min(end, found->second.since);
  }
  return end;
}

DeviceAllocator::Outcome DeviceAllocator::TryAllocate(const PodId& pod,
                                                      const std::set<std::string>& names,
                                                      std::span<const std::string> nodes) {
  std::vector<std::string> full_names;
  for (const std::string& name : names) full_names.push_back(NameOfClaim(pod, name));
  const Instant end = EndFor(full_names);
  std::vector<Open> open;
  const Outcome read = Read(pod, names, end, open);
  if (read != Outcome::kAllocated) return read;
  if (AllocatesOthers(full_names)) return Outcome::kLeft;
  DeviceAllotment allotment;
  const Outcome chosen = Choose(open, nodes, allotment);
  return chosen == Outcome::kAllocated ? Write(open, allotment, pod, end) : chosen;
}

DeviceAllocator::Outcome DeviceAllocator::Read(const PodId& pod, const std::set<std::string>& names,
                                               Instant end, std::vector<Open>& open) {
  if (names.size() > kMostClaims) {
    Note(false, "a pod's claims are left to kube-scheduler: they are more than " +
                    std::to_string(kMostClaims));
    return Outcome::kLeft;
  }
  std::string_view obstacle;
  for (const std::string& name : names) {
    const auto path = kube::ClaimPath(pod.namespace_name, name);
    if (!path) {
      Note(true, path.error().message);
      return Outcome::kLost;
    }
    auto claim = Send({.path = *path}, end);
    if (!claim) {
      Note(true, "claims cannot be read: " + claim.error().message);
      return Outcome::kLost;
    }
    if (claim->allocated) continue;
    if (obstacle.empty()) obstacle = claim->obstacle;
    open.push_back({*path, *std::move(claim)});
  }
  if (open.empty()) return Outcome::kHasDevice;
  if (obstacle.empty()) return Outcome::kAllocated;
  Note(false, "a claim is left to kube-scheduler: " + std::string(obstacle));
  return Outcome::kLeft;
}

DeviceAllocator::Outcome DeviceAllocator::Choose(const std::vector<Open>& open,
                                                 std::span<const std::string> nodes,
                                                 DeviceAllotment& allotment) {
  std::vector<DeviceClaim> claims;
  for (const Open& each : open) claims.push_back(each.claim.asks);
  const auto find_class = [this](std::string_view name) { return parts_.classes.Named(name); };
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto offers = parts_.claims.devices().Current();
    const auto found =
        Allot(claims, find_class, *offers, *parts_.mig.Current(), *parts_.state.Current(), nodes);
    if (!found) {
      Note(false, "a claim is left to kube-scheduler: " + found.error().message);
      return Outcome::kLeft;
    }
    if (found->node.empty()) break;  // nobody has them
    std::vector<ClaimHold> holds;
    for (std::size_t i = 0; i < open.size(); ++i) {
      holds.push_back({NameOfClaim(open[i].claim), found->DevicesOf(i)});
    }
    const Instant now = parts_.write.clock.Now();
    if (parts_.claims.devices().Hold(found->node, offers->find(found->node)->second, holds, now,
                                     now + kMostHeld)) {
      allotment = *found;
      return Outcome::kAllocated;
    }
  }
  return Outcome::kLeft;
}

DeviceAllocator::Outcome DeviceAllocator::Write(const std::vector<Open>& open,
                                                const DeviceAllotment& allotment, const PodId& pod,
                                                Instant end) {
  kube::FencedWrite write(parts_.write.fence);
  end = std::min(end, parts_.write.fence.WritableUntil());
  std::vector<Open> written;
  for (std::size_t i = 0; i < open.size(); ++i) {
    bool began = false;
    auto ours = WriteOne(open[i], allotment.AllocationOf(i, open[i].claim.asks), pod, end, began);
    if (ours) {
      written.push_back({open[i].path, *std::move(ours)});
      continue;
    }
    // Without an answer it may be allocated all the same: the watch will show it, and until then
    // its devices are held.
    const bool unknown = ours.error().code == Errc::kUnavailable;
    if (unknown) write.Unanswered();
    for (std::size_t k = began && unknown ? i + 1 : i; k < open.size(); ++k) {
      parts_.claims.devices().Release(NameOfClaim(open[k].claim));
    }
    if (ours.error().code != Errc::kConflict) {
      Note(true, "claims cannot be allocated: " + ours.error().message);
    }
    TakeBack(written, end);
    parts_.write.sleep(kItsDelay);  // what is written all the same reaches kube-scheduler first
    return Outcome::kLost;
  }
  AwaitSeen(written, end);
  return Outcome::kAllocated;
}

Result<OpenClaim> DeviceAllocator::WriteOne(const Open& open, const ClaimAllocation& allocation,
                                            const PodId& pod, Instant end, bool& began) const {
  OpenClaim claim = open.claim;
  if (!claim.has_finalizer()) {
    BERTH_TRY(claim, Send(Patch(open.path, EncodeFinalizerPatch(claim)), end));
  }
  began = true;
  return Send(Patch(open.path + "/status",
                    EncodeAllocationPatch(claim, allocation, pod, parts_.write.clock.Wall())),
              end);
}

void DeviceAllocator::TakeBack(const std::vector<Open>& written, Instant end) {
  for (const Open& each : written) {
    const auto back = Send(Patch(each.path + "/status", EncodeDeallocationPatch(each.claim)), end);
    // One that stays allocated is reserved for its pod, which goes to that node, or kube-scheduler
    // deallocates it. The watch tells.
    if (back) parts_.claims.devices().Release(NameOfClaim(each.claim));
  }
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

void DeviceAllocator::AwaitSeen(const std::vector<Open>& claims, Instant end) const {
  const auto is_seen = [this](const Open& each) {
    return parts_.claims.SeenOf(NameOfClaim(each.claim)) == DeviceClaims::Seen::kAllocated;
  };
  while (!std::ranges::all_of(claims, is_seen) && parts_.write.clock.Now() < end) {
    parts_.write.sleep(kLook);
  }
  parts_.write.sleep(kItsDelay);
}

bool DeviceAllocator::AllocatesOthers(const std::vector<std::string>& claims) {
  for (;; parts_.write.sleep(kLook)) {
    const Instant now = parts_.write.clock.Now();
    const MutexLock lock(mutex_);
    for (const std::string& claim : claims) {
      under_way_.erase(claim);  // its pod is asked about anew: that try is over
    }
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
