// SPDX-License-Identifier: Apache-2.0
//
// Names that plugins send: they become paths of sockets and keys of annotations.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace berth::node {

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
