// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-node; guard, worker and their helpers get the same.
#pragma once

#include <string>
#include <vector>

namespace berth::node {

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

}  // namespace berth::node
