// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a Binding, v1: a pod, its node and its devices in one atomic write.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "cluster/node.h"
#include "cluster/placement.h"
#include "cluster/pod_request.h"

namespace berth::wire {

// The pod's UID is a precondition of the write; the grants go along as the annotation
// berth.dev/devices (devices_annotation.h), the decision's id as berth.dev/decision; on a node of
// HAMi's agent also as that wants them (hami_binding.h), with the time.
std::string EncodeBinding(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                          std::string_view decision, WallTime now);

}  // namespace berth::wire
