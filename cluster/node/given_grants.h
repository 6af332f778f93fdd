// SPDX-License-Identifier: Apache-2.0
//
// Given grants: the GPUs or MIG devices of a node that a pod was given, by what somebody says who
// saw it (given_devices.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/given_devices.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

// The given devices as the node has them. Nothing where they do not count: the pod asks for neither
// whole GPUs nor MIG devices by name, the node does not know one of the devices, an agent of the
// node hands out GPUs by its own record (NodeSpec::share_agent) or claims say it
// (NodeSpec::by_claims, MigSpec::by_claims), the node has no agent that would have written it
// (Evidence::kAgent without NodeSpec::carries_out), or fewer devices are known than the pod asks
// for. Then `planned` fills up what is missing, if it has enough others: the status of a container
// that has ended does not name its devices any more. Of MIG devices the profile fills up what is
// missing then.
std::optional<PodDevices> DevicesGiven(const GivenDevices& given, const RequestShape& shape,
                                       const PodDevices& planned, const NodeSpec& node);

// What holds of a pod, of what was said before and is said now; either may be nullptr. Who is
// weaker is not heard, and of a container that has ended the devices stay known.
std::shared_ptr<const GivenDevices> Strongest(std::shared_ptr<const GivenDevices> before,
                                              std::shared_ptr<const GivenDevices> now);

}  // namespace berth
