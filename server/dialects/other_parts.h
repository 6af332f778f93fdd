// SPDX-License-Identifier: Apache-2.0
//
// What `berth doctor` knows of the parts of a cluster that have an ecosystem's name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "server/wire/json/strict_json.h"

namespace berth::dialects {

struct ObjectSource {
  const char* kind;
  const char* path;             // of the list
  bool is_always_there = true;  // every API server has such objects
};
// Of two sources of a kind the second is for API servers that do not serve the first.
std::span<const ObjectSource> DoctorSources();

inline constexpr const char* kDevicePlugin = "the device plugin";

// How pods get GPUs on a node: kDevicePlugin where the kubelet and a plugin choose them, else
// names of agents and drivers. resources: the GPU resources with devices. drivers: of its slices.
struct DevicePaths {
  std::vector<std::string> ways = {};
  std::string silent_agent = {};  // it is there by its annotations, and offers no device
};
DevicePaths DevicePathsOf(const wire::Json& node, std::span<const std::string> resources,
                          std::span<const std::string> drivers);

// Whether labels say that no device plugin is to run there, as for GPUs of virtual machines.
bool RunsNoPlugin(const wire::Json& node);

// How the plugin that is in the pod of a DaemonSet is made to speak to berth-node. Empty: it is no
// plugin for GPUs that is known. by_operator: an operator's object says what the DaemonSet is.
std::string SwitchOver(const wire::Json& pod, const std::string& daemon_set, bool by_operator);

// A part of the manifests that a configuration needs, and a right that it brings.
struct NeededPart {
  const char* component;
  const char* role;  // ClusterRole and ClusterRoleBinding
  const char *verb, *resource;
  bool (*is_needed)(const Config& config);
};
std::span<const NeededPart> NeededParts();

// Values of the chart for the agent, one a line. classes: the cluster's RuntimeClasses.
std::vector<std::string> AgentValues(std::span<const std::string> classes,
                                     std::span<const std::string> resources);

}  // namespace berth::dialects
