// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/repartition_advice.h"
#include "server/pages/metrics_parts.h"
#include "topology/mig/mig_catalog.h"

namespace berth {

void AddMigMetrics(const MigReport& report, std::span<const NodeAdvice> advices,
                   MetricsText& text) {
  text.Gauge("berth_mig_gpus", "MIG-partitioned GPUs");
  for (const auto& [product, count] : report.products) {
    text.Sample(count.static_gpus, {{"product", product}, {"partitioning", "static"}});
    text.Sample(count.dynamic_gpus, {{"product", product}, {"partitioning", "dynamic"}});
    text.Sample(count.dra_gpus, {{"product", product}, {"partitioning", "dra"}});
  }
  text.Gauge("berth_mig_memory_units", "Memory slices of MIG-partitioned GPUs, by state");
  for (const auto& [product, count] : report.products) {
    text.Sample(count.taken_units, {{"product", product}, {"state", "taken"}});
    text.Sample(count.units - count.taken_units, {{"product", product}, {"state", "free"}});
  }
  text.Gauge("berth_mig_devices",
             "MIG devices in use, and how many more of that profile alone would fit");
  for (const auto& [product, count] : report.products) {
    for (const auto& [profile, devices] : count.profiles) {
      text.Sample(devices.taken, {{"product", product}, {"profile", profile}, {"state", "taken"}});
      text.Sample(devices.free, {{"product", product}, {"profile", profile}, {"state", "free"}});
    }
  }
  text.Gauge("berth_mig_troubled_nodes",
             "Nodes closed to GPU pods because of their MIG configuration");
  for (const auto& [trouble, nodes] : report.troubled_nodes) {
    text.Sample(nodes, {{"trouble", trouble}});
  }
  text.Gauge("berth_mig_repartition_pods",
             "Waiting pods that idle nodes would take if repartitioned to the MIG config");
  for (const auto& [product, count] : report.products) {
    const MigProduct* const known = count.static_gpus > 0 ? FindMigProduct(product) : nullptr;
    if (known == nullptr) continue;
    for (const MigConfig& config : StandardMigConfigs(*known)) {
      int pods = 0;
      for (const NodeAdvice& at : advices) {
        if (at.product == product && at.advice.config == config.name) pods += at.advice.fits;
      }
      text.Sample(pods, {{"product", product}, {"config", config.name}});
    }
  }
}

}  // namespace berth
