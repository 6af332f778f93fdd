// SPDX-License-Identifier: Apache-2.0
//
// Who has the GPUs, as metrics: by namespace, and by GPU, where these are switched on.
#pragma once

#include <span>
#include <string>

#include "cluster/snapshot.h"
#include "cluster/waiting_pods.h"
#include "config/config.h"

namespace berth {

// In Prometheus' text format; "" where none are wanted. MIG devices count as their part of the
// memory units of their GPU, places and shares as their part of a GPU.
std::string UsageMetricsText(const Snapshot& snapshot, std::span<const WaitingPod> waiting,
                             const MetricsConfig& wanted);

}  // namespace berth
