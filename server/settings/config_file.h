// SPDX-License-Identifier: Apache-2.0
//
// ConfigFile: the configuration file of a running service. The file may change at any time: a
// mounted ConfigMap whose symbolic link moves, a replaced file, a file edited in place.
//
// It finds changes by polling: one stat of the file behind all links (device, inode, size, times).
// It reads a changed file once two polls in a row see the same state, so never while the file
// grows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"
#include "server/extender/extender.h"
#include "server/http/http_server.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace berth {

// The result of reading the file.
struct ConfigReading {
  std::string hash;       // the first 12 digits of the SHA-256 of its bytes; empty: unreadable
  bool is_new = true;     // other bytes, or another failure, than the previous reading
  Result<Config> config;  // Error: as Open's, or it is empty
};

// Not thread-safe.
class ConfigFile {
 public:
  // Reads the file for the first time. A non-empty `listen` replaces server.listen in every
  // reading. An empty path means the defaults, which never change. Error: as
  // LoadConfig, and kNotFound where it cannot be read.
  static Result<ConfigFile> Open(std::string path, std::string listen);

  // The configuration of the first reading.
  [[nodiscard]] const Config& config() const { return config_; }
  // The SHA-256 of the first reading; of the defaults, that of what `berth config print` prints.
  [[nodiscard]] const std::string& hash() const { return hash_; }

  // Call it about once a second. Returns a value if the file changed and was read.
  std::optional<ConfigReading> Look();

 private:
  // Identifies one state of the file; none: stat failed.
  using Stamp = std::optional<std::array<std::int64_t, 7>>;

  ConfigFile(std::string path, std::string listen)
      : path_(std::move(path)), listen_(std::move(listen)) {}

  static Stamp StampOf(const std::string& path);
  Result<Config> Load(const std::string& text);
  ConfigReading Read();

  std::string path_, listen_;
  Config config_;
  std::string hash_;
  Stamp read_;        // when it was read last
  Stamp looked_;      // at the last look
  std::string seen_;  // the bytes' hash or the failure of the last reading
};

// 64 hexadecimal digits, as sha256sum prints them.
std::string Sha256Hex(std::string_view bytes);

// ConfigReload: applies a changed configuration file to the running service.
//
// A refused configuration changes nothing: the last good one stays in use. The log names the
// settings that need a restart (config/load.h).

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
