// SPDX-License-Identifier: Apache-2.0
//
// How large a pod's request may be, and what is kept of one that is too large. Tenants write pods:
// the API server admits 1.5 MiB of labels, selectors and annotations with each.
//
// Any thread may call any function.
#pragma once

#include <cstddef>
#include <string_view>

#include "cluster/values/pod_request.h"

namespace berth {

// Of one request (HeldBytes): 30,000 names of nodes in its affinity take less.
inline constexpr std::size_t kMostRequestBytes = std::size_t{2} << 20;
// Of its labels, for which budgets, gangs and pods that look for neighbours look at it.
inline constexpr std::size_t kMostLabelBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMostRefusalBytes = 1000;
inline constexpr std::size_t kMostGroupNameBytes = 512;

// What stays of the request is at most kMostRequestBytes: a larger one is kept in outline, and
// refused if it asks for GPUs. Labels beyond their bound are left out, texts of refusals are cut, a
// group whose name is too long is ignored.
// Requires: the pod's own names are short (server/wire/json/object_meta.h).
void BoundRequest(PodRequest& pod);

// The pod's names, its group, its priority and what it asks for in numbers, with `why` as the
// reason why it cannot be placed; without labels, conditions and rules.
PodRequest OutlineOf(const PodRequest& pod, std::string_view why);

}  // namespace berth
