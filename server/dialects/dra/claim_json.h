// SPDX-License-Identifier: Apache-2.0
//
// A ResourceClaim (resource.k8s.io/v1) as its allocator sees it, and the two patches by
// which it is allocated: kube-scheduler does the same in the same order (bindClaim in its plugin
// DynamicResources).
//
//   1. its finalizer, without which nothing is ever deallocated
//   2. status: the device, the node, the time, and the pod for which it is reserved. With the pod
//      the claim is deallocated by Kubernetes once the pod is gone (resourceclaim controller), or
//      when kube-scheduler finds no node with it (its PostFilter).
//
// Both carry UID and resourceVersion: a claim that somebody else has changed is left as it is
// (409).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/claims/device_claim.h"
#include "cluster/values/pod_request.h"

namespace berth::dialects {

struct OpenClaim {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<std::string> finalizers;
  bool allocated = false;
  DeviceClaim asks;
  // Why it is kube-scheduler's to allocate, whatever devices there are; empty = it is not.
  // Constants.
  std::string_view obstacle;
  // All of its requests are for access for administration: others get the devices too.
  bool takes_nothing = false;

  [[nodiscard]] bool has_finalizer() const;
};

// Error: kInvalidArgument for what is not JSON, not a ResourceClaim, or has no name, UID or
// version.
Result<OpenClaim> DecodeOpenClaim(const PaddedText& text);

// Who has an allocated claim.
struct ClaimUse {
  std::string allocated_at;      // as Kubernetes writes times; empty: that is not said
  std::vector<PodId> pods = {};  // for which it is reserved, two at most
};
// Error: kInvalidArgument for what is not JSON, or not a ResourceClaim.
Result<ClaimUse> DecodeClaimUse(const PaddedText& text);

// One device of an allocation.
struct AllocationResult {
  const DeviceRequest* request = nullptr;
  const DeviceWant* want = nullptr;
  std::string_view driver;
  std::string_view pool;
  std::string_view device;
  const CapacityUses* part = nullptr;  // of one that several claims may share; nullptr: all of it
};

// Devices of one node. Pointers: into the claim.
struct ClaimAllocation {
  std::string_view node;
  std::vector<AllocationResult> results;
  // Of the classes, in the order of the requests, then those of the claim: as kube-scheduler's
  // allocator writes them (device_claim.h).
  std::vector<AllocationConfig> configs = {};
};

// Both are application/merge-patch+json, of the claim and of its status.
std::string EncodeFinalizerPatch(const OpenClaim& claim);
std::string EncodeAllocationPatch(const OpenClaim& claim, const ClaimAllocation& allocation,
                                  const PodId& pod, WallTime now);
// Of the status: the claim is as it was before, but for its finalizer, which Kubernetes removes
// with the claim.
std::string EncodeDeallocationPatch(const OpenClaim& claim);

}  // namespace berth::dialects
