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

// One pod if that is enough: the smallest by its GPUs, then by name. Else few of them, none of
// which need not end: two wherever two are enough on a node with at most kMostInPairs pods. Empty:
// no pods that end let it in. What a gang has only planned there runs nowhere yet, and is not among
// them.
inline constexpr std::size_t kMostInPairs = 16;
std::vector<const PodRecord*> EndingPods(const Node& node, const RequestShape& shape,
                                         const FitsNode& fits);

}  // namespace berth
