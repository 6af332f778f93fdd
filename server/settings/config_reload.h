// SPDX-License-Identifier: Apache-2.0
//
// ConfigReload: a changed configuration file becomes the policy of the running service.
//
// A configuration that is refused changes nothing: the last good one stays in use. What a running
// service cannot take over (config/reload.h) is named in the log and waits for a restart.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "config/config.h"
#include "server/extender/extender.h"
#include "server/settings/config_file.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace berth {

// The policy of the configuration, with that engine.
Extender::Policy PolicyOf(const Config& config, std::shared_ptr<Engine> engine);

// Not thread-safe: one thread checks the file, and it answers no requests.
class ConfigReload {
 public:
  // References: they outlive the object. Requires: the service runs with file.config().
  struct Parts {
    Extender& extender;
    Log& log;
    Metrics& metrics;
    std::shared_ptr<const LearnedMix> mix = nullptr;  // none: nothing is learned
    Background background = {};                       // of the engines that it makes
    // Called with the configuration in use when its workload classes have changed.
    std::function<void(const Config& config)> on_classes = {};
  };
  ConfigReload(ConfigFile file, const Parts& parts);

  // Checks the file and applies what has changed.
  void Look();

 private:
  void TellIgnored() const;
  void Refuse(const ConfigReading& reading);
  void Apply(const std::string& hash, const Config& wanted);
  void ApplyPolicy(const Config& next);

  ConfigFile file_;
  const Parts parts_;
  Config now_;  // in use
};

}  // namespace berth
