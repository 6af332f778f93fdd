// SPDX-License-Identifier: Apache-2.0
//
// ConfigReload: applies a changed configuration file to the running service.
//
// A refused configuration changes nothing: the last good one stays in use. The log names the
// settings that need a restart (config/reload.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "config/config.h"
#include "server/extender/extender.h"
#include "server/http/http_server.h"
#include "server/settings/config_file.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace berth {

// The policy of the configuration with the given engine.
Extender::Policy PolicyOf(const Config& config, std::shared_ptr<Engine> engine);

// Not thread-safe: one thread checks the file, and that thread answers no requests.
class ConfigReload {
 public:
  // References: they outlive the object. Requires: the service runs with file.config().
  struct Parts {
    Extender& extender;
    Log& log;
    Metrics& metrics;
    std::shared_ptr<const LearnedMix> mix = nullptr;  // nullptr: nothing is learned
    Background background = {};                       // of the new engines
    // Called with the new configuration if its workload classes changed.
    std::function<void(const Config& config)> on_classes = {};
    // The same for makeRoom.
    std::function<void(const Config& config)> on_make_room = {};
  };
  ConfigReload(ConfigFile file, const Parts& parts);

  // Checks the file and applies changes.
  void Look();

 private:
  void Refuse(const ConfigReading& reading);
  void Apply(const std::string& hash, const Config& wanted);
  void ApplyPolicy(const Config& next);

  ConfigFile file_;
  const Parts parts_;
  Config now_;  // in use
};

// The options of the HTTP servers: from the configuration, and fixed limits.

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
