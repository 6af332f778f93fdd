// SPDX-License-Identifier: Apache-2.0
//
// ContainerShares: the GPUs of one node for a pod whose containers may have their parts of
// different ones (RequestShape::may_divide), where no set of GPUs has room for all containers.
//
// Container by container, in the pod's order, each takes the fullest GPUs that have room, of the
// least crowded ones and of those that suit the pod (neighbours.h). Where a later container finds
// no room, other GPUs are tried for the containers before it, up to 1024 times: a pod of few
// containers fits wherever there is a way. What the pod wants of links holds for the GPUs of each
// container. Pure function.
#pragma once

#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

// By index, with the containers of each; empty: there is no way. emptied: as if nobody held a GPU.
// Requires: shape.may_divide().
std::vector<DeviceGrant> GrantsApart(const Node& node, const RequestShape& shape,
                                     bool emptied = false);

}  // namespace berth
