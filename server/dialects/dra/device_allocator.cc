// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/device_allocator.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "base/dns_name.h"
#include "scoring/priority.h"
#include "server/wire/json/object_meta.h"

namespace berth::dialects {
namespace {

std::vector<ClaimNode> NodesWithDevices(const DeviceOffers::ByNode& offers,
                                        const MigOffers::ByNode& mig, const Snapshot& snapshot,
                                        const ClaimNodes& nodes) {
  std::vector<ClaimNode> with_devices;
  for (std::size_t i = 0; i < nodes.names.size(); ++i) {
    const std::string& name = nodes.names[i];
    const auto devices = offers.find(name);
    if (devices == offers.end()) continue;
    ClaimNode& node = with_devices.emplace_back(ClaimNode{name, devices->second.get()});
    const NodeIndex index = snapshot.names().Find(name);
    if (index != kNoNode) node.node = &snapshot.node(index);
    const auto cut = mig.find(name);
    if (cut != mig.end()) node.mig = cut->second.get();
    if (!nodes.priorities.empty()) node.rank = kMaxPriority - nodes.priorities[i];
  }
  return with_devices;
}

// Which of its wants each request of the claim got.
std::vector<int> WantsGot(const ClaimChoice& choice, std::size_t claim, std::size_t requests) {
  std::vector<int> wants(requests);
  for (const ChosenDevice& device : choice.devices) {
    if (static_cast<std::size_t>(device.of.claim) != claim) continue;
    wants[static_cast<std::size_t>(device.of.request)] = device.of.option;
  }
  return wants;
}

constexpr Duration kLook = std::chrono::milliseconds(2);
// A device that was written is held until the watch shows the claim; that a watch takes longer than
// this to come back, and lists, is not expected.
constexpr Duration kMostHeld = std::chrono::minutes(5);
constexpr int kAttempts = 3;  // a device that went to another claim meanwhile is chosen anew

// Calls work(0), ..., work(count - 1), so many at a time. Few are soon done one after the other.
// One that throws, or for which there is no thread, is not done.
template <class Work>
void InParallel(std::size_t count, std::size_t most, const Work& work) {
  constexpr std::size_t kFew = 4;
  std::atomic<std::size_t> next = 0;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
    }
  };
  std::vector<std::jthread> helpers;
  try {
    for (std::size_t i = 1; i < std::min(count / kFew, most); ++i) helpers.emplace_back(run);
  } catch (...) {
  }
  run();
}

std::string NameOfClaim(const OpenClaim& claim) {
  return FullName(claim.namespace_name, claim.name);
}

}  // namespace

ClaimHold DeviceAllotment::HoldOf(std::size_t claim, std::string name) const {
  ClaimHold hold{std::move(name), node, {}};
  for (const ChosenDevice& device : devices) {
    if (static_cast<std::size_t>(device.of.claim) != claim) continue;
    DeviceName chosen = {device.pool, device.device};
    if (device.part) {
      AddUses(hold.parts[std::move(chosen)], *device.part);
    } else {
      hold.devices.push_back(std::move(chosen));
    }
  }
  return hold;
}

ClaimAllocation DeviceAllotment::AllocationOf(std::size_t claim, const DeviceClaim& asked) const {
  ClaimAllocation allocation{node, {}, configs[claim]};
  for (const ChosenDevice& device : devices) {
    if (static_cast<std::size_t>(device.of.claim) != claim) continue;
    const DeviceRequest& request = asked.requests[static_cast<std::size_t>(device.of.request)];
    const DeviceWant& want = request.wants[static_cast<std::size_t>(device.of.option)];
    allocation.results.push_back({&request, &want, device.driver, device.pool, device.device,
                                  device.part ? &*device.part : nullptr});
  }
  return allocation;
}

