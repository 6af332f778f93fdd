// SPDX-License-Identifier: Apache-2.0
//
// The metrics that are read from other objects; server/telemetry/metrics.h counts the rest. Each
// function writes the metrics of one subject, from values of one moment, and keeps no state.
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/clock.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "config/config.h"
#include "scoring/mig/repartition_report.h"
#include "scoring/room/room_nodes.h"
#include "scoring/waste/waste_report.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/http/http_server.h"
#include "server/planners/moves/room_maker.h"
#include "server/planners/preemption/device_preemption.h"
#include "server/telemetry/metrics.h"
#include "topology/domains/domain_tree.h"

namespace berth {

namespace kube {
struct ApiClientStats;
struct KubeClusterStats;
}  // namespace kube

// Nodes; GPUs and GPU replicas, by model and by vendor; their power.
void AddClusterMetrics(const Snapshot& snapshot, MetricsText& text);
// Of a WasteReport.
void AddWasteMetrics(const std::map<std::string, Waste>& by_model, MetricsText& text);
// If a level has fewer nodes than the cluster, the others lack its label and take no pod that
// requires the level. Requires: the tree is of these levels.
void AddTopologyMetrics(const TopologyLevels& levels, const DomainTree& tree, MetricsText& text);
void AddMigMetrics(const MigReport& report, std::span<const NodeAdvice> advices, MetricsText& text);
// Who holds the GPUs: by workload class, if any is configured; by namespace and by GPU, if turned
// on. Replicas and shares count as fractions of a GPU.
void AddUsageMetrics(const Snapshot& snapshot, std::span<const WaitingPod> waiting,
                     const MetricsConfig& wanted, MetricsText& text);
// Pods whose devices are known from who saw them being given (cluster/values/pod_record.h), and
// how these differ from the plan; of each node, if metrics by GPU are turned on.
void AddGivenMetrics(const Snapshot& snapshot, const MetricsConfig& wanted, MetricsText& text);
// Plans of moves that Berth carries out (makeRoom).
void AddRoomMakerMetrics(const RoomMaker::Stats& stats, MetricsText& text);
void AddGangMetrics(std::span<const GangView> gangs, MetricsText& text);

void AddHttpMetrics(const http::HttpServerStats& stats, MetricsText& text);
// The client of the Kubernetes API: leadership, watches, requests, binds, audit.
void AddKubeMetrics(const kube::KubeClusterStats& cluster, const kube::ApiClientStats& client,
                    Instant now, MetricsText& text);
// Evictions for pods that wait for GPUs of claims.
void AddDevicePreemptionMetrics(const DevicePreemption::Stats& stats, MetricsText& text);
// The process itself, by the names that Prometheus' client libraries agree on: CPU, memory, open
// files, and its start (https://prometheus.io/docs/instrumenting/writing_clientlibs). Values that
// /proc does not have are left out.
void AddProcessMetrics(MetricsText& text);

}  // namespace berth
