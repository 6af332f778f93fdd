// SPDX-License-Identifier: Apache-2.0
//
// Whether the API server has the pods where ClusterState has them: finds what a watch has missed.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "cluster/cluster_state.h"
#include "server/extender/ports.h"
#include "server/kube/api_client.h"
#include "server/wire/pod_rules.h"

namespace berth::kube {

// Lists all pods and returns how many are bound elsewhere, with other devices, or not at all. What
// changed meanwhile is no difference: each suspect is asked for once more, and at most 100 are.
// Blocks for many requests. Error: kUnavailable.
Result<std::size_t> CountDifferences(ApiClient& client, PodBinder& binder,
                                     const ClusterState& state, const wire::PodRules& rules);

}  // namespace berth::kube