Result<DeviceAllotment> Allot(const std::vector<DeviceClaim>& claims,
                              const std::vector<int>& owners, const FindClass& find_class,
                              const DeviceOffers::ByNode& offers, const MigOffers::ByNode& mig,
                              const Snapshot& snapshot, const ClaimNodes& nodes) {
  BERTH_TRY(ClaimQuestion question, ClaimQuestion::Make(claims, find_class));
  question.OwnedBy(owners);
  if (question.WantsAllOfAnyDriver()) {
    return Invalid("it asks for all devices, and its selectors do not name their driver");
  }
  const auto with_devices = NodesWithDevices(offers, mig, snapshot, nodes);
  ClaimChoice choice = ChooseForClaims(question, with_devices, nodes.gpus);
  if (choice.end == SearchEnd::kUnknown) {
    return Invalid("it is not known which devices suit it, or takes too long to find out");
  }
  if (choice.end == SearchEnd::kError) return Invalid("a selector of it fails on a device");
  DeviceAllotment allotment;
  if (choice.end != SearchEnd::kFound) return allotment;
  allotment.node = with_devices[choice.node].name;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const auto wants = WantsGot(choice, i, claims[i].requests.size());
    allotment.configs.push_back(ConfigsOf(claims[i], wants, [&find_class](std::string_view name) {
      const auto found = find_class(name);
      return found ? found->configs : std::vector<DeviceConfig>();
    }));
  }
  allotment.devices = std::move(choice.devices);
  return allotment;
}

void DeviceAllocator::Ask(const PodId& pod, std::span<const std::string> claims) {
  MarkUnderWay(pod, claims, {.since = parts_.write.clock.Now() + kMost, .asked = true});
}

bool DeviceAllocator::Allocate(const PodId& pod, std::span<const std::string> claims,
                               std::span<const std::string> nodes, const ClaimWishes& wishes) {
  const Wanted wanted{pod, claims, nodes, &wishes};
  std::vector<std::string> harmless;
  const Outcome outcome = TryAllocate(std::span(&wanted, 1), EndFor(pod, claims), harmless);
  if (outcome == Outcome::kAllocated) ++allocated_;
  if (outcome == Outcome::kLeft) ++left_;
  if (outcome == Outcome::kLost) ++lost_;
  if (outcome == Outcome::kLeft || outcome == Outcome::kLost) Leave(pod, claims);
  Forget(pod, harmless);
  if (outcome == Outcome::kHasDevice) Forget(pod, claims);
  return outcome == Outcome::kAllocated;
}

// None of the pods goes on without its devices, so kube-scheduler allocates none of these claims,
// unless it has given up waiting for the first.
bool DeviceAllocator::AllocateTogether(std::span<const ClaimOrder> orders, Instant asked) {
  std::vector<Wanted> wanted;
  for (const ClaimOrder& order : orders) {
    wanted.push_back({order.pod, order.claims, std::span(&order.node, 1)});
  }
  std::vector<std::string> harmless;
  const Outcome outcome =
      TryAllocate(wanted, std::min(asked + kMost, parts_.write.fence.WritableUntil()), harmless);
  for (const ClaimOrder& order : orders) Forget(order.pod, order.claims);
  const bool allocated = outcome == Outcome::kAllocated || outcome == Outcome::kHasDevice;
  if (!allocated && !orders.empty() && parts_.write.clock.Now() >= asked + kMost) {
    Leave(orders.front().pod, orders.front().claims);
  }
  (allocated ? allocated_ : lost_) += orders.size();
  return allocated;
}

void DeviceAllocator::Forget(const PodId& pod, std::span<const std::string> claims) {
  const MutexLock lock(mutex_);
  for (const std::string& name : claims) under_way_.erase(FullName(pod.namespace_name, name));
}

void DeviceAllocator::Leave(const PodId& pod, std::span<const std::string> claims) {
  MarkUnderWay(pod, claims, {.since = parts_.write.clock.Now()});
}

