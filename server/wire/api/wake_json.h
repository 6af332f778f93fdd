// SPDX-License-Identifier: Apache-2.0
//
// The condition on a pod's status by which kube-scheduler is made to ask about it again: any change
// of a pod that an extender has refused does that, and this one changes nothing else.
#pragma once

#include <string>

#include "base/clock.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

inline constexpr const char* kWakeContentType = "application/strategic-merge-patch+json";

// A patch of pods/status. It holds for the pod of that UID alone, and of two patches within a
// second the second changes nothing.
std::string EncodeWake(const PodId& pod, WallTime now);

}  // namespace berth::wire
