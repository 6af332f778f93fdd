// SPDX-License-Identifier: Apache-2.0
//
// Registering a plugin with the kubelet under its own socket, instead of the agent or beside it.
//
// Each registration is under a new name, a link DIR/berth/run/back-*.sock. The kubelet of 1.37
// knows plugins by the path of their socket: one that registers twice under the same path is
// refused, and the kubelet misses its end from then on.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "node/kubelet/registrar.h"

namespace berth::node {

// When the socket was made, in nanoseconds since 1970; 0: there is none.
std::int64_t MadeAt(const std::string& path);

// Whether the kubelet has the plugin directly: a registration lasts as long as the sockets of both.
bool IsDirect(const std::string& folder, const PluginAddress& plugin);

// Registers the plugin, and notes it in plugin.direct. `folder` is the kubelet's. Error as of
// RegisterWithKubelet.
Status RegisterDirectly(const std::string& folder, PluginAddress& plugin, Duration limit);

// Removes the links of earlier registrations. The kubelet needs one until it has connected.
void RemoveDirectLinks(const std::string& folder);

}  // namespace berth::node
