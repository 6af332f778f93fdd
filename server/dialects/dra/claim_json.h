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
#include "cluster/values/pod_request.h"
#include "topology/mig/mig_profile.h"

namespace berth::dialects {

inline constexpr std::string_view kMigDeviceClass = "mig.nvidia.com";

struct OpenClaim {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<std::string> finalizers;
  bool allocated = false;
  std::string request;  // the name of its request
  MigProfile profile;   // that it asks for
  // Why it is no claim of one MIG device of a profile, and nothing more; empty = it is. Constants.
  std::string_view obstacle;

  [[nodiscard]] bool has_finalizer() const;
};

// Error: kInvalidArgument for what is not JSON, not a ResourceClaim, or has no name, UID or
// version.
Result<OpenClaim> DecodeOpenClaim(const PaddedText& text);

// The profile in `device.attributes['gpu.nvidia.com'].profile == '1g.5gb'`, with quotes of either
// kind and spaces anywhere between; "" for any other CEL expression.
std::string ProfileIn(std::string_view expression);

// A device of a pool of that one node.
struct ClaimAllocation {
  std::string_view node;
  std::string_view pool;
  std::string_view device;
};

// Both are application/merge-patch+json, of the claim and of its status.
std::string EncodeFinalizerPatch(const OpenClaim& claim);
std::string EncodeAllocationPatch(const OpenClaim& claim, const ClaimAllocation& allocation,
                                  const PodId& pod, WallTime now);

}  // namespace berth::dialects
