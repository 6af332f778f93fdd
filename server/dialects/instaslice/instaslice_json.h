// SPDX-License-Identifier: Apache-2.0
//
// The JSON of an AllocationClaim (inference.redhat.com/v1alpha1) of instaslice, now the DAS
// operator: a MIG device that its scheduler gave to a pod.
//
//   {"metadata": {"namespace": "das-operator", "name": "UID-main-0"},
//    "spec": {"profile": "1g.5gb", "gpuUUID": "GPU-..", "nodename": "n1",
//             "migPlacement": {"start": 0, "size": 1}},
//    "status": {"state": "inUse"}}
//
// One is staged for every node that is looked at, and becomes `created` on the node that is taken;
// `orphaned` is one whose pod is gone and whose device is not yet. (openshift/instaslice-operator
// at 4447195, pkg/apis/dasoperator/v1alpha1/allocation_types.go; the spec is an open object there.)
#pragma once

#include <string>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/node/claimed_gpu.h"

namespace berth::dialects {

struct AllocationClaim {
  std::string namespace_name;
  std::string name;
  std::string node;
  ClaimedGpu device;
  bool holds = false;  // it is more than staged
};

// Error: kInvalidArgument with the path of the field. A claim that holds nothing yet may lack what
// the device is.
Result<AllocationClaim> DecodeAllocationClaim(const PaddedText& text);

}  // namespace berth::dialects
