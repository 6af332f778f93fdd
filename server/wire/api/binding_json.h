// SPDX-License-Identifier: Apache-2.0
//
// The JSON of a Binding, v1: a pod, its node and its devices in one atomic write.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/dialect.h"

namespace berth::wire {

// The pod's UID is a precondition of the write. The grants go along as the annotations that the
// dialects write, the decision's id as berth.dev/decision. Error: kInternal if the node does not
// have the devices (CheckDevices): a Binding that named others would give these twice.
Result<std::string> EncodeBinding(const PodRequest& pod, const Placement& placement,
                                  const NodeSpec& node, std::string_view decision, WallTime now,
                                  const Dialects& dialects);

}  // namespace berth::wire
