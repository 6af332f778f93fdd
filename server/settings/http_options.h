// SPDX-License-Identifier: Apache-2.0
//
// The options of the HTTP servers: from the configuration, and fixed limits.
#pragma once

#include <cstddef>

#include "config/config.h"
#include "server/http/http_server.h"
#include "server/telemetry/log.h"

namespace berth {

// Limits of all requests and of all answers that the debug server holds, in bytes.
constexpr std::size_t kDebugRequestBytes = std::size_t{16} << 20;
constexpr std::size_t kDebugAnswerBytes = std::size_t{8} << 20;

// The server that kube-scheduler calls. The log outlives it.
http::HttpServerOptions ServiceOptions(const ServerConfig& config, Log& log);

// Maximum number of binds held at a time. Each holds a connection; the others stay for filters,
// other binds and probes.
int MostHeldBinds(const ServerConfig& config);

// The server of /debug and the live page, if they have an address of their own.
http::HttpServerOptions DebugOptions(const ServerConfig& config);

}  // namespace berth
