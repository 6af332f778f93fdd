// SPDX-License-Identifier: Apache-2.0
//
// Koordinator: its Devices are watched, and say the links of nodes that do not publish better ones.
#pragma once

#include <memory>

#include "cluster/node/link_library.h"
#include "server/kube/watch/watch_source.h"

namespace berth::dialects {

// library outlives the extension.
std::unique_ptr<kube::ClusterExtension> WatchKoordinator(const kube::ExtensionContext& context,
                                                         LinkLibrary& library);

}  // namespace berth::dialects
