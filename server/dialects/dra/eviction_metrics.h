// SPDX-License-Identifier: Apache-2.0
//
// The metrics of evictions for pods that wait for GPUs of claims (dra.preempt).
#pragma once

#include "server/extender/device_preemption.h"
#include "server/telemetry/metrics_text.h"

namespace berth {

void AddDevicePreemptionMetrics(const DevicePreemption::Stats& stats, MetricsText& text);

}  // namespace berth