void DeviceAllocator::ToldByName(const PodId& pod, bool fits) {
  const Instant now = parts_.write.clock.Now();
  const std::string name = FullName(pod.namespace_name, pod.uid);
  const MutexLock lock(mutex_);
  by_name_.erase(name);
  if (!fits) return;
  if (by_name_.size() >= kMostUnderWay) DropFinished();
  if (by_name_.size() >= kMostUnderWay) {
    crowded_until_ = std::max(crowded_until_, now + kMostMaking);
  } else {
    by_name_.emplace(name, now);
  }
}

void DeviceAllocator::MarkUnderWay(const PodId& pod, std::span<const std::string> claims,
                                   const Left& left) {
  const MutexLock lock(mutex_);
  for (const std::string& name : claims) {
    std::string claim = FullName(pod.namespace_name, name);
    if (under_way_.size() >= kMostUnderWay) DropFinished();
    if (under_way_.size() >= kMostUnderWay && !under_way_.contains(claim)) {
      crowded_until_ = left.since + kMostBinding;  // it is not known when this one is over
      continue;
    }
    under_way_.insert_or_assign(std::move(claim), left);
  }
}

Instant DeviceAllocator::EndFor(const PodId& pod, std::span<const std::string> claims) {
  Instant end = std::min(parts_.write.clock.Now() + kMost, parts_.write.fence.WritableUntil());
  const MutexLock lock(mutex_);
  for (const std::string& claim : claims) {
    const auto found = under_way_.find(FullName(pod.namespace_name, claim));
    if (found != under_way_.end() && found->second.asked) end = std::min(end, found->second.since);
  }
  return end;
}

DeviceAllocator::Outcome DeviceAllocator::TryAllocate(std::span<const Wanted> wanted, Instant end,
                                                      std::vector<std::string>& harmless) {
  std::vector<std::string> full_names;
  for (const Wanted& each : wanted) {
    for (const std::string& name : each.claims) {
      full_names.push_back(FullName(each.pod.namespace_name, name));
    }
  }
  std::vector<Open> open;
  const Outcome read = Read(wanted, end, open);
  for (const Open& each : open) {
    if (each.claim.takes_nothing) harmless.push_back(each.claim.name);
  }
  if (read != Outcome::kAllocated) return read;
  if (AllocatesOthers(full_names)) return Outcome::kLeft;
  std::vector<Share> shares;
  const Outcome chosen = Choose(open, shares);
  return chosen == Outcome::kAllocated ? Write(open, shares, end) : chosen;
}

DeviceAllocator::Outcome DeviceAllocator::Read(std::span<const Wanted> wanted, Instant end,
                                               std::vector<Open>& open) {
  std::vector<Open> all;
  for (const Wanted& each : wanted) {
    if (each.claims.size() > kMostClaims) {
      Note(false, "a pod's claims are left to kube-scheduler: they are more than " +
                      std::to_string(kMostClaims));
      return Outcome::kLeft;
    }
    for (const std::string& name : each.claims) {
      auto path = kube::ClaimPath(each.pod.namespace_name, name);
      if (!path) {
        Note(true, path.error().message);
        return Outcome::kLost;
      }
      if (std::ranges::find(all, *path, &Open::path) != all.end()) continue;  // named twice
      all.push_back({each.pod, *std::move(path), {}, each.nodes, each.wishes});
    }
  }
  std::vector<std::optional<Result<OpenClaim>>> claims(all.size());
  InParallel(all.size(), kMostWriters,
             [&](std::size_t i) { claims[i] = Send({.path = all[i].path}, end); });
  std::string_view obstacle;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!claims[i]) return Outcome::kLost;  // memory has run out
    if (!*claims[i]) {
      Note(true, "claims cannot be read: " + claims[i]->error().message);
      return Outcome::kLost;
    }
    all[i].claim = **std::move(claims[i]);
    if (all[i].claim.allocated) continue;
    if (obstacle.empty()) obstacle = all[i].claim.obstacle;
    open.push_back(std::move(all[i]));
  }
  if (open.empty()) return Outcome::kHasDevice;
  if (obstacle.empty()) return Outcome::kAllocated;
  Note(false, "a claim is left to kube-scheduler: " + std::string(obstacle));
  return Outcome::kLeft;
}

