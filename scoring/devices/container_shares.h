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
#include "scoring/profile_spec.h"
#include "scoring/scorer.h"

namespace berth {

// By index, with the containers of each; empty: there is no way. emptied: as if nobody held a GPU.
// Requires: shape.may_divide().
std::vector<DeviceGrant> GrantsApart(const Node& node, const RequestShape& shape,
                                     bool emptied = false);

// ShareChoices: the GPUs of one node that a pod with a share, or with shares of several GPUs, could
// get. Pure function.
//
// Of one GPU they are, at most, all that fit. Of several GPUs there are too many sets to score. So
// every GPU that fits is taken once, with the fullest others: shares belong together, and idle GPUs
// to pods that need them whole. For policies that spread there are the freest GPUs beside these. As
// "tightest" counts the set of the fullest, as "first" that of the lowest indices. Among equally
// full GPUs those are taken that are linked best to the set. If the pod says what its links must
// be, the set is the one that GpuLinks::Choose takes of all that fit. All containers have their
// parts of one set; else see container_shares.h.

// Of sets of equally free GPUs only one, and for a pod that spreads over GPUs those of the least
// crowded (neighbours.h). Empty if the pod does not fit. Requires: shape.is_share().
std::vector<DeviceChoice> ShareChoices(const Node& node, const RequestShape& shape,
                                       DeviceRule rule);

}  // namespace berth
