// SPDX-License-Identifier: Apache-2.0
#include "server/settings/http_options.h"

#include <utility>

#include "server/why/plan_json.h"

namespace berth {
namespace {

// Each holds some 30 KiB for its keys and a buffer, and up to 60 KiB during the handshake.
constexpr int kTlsConnections = 2500;

constexpr int kDebugConnections = 500;

int MostConnections(const ServerConfig& config) {
  const bool is_plain = config.tls.certificate_file.empty();
  return is_plain ? http::HttpServerOptions().max_connections : kTlsConnections;
}

}  // namespace

int MostHeldBinds(const ServerConfig& config) { return MostConnections(config) / 4 * 3; }

http::HttpServerOptions ServiceOptions(const ServerConfig& config, Log& log) {
  http::HttpServerOptions options;
  options.listen = config.listen;
  options.threads = config.threads;
  options.max_body_bytes = static_cast<std::size_t>(config.max_body_bytes);
  options.max_connections = MostConnections(config);
  if (!config.tls.certificate_file.empty()) {
    http::TlsOptions tls;
    tls.certificate_file = config.tls.certificate_file;
    tls.key_file = config.tls.key_file;
    tls.client_ca_file = config.tls.client_ca_file;
    tls.on_reload = [&log](const Status& status) {
      if (status) {
        log.Write(LogLevel::kInfo, "certificate_reloaded", {});
      } else {
        log.Write(LogLevel::kError, "certificate_refused", {{"error", status.error().message}});
      }
    };
    options.tls = std::move(tls);
  }
  return options;
}

http::HttpServerOptions DebugOptions(const ServerConfig& config) {
  http::HttpServerOptions options;
  options.listen = config.debug_listen;
  options.threads = 1;
  options.max_body_bytes = wire::kMostPlanBytes;
  options.max_request_bytes = kDebugRequestBytes;
  options.max_answer_bytes = kDebugAnswerBytes;
  options.max_connections = kDebugConnections;
  return options;
}

}  // namespace berth
