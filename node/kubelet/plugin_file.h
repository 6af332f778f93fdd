// SPDX-License-Identifier: Apache-2.0
//
// The file in which the worker keeps the plugins that it stands in for, so that they can be handed
// back to the kubelet, and taken over again, without it. One line each:
//
//   nvidia.com/gpu nvidia-gpu.sock pre-start=0 preferred=1 direct=1795430000000000001-179543...
//
// And one more for PluginAddress::sick, which an older agent leaves out:
//
//   sick nvidia.com/gpu 1795430000000000001:GPU-1,GPU-2
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/kubelet/registrar.h"

namespace berth::node {

inline constexpr std::size_t kMostResources = 64;  // that one agent stands in for

// A line that cannot be used is left out, and what is beyond kMostResources.
std::vector<PluginAddress> ParsePlugins(std::string_view text);
std::string PluginsText(const std::vector<PluginAddress>& plugins);

// Empty where there is no file.
std::vector<PluginAddress> ReadPlugins(const std::string& path);

// Whole or not at all. Error: kUnavailable with the path and the reason.
Status WritePlugins(const std::string& path, const std::vector<PluginAddress>& plugins);

// Names that plugins send: they become paths of sockets and keys of annotations.

// Error: kInvalidArgument "resource_name: want a domain, a slash and a name, got \"gpu\"".
Status CheckResourceName(std::string_view name);

// Of a socket beside the kubelet's. Error: kInvalidArgument for a path, for a name that is too long
// and for those that this agent and the kubelet use.
Status CheckEndpoint(std::string_view name);

// "nvidia.com/gpu" -> "berth-nvidia-com-gpu.sock".
// With a number: "berth-nvidia-com-gpu-2.sock".
std::string EndpointFor(std::string_view resource, unsigned number = 0);

// "GPU-1::3", the fourth replica of a GPU that is shared by time -> "GPU-1".
std::string_view WithoutReplica(std::string_view device);

}  // namespace berth::node
