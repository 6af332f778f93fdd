// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "server/kube/client/http_api_client.h"
#include "server/kube/kube_cluster.h"
#include "server/pages/metrics_parts.h"

namespace berth {
namespace {

void AddWatches(const kube::KubeClusterStats& cluster, Instant now, MetricsText& text) {
  using Resource = kube::KubeClusterStats::Resource;
  const auto each = [&](auto value) {
    for (const Resource& resource : cluster.resources) {
      text.Sample(value(resource), {{"resource", resource.name}});
    }
  };
  text.Gauge("berth_watch_synced",
             "1 once the resource is listed completely, or the API server does not serve it");
  each([](const Resource& r) { return r.watch.synced ? 1 : 0; });
  text.Gauge("berth_watch_served", "1 while the API server serves the resource");
  each([](const Resource& r) { return r.watch.absent ? 0 : 1; });
  text.Counter("berth_watch_relists_total", "Complete lists of the resource");
  each([](const Resource& r) { return r.watch.lists; });
  text.Counter("berth_watch_reconnects_total", "Watch connections closed, for any reason");
  each([](const Resource& r) { return r.watch.reconnects; });
  text.Counter("berth_watch_failures_total", "Lists and watches that failed");
  each([](const Resource& r) { return r.watch.problems; });
  text.Counter("berth_watch_events_total", "Watch events received, without bookmarks");
  each([](const Resource& r) { return r.watch.events; });
  text.Gauge("berth_watch_last_contact_seconds",
             "Time since the API server last sent something about the resource");
  each([now](const Resource& r) {
    return std::chrono::duration<double>(now - r.watch.last_contact).count();
  });
  text.Gauge("berth_unreadable_objects", "Objects that cannot be read; the log names each");
  each([](const Resource& r) { return r.unreadable; });
}

void AddAllocations(const kube::ExtensionStats& stats, MetricsText& text) {
  text.Counter("berth_claim_allocations_total",
               "Pods with ResourceClaims: allocated by Berth, left to kube-scheduler, lost to a "
               "conflict or failed write, or taken back as another claim had the device")
      .Sample(stats.claims_allocated, {{"result", "allocated"}})
      .Sample(stats.claims_left, {{"result", "left"}})
      .Sample(stats.claims_lost, {{"result", "lost"}})
      .Sample(stats.claims_taken_back, {{"result", "taken_back"}});
}

void AddAudit(const kube::KubeClusterStats& cluster, MetricsText& text) {
  text.Counter("berth_audit_runs_total", "Audits of Berth's state").Sample(cluster.audits);
  text.Gauge("berth_audit_double_grants",
             "Over-allocated GPUs, and claims with a device of another claim")
      .Sample(cluster.audit.double_grants + cluster.extensions.overlapping_claims);
  text.Gauge("berth_audit_whole_gpus_with_shares",
             "GPUs that the kubelet gave to a pod as a whole while other pods have shares of them")
      .Sample(cluster.audit.given_over_shares);
  text.Gauge("berth_audit_overfull_nodes",
             "Nodes whose pods, some bound without Berth, hold more GPUs than the node has")
      .Sample(cluster.audit.overfull_nodes);
  text.Gauge("berth_pods_disputed",
             "Pods whose annotation berth.dev/devices was removed or names wrong devices")
      .Sample(cluster.disputed_pods);
  text.Gauge("berth_audit_unknown_devices", "Allocations of GPUs that the node does not have")
      .Sample(cluster.audit.unknown_devices);
  text.Gauge("berth_audit_orphaned_reservations",
             "Reservations whose bind outcome stayed unknown too long")
      .Sample(cluster.audit.orphaned_reservations);
  text.Gauge("berth_audit_differences",
             "Nodes whose free amounts do not match their pods, and pods that the API server has "
             "elsewhere")
      .Sample(cluster.audit.differences + cluster.differences_to_api);
}

void AddRequests(const kube::ApiClientStats& client, MetricsText& text) {
  text.Counter("berth_kube_requests_total",
               "Requests to the API server by method and status class");
  for (std::size_t m = 0; m < client.kMethods.size(); ++m) {
    for (std::size_t c = 1; c < client.answers[m].size(); ++c) {
      if (client.answers[m][c] == 0) continue;
      text.Sample(client.answers[m][c],
                  {{"method", client.kMethods[m]}, {"code", std::to_string(c) + "xx"}});
    }
  }
  text.Counter("berth_kube_request_failures_total", "Requests to the API server without an answer")
      .Sample(client.failures);
}

}  // namespace

void AddDevicePreemptionMetrics(const DevicePreemption::Stats& stats, MetricsText& text) {
  text.Counter("berth_device_evictions_total",
               "Pods that Berth evicted for pods that wait for GPUs of claims, by result")
      .Sample(stats.evicted, {{"result", "evicted"}})
      .Sample(stats.blocked, {{"result", "blocked"}})
      .Sample(stats.failed, {{"result", "failed"}});
  text.Gauge("berth_device_nodes_kept", "Nodes kept for a pod for which Berth evicted others there")
      .Sample(stats.rooms);
}

void AddKubeMetrics(const kube::KubeClusterStats& cluster, const kube::ApiClientStats& client,
                    Instant now, MetricsText& text) {
  text.Gauge("berth_leader", "1 while this process is the leader").Sample(cluster.leading ? 1 : 0);
  if (cluster.labelled) {
    text.Gauge("berth_leader_labelled",
               "1 while the pod has the label berth.dev/leader, which the Service selects")
        .Sample(*cluster.labelled ? 1 : 0);
  }
  AddWatches(cluster, now, text);
  AddRequests(client, text);
  text.Counter("berth_bind_retries_total", "Bindings sent again").Sample(cluster.binds.retries);
  text.Counter("berth_bind_outcomes_unknown_total",
               "Binds with an unknown outcome: the pod may or may not be bound")
      .Sample(cluster.binds.in_doubt);
  text.Counter("berth_events_dropped_total", "Events about pods that Berth dropped")
      .Sample(cluster.events_dropped);
  text.Counter("berth_pods_woken_total",
               "Refused pods that Berth made kube-scheduler retry, by result")
      .Sample(cluster.wakes.woken, {{"result", "woken"}})
      .Sample(cluster.wakes.failed, {{"result", "failed"}});
  text.Counter("berth_kubelet_refusals_total", "GPU pods that the kubelet did not admit")
      .Sample(cluster.refusals.refused);
  text.Gauge("berth_nodes_refusing_gpu_pods",
             "Nodes closed to GPU pods because their kubelet refused the last ones")
      .Sample(cluster.refusals.closed);
  text.Gauge("berth_asks_refused_by_nodes",
             "Requests that a node's kubelet refused; Berth places no such pods on that node")
      .Sample(cluster.refusals.closed_asks);
  AddAllocations(cluster.extensions, text);
  AddAudit(cluster, text);
}

}  // namespace berth
