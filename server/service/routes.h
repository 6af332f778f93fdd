// SPDX-License-Identifier: Apache-2.0
//
// Routes: path -> what answers it. One table in routes.cc has all; GET /debug lists it for people.
#pragma once

#include <functional>
#include <string>

#include "config/config.h"
#include "server/http/http_server.h"
#include "server/pages/page_writer.h"
#include "server/service/verbs.h"
#include "server/telemetry/metrics.h"
#include "server/why/live.h"

namespace berth {

// References: they outlive the routers made from them.
struct RouteParts {
  Verbs& verbs;
  const Live& live;
  Metrics& metrics;
  std::function<void(MetricsText&)> more_metrics = {};  // of the service itself
  MetricsConfig many_metrics = {};
  std::string cluster_name = {};  // of the live page; empty: none
  // Writes /metrics and the pages under /debug; nullptr: the I/O thread of the request does.
  PageWriter* pages = nullptr;
  PageWriter* plans = nullptr;  // makes them; nullptr: the I/O thread of the request does
};

// POST /extender/{filter,prioritize,preempt,bind} (503 while not ready), and the health routes.
void AddServiceRoutes(http::Router& router, const RouteParts& parts);

// GET /healthz /readyz /metrics /version.
void AddHealthRoutes(http::Router& router, const RouteParts& parts);

// Those under GET /debug, the files of the live page (GET / and others), and POST /plan.
void AddDebugRoutes(http::Router& router, const RouteParts& parts);

}  // namespace berth
