// SPDX-License-Identifier: Apache-2.0
//
// The file in which the worker keeps the plugins that it stands in for, so that they can be handed
// back to the kubelet, and taken over again, without it. One line each:
//
//   nvidia.com/gpu nvidia-gpu.sock pre-start=0 preferred=1 direct=1795430000000000001-179543...
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

}  // namespace berth::node
