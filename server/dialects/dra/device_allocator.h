// SPDX-License-Identifier: Apache-2.0
//
// DeviceAllocator: chooses the MIG device of a ResourceClaim and writes it into the claim, before
// kube-scheduler would take the first that fits. It serves pods with one claim, not allocated, that
// asks for one device of class mig.nvidia.com by its profile (wire/claim_json.h). From then on the
// pod fits only the node of that device.
//
// Claims of other kinds, and those for which a write failed, are left to kube-scheduler. Its
// allocator and this one must not take one device for two claims, and neither sees at once what the
// other does:
//
//   its allocation is in its memory first  From when a pod with an open claim is left to it (or its
//                                          filter has waited for kMost: kube-scheduler may have
//                                          given that up), until the watch shows that claim
//                                          allocated or gone (at the latest after kMostBinding), no
//                                          device is chosen: a claim that comes in between waits
//                                          for kFresh, then it is left to kube-scheduler too.
//   ours has to reach its memory           It schedules nothing else while it waits for Filter. The
//                                          answer comes when our own watch has shown the write, and
//                                          kItsDelay later.
//
// What slips through all the same (an API server whose watches are seconds apart) is counted by
// DeviceClaims::overlapping.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/claims/mig_offers.h"
#include "server/dialects/dra/claim_json.h"
#include "server/dialects/dra/device_claims.h"
#include "server/extender/ports.h"
#include "server/kube/client/api_client.h"
#include "server/kube/write/write_context.h"

namespace berth::dialects {

// Any thread may call any function.
class DeviceAllocator final : public ClaimAllocator {
 public:
  // For reading, both writes, and seeing them, from when the pod was asked about: half of the
  // httpTimeout of the shipped scheduler configurations.
  static constexpr Duration kMost = std::chrono::milliseconds(1000);
  static constexpr Duration kItsDelay = std::chrono::milliseconds(20);
  // Mostly it writes at once what it has allocated.
  static constexpr Duration kFresh = std::chrono::milliseconds(500);
  // kube-scheduler waits for volumes for so long before it writes a claim (bindTimeoutSeconds).
  static constexpr Duration kMostBinding = std::chrono::minutes(10);
  // Claims that are remembered as left to kube-scheduler.
  static constexpr std::size_t kMostUnderWay = 4096;

  // References: they outlive the object.
  struct Parts {
    kube::WriteContext write;
    MigOffers& offers;
    const DeviceClaims& claims;
    // Why claims are left to kube-scheduler, each reason once. Any thread; must not block.
    std::function<void(bool is_problem, const std::string& text)> on_note;
  };

  explicit DeviceAllocator(Parts parts) : parts_(std::move(parts)) {}

  void Ask(const PodId& pod, std::span<const std::string> claims) override BERTH_EXCLUDES(mutex_);
  bool Allocate(const PodId& pod, std::span<const std::string> claims,
                std::span<const std::string> nodes) override BERTH_EXCLUDES(mutex_);
  void Leave(const PodId& pod, std::span<const std::string> claims) override BERTH_EXCLUDES(mutex_);

  struct Stats {
    std::uint64_t allocated = 0;
    std::uint64_t left = 0;  // to kube-scheduler: no claim for us, or it allocates others just now
    std::uint64_t lost = 0;  // somebody else was first, or the write failed
  };
  [[nodiscard]] Stats stats() const { return {allocated_.load(), left_.load(), lost_.load()}; }

 private:
  enum class Outcome { kAllocated, kLeft, kLost, kHasDevice };
  // A claim that kube-scheduler may allocate.
  struct Left {
    Instant since;       // from then on, which is to come where its filter is being answered
    bool asked = false;  // that it was asked about, and Allocate has not ended
    bool seen = false;   // by our watch
  };

  void MarkUnderWay(const PodId& pod, std::span<const std::string> claims, const Left& left)
      BERTH_EXCLUDES(mutex_);
  // Until when the claim may be allocated: what it waited in a queue counts.
  [[nodiscard]] Instant EndFor(const std::string& claim) BERTH_EXCLUDES(mutex_);

  Outcome TryAllocate(const PodId& pod, const std::string& name, std::span<const std::string> nodes)
      BERTH_EXCLUDES(mutex_);
  Outcome Write(const std::string& path, const OpenClaim& claim, const OfferedDevice& device,
                const PodId& pod, Instant end);
  Result<OpenClaim> Send(kube::ApiRequest request, Instant end) const;
  void AwaitSeen(const std::string& claim, Instant end) const;
  // Whether kube-scheduler may be allocating another claim than this one; waits where that will
  // soon be over.
  bool AllocatesOthers(const std::string& claim) BERTH_EXCLUDES(mutex_);
  void DropFinished() BERTH_REQUIRES(mutex_);
  void Note(bool is_problem, const std::string& why) BERTH_EXCLUDES(mutex_);

  const Parts parts_;
  std::atomic<std::uint64_t> allocated_{0}, left_{0}, lost_{0};
  Mutex mutex_;
  std::map<std::string, Left> under_way_ BERTH_GUARDED_BY(mutex_);
  // There were more than kMostUnderWay: until then kube-scheduler may allocate one not among them.
  Instant crowded_until_ BERTH_GUARDED_BY(mutex_) = Instant::min();
  std::set<std::string> noted_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::dialects
