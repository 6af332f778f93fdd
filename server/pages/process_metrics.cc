// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

#include <sys/resource.h>
#include <unistd.h>

#include "server/kube/client/http_api_client.h"
#include "server/kube/kube_cluster.h"
#include "server/pages/metrics_parts.h"

namespace berth {
namespace {

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number behind `name` in a file of lines "NAME NUMBER ...".
std::optional<std::int64_t> Behind(std::string_view name, const std::string& text) {
  const std::size_t at = text.find(name);
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(text.c_str() + at + name.size(), nullptr, 10);
}

// Of /proc/self/stat, numbered as in proc(5); the second one may have blanks in its parentheses.
std::optional<std::int64_t> FieldOf(const std::string& stat, int number) {
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < number && at != std::string::npos; ++field) {
    at = stat.find(' ', at + 1);
  }
  if (at == std::string::npos) return std::nullopt;
  return std::strtoll(stat.c_str() + at, nullptr, 10);
}

// Seconds since 1970: the kernel counts from the start of the machine.
std::optional<double> StartTime(const std::string& stat) {
  const auto started = FieldOf(stat, 22), booted = Behind("btime ", TextOf("/proc/stat"));
  const std::int64_t per_second = sysconf(_SC_CLK_TCK);
  if (!started || !booted || per_second <= 0) return std::nullopt;
  return static_cast<double>(*booted) +
         static_cast<double>(*started) / static_cast<double>(per_second);
}

std::optional<std::int64_t> OpenFiles() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return std::nullopt;
  return std::distance(begin(files), end(files)) - 1;  // without the one that lists them
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::int64_t MostFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return static_cast<std::int64_t>(limit.rlim_cur);
}

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

void AddProcessMetrics(MetricsText& text) {
  const auto gauge = [&text](const char* name, const char* help, auto value) {
    if (value) text.Gauge(name, help).Sample(*value);
  };
  const std::string stat = TextOf("/proc/self/stat");
  static const std::optional<double> kStarted = StartTime(stat);  // /proc/stat is long
  text.Counter("process_cpu_seconds_total", "CPU time, user and system").Sample(CpuSeconds());
  gauge("process_start_time_seconds", "Start of the process, Unix time", kStarted);
  gauge("process_virtual_memory_bytes", "Virtual memory", FieldOf(stat, 23));
  auto resident = FieldOf(stat, 24);  // pages
  if (resident) *resident *= sysconf(_SC_PAGESIZE);
  gauge("process_resident_memory_bytes", "Resident memory", resident);
  gauge("process_open_fds", "Open file descriptors", OpenFiles());
  gauge("process_max_fds", "Maximum number of open file descriptors", std::optional(MostFiles()));
}

void AddHttpMetrics(const http::HttpServerStats& stats, MetricsText& text) {
  text.Gauge("berth_http_connections", "Connections open now").Sample(stats.open_connections);
  text.Counter("berth_http_connections_total", "Connections accepted").Sample(stats.accepted);
  text.Counter("berth_http_connections_refused_total",
               "Connections closed at once: too many, or out of file descriptors")
      .Sample(stats.refused_connections);
  text.Counter("berth_http_requests_refused_total",
               "Requests rejected before any handler: malformed, too large or too slow")
      .Sample(stats.refused_requests);
  text.Counter("berth_http_timeouts_total", "Connections whose client was too slow")
      .Sample(stats.timeouts);
  text.Counter("berth_http_tls_failures_total", "TLS handshakes that failed")
      .Sample(stats.tls_handshake_failures);
  text.Gauge("berth_tls_certificate_expiry_timestamp_seconds",
             "Expiry of the server certificate in use, Unix time; 0 with plain HTTP")
      .Sample(stats.certificate_expires);
  text.Counter("berth_unexpected_exceptions_total",
               "Handlers that threw an exception: always a bug of Berth")
      .Sample(stats.handler_exceptions);
  text.Counter("berth_http_responses_total", "Responses by status class");
  for (std::size_t i = 2; i < stats.responses_by_class.size(); ++i) {
    text.Sample(stats.responses_by_class[i], {{"class", std::to_string(i) + "xx"}});
  }
}

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
