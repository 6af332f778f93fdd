// SPDX-License-Identifier: Apache-2.0
//
// The pods that wait for GPUs, by what they ask for: berth_waiting_gpu_pods{asks,age},
// berth_waiting_gpu_pod_oldest_seconds{asks}, and the lines of /debug/top.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/state/waiting_pods.h"
#include "server/telemetry/metrics.h"
#include "server/why/explain_json.h"

namespace berth {

// By number of GPUs, then shares, then MIG devices. Without pods whose gates are closed: no room
// would let them in.
std::vector<wire::WaitingClass> WaitingClasses(std::span<const WaitingPod> pods, WallTime now);

// The classes that clusters are watched for are there without pods too.
void AddWaitingMetrics(std::span<const WaitingPod> pods, WallTime now, MetricsText& text);

}  // namespace berth
