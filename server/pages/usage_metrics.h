// SPDX-License-Identifier: Apache-2.0
//
// Who has the GPUs, as metrics: by workload class, where there are some; by namespace, and by GPU,
// where these are switched on.
#pragma once

#include <span>
#include <string>

#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "config/config.h"

namespace berth {

// In Prometheus' text format; "" where there are none. MIG devices count as their part of the
// memory units of their GPU, places and shares as their part of a GPU.
std::string UsageMetricsText(const Snapshot& snapshot, std::span<const WaitingPod> waiting,
                             const MetricsConfig& wanted);

}  // namespace berth
