// SPDX-License-Identifier: Apache-2.0
#include "server/http_options.h"

#include <utility>

#include "server/wire/plan_json.h"

namespace berth {
namespace {

constexpr int kTlsConnections = 1000;  // each holds some 80 KiB for its keys and buffers

constexpr int kDebugConnections = 500;

}  // namespace

http::HttpServerOptions ServiceOptions(const ServerConfig& config, Log& log) {
  http::HttpServerOptions options;
  options.listen = config.listen;
  options.threads = config.threads;
  options.max_body_bytes = static_cast<std::size_t>(config.max_body_bytes);
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
    options.max_connections = kTlsConnections;
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
