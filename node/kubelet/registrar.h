// SPDX-License-Identifier: Apache-2.0
//
// Registering a device plugin with the kubelet.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace berth::node {

struct PluginOptions {
  bool pre_start = false;
  bool preferred_allocation = false;
  friend bool operator==(const PluginOptions&, const PluginOptions&) = default;
};

// A plugin as the kubelet finds it. `endpoint` is its socket, as a path from the folder of the
// kubelet's socket: "nvidia-gpu.sock", "berth/nvidia-gpu.sock".
struct PluginAddress {
  std::string resource;  // "nvidia.com/gpu"
  std::string endpoint;
  PluginOptions options;
  // With which sockets the kubelet had it directly (direct.h); "" = never.
  std::string direct;
  friend bool operator==(const PluginAddress&, const PluginAddress&) = default;
};

// The only version there is.
inline constexpr const char* kPluginVersion = "v1beta1";
inline constexpr const char* kKubeletSocket = "kubelet.sock";

// Blocks until the kubelet has connected to the endpoint. Error: kUnavailable, kDeadline; where
// they come late the kubelet may have registered it all the same.
Status RegisterWithKubelet(const std::string& kubelet_socket, const PluginAddress& plugin,
                           Duration limit);

}  // namespace berth::node
