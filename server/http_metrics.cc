// SPDX-License-Identifier: Apache-2.0
#include "server/http_metrics.h"

#include <string_view>

namespace berth {
namespace {

void AppendHead(std::string& out, std::string_view name, std::string_view type,
                std::string_view help) {
  out.append("# HELP ").append(name).append(" ").append(help);
  out.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void AppendMetric(std::string& out, std::string_view name, std::string_view type,
                  std::string_view help, std::uint64_t value) {
  AppendHead(out, name, type, help);
  out.append(name).append(" ").append(std::to_string(value)).append("\n");
}

}  // namespace

std::string HttpMetricsText(const http::HttpServerStats& stats) {
  std::string out;
  AppendMetric(out, "berth_http_connections", "gauge", "Connections open now",
               stats.open_connections);
  AppendMetric(out, "berth_http_connections_total", "counter", "Connections accepted",
               stats.accepted);
  AppendMetric(out, "berth_http_connections_refused_total", "counter",
               "Connections closed at once: too many, or out of file descriptors",
               stats.refused_connections);
  AppendMetric(out, "berth_http_requests_refused_total", "counter",
               "Requests answered before any handler: malformed, too large, too slow",
               stats.refused_requests);
  AppendMetric(out, "berth_http_timeouts_total", "counter", "Connections whose client was too slow",
               stats.timeouts);
  AppendMetric(out, "berth_http_tls_failures_total", "counter", "TLS handshakes that failed",
               stats.tls_handshake_failures);
  AppendMetric(out, "berth_unexpected_exceptions_total", "counter",
               "Handlers that threw: always a bug of Berth", stats.handler_exceptions);
  AppendHead(out, "berth_http_responses_total", "counter", "Responses by class of status");
  for (std::size_t i = 2; i < stats.responses_by_class.size(); ++i) {
    out.append("berth_http_responses_total{class=\"").append(std::to_string(i)).append("xx\"} ");
    out.append(std::to_string(stats.responses_by_class[i])).append("\n");
  }
  return out;
}

}  // namespace berth
