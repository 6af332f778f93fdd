// SPDX-License-Identifier: Apache-2.0
#include "node/options.h"

namespace berth::node {

std::vector<std::string> Arguments(const NodeOptions& options) {
  std::vector<std::string> arguments = {"--dir", options.folder, "--pod-resources",
                                        options.pod_resources};
  const auto add = [&arguments](const char* name, const std::string& value) {
    if (value.empty()) return;
    arguments.emplace_back(name);
    arguments.push_back(value);
  };
  add("--node-name", options.node_name);
  add("--kubeconfig", options.kubeconfig);
  add("--kubelet-url", options.kubelet_url);
  add("--driver-root", options.driver_root);
  if (options.lift_numa) arguments.emplace_back("--lift-numa");
  return arguments;
}

}  // namespace berth::node