bool DeviceAllocator::Fill(const std::vector<Open>& open, const DeviceOffers::ByNode& offers,
                           Share& share) {
  const auto find_class = [this](std::string_view name) { return parts_.classes.Named(name); };
  std::vector<DeviceClaim> claims;
  std::vector<int> owners;
  std::map<std::string_view, int> pods;
  for (const std::size_t i : share.open) {
    claims.push_back(open[i].claim.asks);
    owners.push_back(
        pods.try_emplace(open[i].pod.uid, static_cast<int>(pods.size())).first->second);
  }
  const Open& first = open[share.open.front()];
  std::optional<RequestShape> gpus;
  std::vector<std::uint8_t> priorities;
  if (first.wishes != nullptr) gpus = WholeGpusOf(claims, find_class, first.wishes->shape);
  if (gpus && first.wishes->priorities) priorities = first.wishes->priorities(*gpus);
  auto found = Allot(claims, owners, find_class, offers, *parts_.mig.Current(),
                     *parts_.state.Current(), {first.nodes, priorities, gpus ? &*gpus : nullptr});
  if (!found) {
    Note(false, "a claim is left to kube-scheduler: " + found.error().message);
    return false;
  }
  share.allotment = *std::move(found);
  return !share.allotment.node.empty();  // else nobody has them
}

DeviceAllocator::Outcome DeviceAllocator::Choose(const std::vector<Open>& open,
                                                 std::vector<Share>& shares) {
  for (std::size_t i = 0; i < open.size(); ++i) {
    const auto same = std::ranges::find_if(shares, [&](const Share& share) {
      return std::ranges::equal(open[share.open.front()].nodes, open[i].nodes);
    });
    same == shares.end() ? shares.push_back({{i}, {}}) : same->open.push_back(i);
  }
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto offers = parts_.claims.devices().Current();
    std::vector<ClaimHold> holds;
    for (Share& share : shares) {
      if (!Fill(open, *offers, share)) return Outcome::kLeft;
      for (std::size_t k = 0; k < share.open.size(); ++k) {
        holds.push_back(share.allotment.HoldOf(k, NameOfClaim(open[share.open[k]].claim)));
      }
    }
    const Instant now = parts_.write.clock.Now();
    if (parts_.claims.devices().Hold(*offers, holds, now, now + kMostHeld)) {
      return Outcome::kAllocated;
    }
  }
  return Outcome::kLeft;
}

DeviceAllocator::Outcome DeviceAllocator::Write(const std::vector<Open>& open,
                                                const std::vector<Share>& shares, Instant end) {
  kube::FencedWrite write(parts_.write.fence);
  end = std::min(end, parts_.write.fence.WritableUntil());
  std::vector<ClaimAllocation> allocations(open.size());
  for (const Share& share : shares) {
    for (std::size_t k = 0; k < share.open.size(); ++k) {
      const std::size_t i = share.open[k];
      allocations[i] = share.allotment.AllocationOf(k, open[i].claim.asks);
    }
  }
  std::vector<Written> results(open.size());
  std::atomic<bool> failed = false;
  results.front() = WriteOne(open.front(), allocations.front(), end);
  if (!*results.front().claim) failed = true;
  InParallel(open.size() - 1, kMostWriters, [&](std::size_t before) {
    const std::size_t i = before + 1;
    if (failed) return;
    results[i] = WriteOne(open[i], allocations[i], end);
    if (!*results[i].claim) failed = true;
  });
  std::vector<Open> written;
  for (std::size_t i = 0; i < open.size(); ++i) {
    auto& [claim, began] = results[i];
    if (claim && *claim) {
      written.push_back({open[i].pod, open[i].path, **std::move(claim), {}, nullptr});
      continue;
    }
    // Without an answer it may be allocated: until the watch shows it, its devices are held.
    const bool unknown = claim && claim->error().code == Errc::kUnavailable;
    if (unknown) write.Unanswered();
    if (!(began && unknown)) parts_.claims.devices().Release(NameOfClaim(open[i].claim));
    if (claim && claim->error().code != Errc::kConflict) {
      Note(true, "claims cannot be allocated: " + claim->error().message);
    }
  }
  if (written.size() < open.size()) {
    TakeBack(written);
    parts_.write.sleep(kItsDelay);  // what is written all the same reaches kube-scheduler first
    return Outcome::kLost;
  }
  AwaitSeen(written, end);
  return Outcome::kAllocated;
}

