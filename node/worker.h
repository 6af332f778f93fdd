// SPDX-License-Identifier: Apache-2.0
//
// The worker: the process that does the work, and the short ones that clean up after it. Each
// returns the status to exit with.
#pragma once

#include <string>
#include <vector>

#include "server/telemetry/log.h"

namespace berth::node {

// The command line of berth-node; guard, worker and their helpers get the same.

struct NodeOptions {
  std::string folder = "/var/lib/kubelet/device-plugins";
  std::string pod_resources = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string node_name;
  std::string kubeconfig;   // "" = the pod's service account; without one there is no API server
  std::string kubelet_url;  // "" = not asked for its policies
  std::string driver_root;  // "" = the root of this file system
  bool lift_numa = false;
};

// The options as arguments of another process of this program.
std::vector<std::string> Arguments(const NodeOptions& options);

enum class HandBackWhen;

// Serves until SIGTERM. `heartbeat`: the descriptor of the guard's memory; -1: there is no guard.
// Requires: SIGTERM is blocked in all threads.
int RunWorker(const NodeOptions& options, int heartbeat, Log& log);

// Hands the plugins back to the kubelet.
int RunHandBack(const NodeOptions& options, HandBackWhen when, Log& log);

// Takes berth.dev/carries-out from the Node.
int RunWithdraw(const NodeOptions& options, Log& log);

}  // namespace berth::node
