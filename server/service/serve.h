// SPDX-License-Identifier: Apache-2.0
//
// `berth serve`: builds the service and runs it until SIGTERM or SIGINT.
#pragma once

#include <string>

#include "base/result.h"
#include "server/settings/config_file.h"

namespace berth {

// The cluster that is served: the embedded one of a file, else the one behind a kubeconfig, else
// the one in which this process is a pod.
struct ServeTarget {
  std::string cluster_file;
  std::string kubeconfig;
};

// Serves until SIGTERM or SIGINT, then drains. Changes of the configuration file are applied while
// it runs (server/settings/config_file.h). Prints "berth: listening on http://HOST:PORT" to
// stdout once it answers. Call it from the main thread, before any other thread is started. Error:
// what kept it from starting.
Status Serve(ConfigFile config_file, const ServeTarget& target);

}  // namespace berth
