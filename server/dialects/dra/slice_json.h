// SPDX-License-Identifier: Apache-2.0
//
// The JSON of resource.k8s.io ResourceSlices (v1, v1beta2, v1beta1), of any driver, whole: every
// device with its attributes, capacities, taints and counters, in the order published.
#pragma once

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/claims/node_devices.h"

namespace berth::dialects {

// Error: kInvalidArgument for what is not JSON, not a ResourceSlice, or has values that the API
// does not admit.
Result<PublishedSlice> DecodePublishedSlice(const PaddedText& text);

}  // namespace berth::dialects
