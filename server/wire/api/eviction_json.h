// SPDX-License-Identifier: Apache-2.0
//
// The JSON of an Eviction, policy/v1: what is posted to pods/NAME/eviction.
#pragma once

#include <string>

#include "cluster/values/pod_request.h"

namespace berth::wire {

// It holds for the pod of that UID alone.
std::string EncodeEviction(const PodId& pod);

}  // namespace berth::wire
