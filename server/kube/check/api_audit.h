// SPDX-License-Identifier: Apache-2.0
//
// Whether the API server has the pods where ClusterState has them: finds what a watch has missed,
// and repairs it.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/state/cluster_state.h"
#include "server/extender/ports/ports.h"
#include "server/kube/client/api_client.h"
#include "server/wire/pod/pod_rules.h"

namespace berth::kube {

struct ApiAudit {
  // Pods that the API server has elsewhere, with other devices, or not at all.
  std::size_t differences = 0;
  // The first of them: "pod ns/a: the API server has it on node n2, Berth on node n1;
  // repaired".
  std::vector<std::string> findings;
};

enum class OnDifference { kTell, kRepair };

// Lists all pods and compares. What changed meanwhile is no difference: each suspect is asked for
// once more, and where more than 100 are suspected none is. kRepair: what the API server has is the
// truth and is booked; but for the devices of a pod that runs where it is booked: its annotation is
// anybody's to change, and what was given stays given. Blocks for many requests. Error:
// kUnavailable, also where stop was requested.
Result<ApiAudit> AuditApi(ApiClient& client, PodBinder& binder, ClusterState& state,
                          const wire::PodRules& rules, OnDifference then,
                          const std::stop_token& stop);

}  // namespace berth::kube
