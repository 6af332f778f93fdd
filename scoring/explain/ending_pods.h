// SPDX-License-Identifier: Apache-2.0
//
// EndingPods: which of a node's pods would have to end so that another pod fits there.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "cluster/node/node.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth {

// At least so many of its pods have to end, by the amounts that they hold: 1 or more. More may be
// needed, for links or MIG devices. Nothing: what is missing stays missing without all of them.
std::optional<std::size_t> LeastEnding(const Node& node, const RequestShape& shape);

// Whether the pod fits that node.
using FitsNode = std::function<bool(const Node& node)>;

// One pod if that is enough: one that is ending already, then the smallest by its GPUs, then by
// name. Else few of them, all of them needed: two wherever two are enough and at most kMostInPairs
// pods hold what is missing. Empty: no pods that end let it in. Not among them are pods that a gang
// has only planned there, which run nowhere yet, and those that are back at once (PodLife).
inline constexpr std::size_t kMostInPairs = 24;
std::vector<const PodRecord*> EndingPods(const Node& node, const RequestShape& shape,
                                         const FitsNode& fits);

}  // namespace berth
