// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/dra/eviction_metrics.h"

namespace berth {

void AddDevicePreemptionMetrics(const DevicePreemption::Stats& stats, MetricsText& text) {
  text.Counter("berth_dra_evictions_total",
               "Pods that Berth evicted for pods that wait for GPUs of DRA, by result")
      .Sample(stats.evicted, {{"result", "evicted"}})
      .Sample(stats.blocked, {{"result", "blocked"}})
      .Sample(stats.failed, {{"result", "failed"}});
  text.Gauge("berth_dra_nodes_kept", "Nodes kept for a pod for which Berth evicted others there")
      .Sample(stats.rooms);
}

}  // namespace berth
