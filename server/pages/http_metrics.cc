// SPDX-License-Identifier: Apache-2.0
#include "server/pages/metrics_parts.h"

namespace berth {

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

}  // namespace berth
