// SPDX-License-Identifier: Apache-2.0
//
// Dynamic resource allocation: ResourceSlices, ResourceClaims and DeviceClasses are watched, and
// the MIG device of an open claim is chosen before kube-scheduler does.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "server/dialects/dra/device_claims.h"
#include "server/kube/watch/watch_source.h"

namespace berth::dialects {

// ClaimCollisions: two claims that have one device (DeviceClaims::collisions). Nothing at the API
// server refuses that, and the driver starts the pod of one of them alone. Both pods get an Event,
// and the device is taken from the claim whose pod does not run, the younger one if neither
// does:
//
//   pod without a node      its claim is deallocated; it gets other devices. Not while
//                           kube-scheduler is about to bind it (nominatedNodeName)
//   bound, nothing started  it is evicted, if a controller makes it anew: a bound pod gets no other
//                           devices
//   else                    nothing: people delete one of the pods
//
// How it comes about: device_allocator.h. One thread at a time.

class ClaimCollisions {
 public:
  // Binds and deallocations that are under way end by then.
  static constexpr Duration kSettles = std::chrono::seconds(5);
  static constexpr Duration kAgain = std::chrono::minutes(1);
  // One collision in each look, and all requests for it but an eviction. Others have their turn in
  // the next looks.
  static constexpr Duration kMostOfALook = std::chrono::seconds(1);

  // The claims outlive it, and what the context names.
  ClaimCollisions(const kube::ExtensionContext& context, const DeviceClaims& claims)
      : context_(context), claims_(claims) {}

  // Call it about once a second. Does nothing where another process leads.
  void Look();
  // Claims that were deallocated, or whose pod was evicted.
  [[nodiscard]] std::uint64_t taken_back() const { return taken_back_.load(); }

 private:
  struct Known {
    Instant next;
    bool told = false;
  };
  struct Holder;  // a claim, and its pod
  enum class End { kKept, kDeallocated, kEvicted };

  // False: one of them is not as the watch has shown it.
  bool Settle(const DeviceClaims::Collision& collision, bool tells);
  Result<Holder> Read(const std::string& claim, const std::string& device) const;
  // Kept: it runs, or nothing is to be done about it.
  End TakeFrom(const Holder& holder);
  Result<kube::ApiResponse> Send(kube::ApiRequest request) const;

  const kube::ExtensionContext context_;
  const DeviceClaims& claims_;
  std::map<DeviceClaims::Collision, Known> known_;
  Instant end_{};  // of the look
  std::atomic<std::uint64_t> taken_back_{0};
};

// References: they outlive the extension. chooses: the devices of claims are chosen. Where they are
// not, only whole GPUs are kept of what slices publish: with dynamic MIG a node has some hundred
// devices more.
std::unique_ptr<kube::ClusterExtension> WatchDra(const kube::ExtensionContext& context,
                                                 const DeviceClaims::Tables& tables, bool chooses);

}  // namespace berth::dialects
