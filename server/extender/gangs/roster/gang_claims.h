// SPDX-License-Identifier: Apache-2.0
//
// GangClaims: the ResourceClaims of a gang's members, and of pods alone, where Berth chooses their
// devices.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/claims/open_claims.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/claims/claim_question.h"
#include "scoring/gangs/gang_devices.h"

namespace berth {

// Of the claims of one pod, all of them together.
enum class ClaimState {
  kNone,       // it has none, or one that is kube-scheduler's to allocate
  kUnseen,     // the watch has yet to show one, or it has yet to be made
  kOpen,       // one has no devices
  kAllocated,  // they have devices, of one node
};

// Any thread may call it.
class GangClaims {
 public:
  // Claims of a gang that are allocated together; Berth leaves the claims of a larger one to each
  // pod alone.
  static constexpr std::size_t kMostTogether = 512;

  // References: they outlive the object.
  GangClaims(const OpenClaims& open, const DeviceOffers& devices, const DeviceClasses& classes)
      : open_(open), devices_(devices), classes_(classes) {}

  [[nodiscard]] ClaimState StateOf(const PodRequest& pod) const;
  // Of a pod whose claims are allocated: where; "" = not known.
  [[nodiscard]] std::string NodeOf(const PodRequest& pod) const;
  // Whether its open claims could have devices somewhere. Error: it has none, or why Berth cannot
  // say, for people.
  [[nodiscard]] Result<ClaimRoom> RoomOf(const PodRequest& pod) const;
  // Whether all claims are of one pod each, and not too many. A claim that members share ties them
  // to one node, which no plan sees to.
  [[nodiscard]] static bool AreSeparate(std::span<const std::shared_ptr<const PodRequest>> members);

  // What there is to choose from.
  [[nodiscard]] std::shared_ptr<const DeviceOffers::ByNode> offers() const {
    return devices_.Current();
  }

  // What devices the members need, where kinds are by member (GangMember::claims). nullptr: none.
  struct Needs {
    std::unique_ptr<GangDevices> devices;
    std::vector<int> kinds;
  };
  // Error: why they are kube-scheduler's, for people.
  [[nodiscard]] Result<Needs> NeedsOf(std::span<const std::shared_ptr<const PodRequest>> members,
                                      const Snapshot& snapshot) const;

 private:
  // What those ask for that have no devices.
  [[nodiscard]] GangDevices::Claims OpenOf(const PodRequest& pod) const;

  const OpenClaims& open_;
  const DeviceOffers& devices_;
  const DeviceClasses& classes_;
};

}  // namespace berth
