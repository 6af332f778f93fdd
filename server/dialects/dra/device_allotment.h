// SPDX-License-Identifier: Apache-2.0
//
// DeviceAllotment: the node, and the devices there that each of a pod's claims is to get, as the
// allocation that is written into it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/claims/mig_offers.h"
#include "cluster/state/snapshot.h"
#include "scoring/claims/claim_choice.h"
#include "server/dialects/dra/claim_json.h"

namespace berth::dialects {

struct DeviceAllotment {
  std::string node;  // empty: no node has the devices
  std::vector<ChosenDevice> devices;
  std::vector<std::vector<AllocationConfig>> configs;  // by claim

  [[nodiscard]] std::vector<DeviceName> DevicesOf(std::size_t claim) const;
  // Requires: that claim, as it was asked for, for as long as the result lives.
  [[nodiscard]] ClaimAllocation AllocationOf(std::size_t claim, const DeviceClaim& asked) const;
};

// Nodes that fit a pod. Views.
struct ClaimNodes {
  std::span<const std::string> names;
  std::span<const std::uint8_t> priorities = {};  // ClaimWishes; empty: all are equally good
  const RequestShape* gpus = nullptr;             // as ChooseForClaims takes them
};

// `nodes`: those that fit the pod. `owners`: whose the claims are (NodeQuestion::owners). Error:
// why the claims are kube-scheduler's, for people.
Result<DeviceAllotment> Allot(const std::vector<DeviceClaim>& claims,
                              const std::vector<int>& owners, const FindClass& find_class,
                              const DeviceOffers::ByNode& offers, const MigOffers::ByNode& mig,
                              const Snapshot& snapshot, const ClaimNodes& nodes);

}  // namespace berth::dialects
