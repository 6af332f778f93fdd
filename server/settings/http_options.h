// SPDX-License-Identifier: Apache-2.0
//
// What the configuration says of the HTTP servers, and the limits that go with it.
#pragma once

#include <cstddef>

#include "config/config.h"
#include "server/http/http_server.h"
#include "server/telemetry/log.h"

namespace berth {

// Of all requests, and all answers, that the debug server holds.
constexpr std::size_t kDebugRequestBytes = std::size_t{16} << 20;
constexpr std::size_t kDebugAnswerBytes = std::size_t{8} << 20;

// The server that kube-scheduler calls. The log outlives it.
http::HttpServerOptions ServiceOptions(const ServerConfig& config, Log& log);

// So many binds may be held at a time: each holds a connection, and what is left is for the
// filters, binds and probes of others.
int MostHeldBinds(const ServerConfig& config);

// The server of /debug and the live page, where they have an address of their own.
http::HttpServerOptions DebugOptions(const ServerConfig& config);

}  // namespace berth