DeviceAllocator::Written DeviceAllocator::WriteOne(const Open& open,
                                                   const ClaimAllocation& allocation,
                                                   Instant end) const {
  OpenClaim claim = open.claim;
  if (!claim.has_finalizer()) {
    auto with_finalizer = Send(kube::MergePatch(open.path, EncodeFinalizerPatch(claim), {}), end);
    if (!with_finalizer) return {std::move(with_finalizer), false};
    claim = *std::move(with_finalizer);
  }
  std::string patch = EncodeAllocationPatch(claim, allocation, open.pod, parts_.write.clock.Wall());
  return {Send(kube::MergePatch(open.path + "/status", std::move(patch), {}), end), true};
}

// With time of its own: what was written may have taken all that there was.
void DeviceAllocator::TakeBack(const std::vector<Open>& written) {
  const Instant end =
      std::min(parts_.write.clock.Now() + kMost, parts_.write.fence.WritableUntil());
  InParallel(written.size(), kMostWriters, [&](std::size_t i) {
    const Open& each = written[i];
    const auto back =
        Send(kube::MergePatch(each.path + "/status", EncodeDeallocationPatch(each.claim), {}), end);
    // One that stays allocated is reserved for its pod, which goes to that node, or kube-scheduler
    // deallocates it. The watch tells.
    const std::string name = NameOfClaim(each.claim);
    if (back) parts_.claims.devices().Release(name);
    // Without an answer it may be taken back all the same, and kube-scheduler's to allocate.
    const std::int64_t version = wire::VersionNumber(each.claim.resource_version);
    if (!back && back.error().code == Errc::kUnavailable) {
      parts_.claims.open().Outdate(name, version + 1);
    }
  });
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
  parts_.claims.open().Outdate(NameOfClaim(*claim), wire::VersionNumber(claim->resource_version));
  return claim;
}

void DeviceAllocator::AwaitSeen(const std::vector<Open>& claims, Instant end) const {
  const auto is_seen = [this](const Open& each) {
    const auto known = parts_.claims.open().Find(NameOfClaim(each.claim));
    return known && known->allocated;
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
    if (std::ranges::none_of(under_way_, is_since(now)) && by_name_.empty()) return false;
    if (std::ranges::any_of(under_way_, is_since(now - kFresh))) return true;
    const auto is_old = [now](const auto& entry) { return entry.second <= now - kFresh; };
    if (std::ranges::any_of(by_name_, is_old)) return true;
  }
}

void DeviceAllocator::DropFinished() {
  const Instant now = parts_.write.clock.Now();
  std::erase_if(by_name_, [&](const auto& entry) {
    return entry.second <= now - kMostMaking || parts_.claims.open().IsMadeFor(entry.first);
  });
  const Instant oldest = now - kMostBinding;
  for (auto entry = under_way_.begin(); entry != under_way_.end();) {
    auto& [claim, left] = *entry;
    const auto known = parts_.claims.open().Find(claim);
    const bool is_gone = left.seen && !known;
    left.seen = left.seen || known;
    const bool is_over = is_gone || (known && known->allocated) || left.since <= oldest;
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
