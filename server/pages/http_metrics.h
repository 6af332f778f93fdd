// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "server/http/http_server.h"

namespace berth {

// The HTTP server's metrics in Prometheus' text format, appended to what Metrics::Text writes.
std::string HttpMetricsText(const http::HttpServerStats& stats);

}  // namespace berth
