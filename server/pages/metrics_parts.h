// SPDX-License-Identifier: Apache-2.0
//
// What /metrics shows beside what is counted where it happens (server/telemetry/metrics.h). Each
// function writes the metrics of one subject, from values of one moment; it keeps nothing.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/clock.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "config/config.h"
#include "scoring/mig/mig_report.h"
#include "scoring/mig/repartition_report.h"
#include "scoring/waste/waste_report.h"
#include "server/extender/gang_table.h"
#include "server/http/http_server.h"
#include "server/telemetry/metrics_text.h"
#include "topology/domains/domain_tree.h"
#include "topology/domains/topology_levels.h"

namespace berth {

namespace kube {
struct ApiClientStats;
struct KubeClusterStats;
}  // namespace kube

// Nodes; GPUs and places on shared ones, by model and by vendor; their power.
void AddClusterMetrics(const Snapshot& snapshot, MetricsText& text);
// Of a WasteReport.
void AddWasteMetrics(const std::map<std::string, Waste>& by_model, MetricsText& text);
// If a level has fewer nodes than the cluster, the others lack its label and take no pod that
// requires the level. Requires: the tree is of these levels.
void AddTopologyMetrics(const TopologyLevels& levels, const DomainTree& tree, MetricsText& text);
void AddMigMetrics(const MigReport& report, std::span<const NodeAdvice> advices, MetricsText& text);
// Who has the GPUs: by workload class, where there are some; by namespace, and by GPU, where these
// are switched on. Places and shares count as their part of a GPU.
void AddUsageMetrics(const Snapshot& snapshot, std::span<const WaitingPod> waiting,
                     const MetricsConfig& wanted, MetricsText& text);
void AddGangMetrics(std::span<const GangView> gangs, MetricsText& text);

void AddHttpMetrics(const http::HttpServerStats& stats, MetricsText& text);
// Of the client of the Kubernetes API.
void AddKubeMetrics(const kube::KubeClusterStats& cluster, const kube::ApiClientStats& client,
                    Instant now, MetricsText& text);
// The process itself, by the names that Prometheus' client libraries agree on: CPU, memory, open
// files, and when it started (https://prometheus.io/docs/instrumenting/writing_clientlibs). What
// /proc does not say is left out.
void AddProcessMetrics(MetricsText& text);

}  // namespace berth
