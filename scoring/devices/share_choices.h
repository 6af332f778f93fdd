// SPDX-License-Identifier: Apache-2.0
//
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
#pragma once

#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"
#include "scoring/profile_spec.h"
#include "scoring/scorer.h"

namespace berth {

// Of sets of equally free GPUs only one, and for a pod that spreads over GPUs those of the least
// crowded (neighbours.h). Empty if the pod does not fit. Requires: shape.is_share().
std::vector<DeviceChoice> ShareChoices(const Node& node, const RequestShape& shape,
                                       DeviceRule rule);

}  // namespace berth
