// SPDX-License-Identifier: Apache-2.0
//
// ConfigFile: the configuration file of a running service, which may change under it: a mounted
// ConfigMap whose symbolic link moves on, a file that is replaced, a file that is edited in place.
//
// Changes are found by polling: one stat of the file behind all links (device, inode, size, times).
// If it differs, the file is read at the first poll that finds it as the poll before did, so that a
// file that is being written is not read as long as it grows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"

namespace berth {

// The result of reading the file.
struct ConfigReading {
  std::string hash;       // the first 12 digits of the SHA-256 of its bytes; empty: not read
  bool is_new = true;     // other bytes, or another failure, than at the reading before
  Result<Config> config;  // Error: as LoadConfigFile, also for a file without content
};

// Not thread-safe.
class ConfigFile {
 public:
  // Reads it for the first time. `listen` replaces server.listen in every reading unless it is
  // empty. An empty path stands for the defaults, which never change. Error: as LoadConfigFile.
  static Result<ConfigFile> Open(std::string path, std::string listen);

  // Of the first reading.
  [[nodiscard]] const Config& config() const { return config_; }
  // The SHA-256 of the first reading; of the defaults, that of what `berth config print` prints.
  [[nodiscard]] const std::string& hash() const { return hash_; }

  // The paths of what is written and not read (config/model_constants.h), of the last reading.
  [[nodiscard]] const std::vector<std::string>& ignored() const { return ignored_; }

  // Call it about once a second. Returns a value if the file has changed and was read.
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
  std::vector<std::string> ignored_;
  Stamp read_;        // when it was read last
  Stamp looked_;      // at the last look
  std::string seen_;  // the bytes' hash or the failure of the last reading
};

}  // namespace berth
