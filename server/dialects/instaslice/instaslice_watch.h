// SPDX-License-Identifier: Apache-2.0
//
// instaslice: its AllocationClaims are watched, and what they hold is not free.
#pragma once

#include <memory>

#include "server/kube/watch/watch_source.h"

namespace berth::dialects {

std::unique_ptr<kube::ClusterExtension> WatchInstaslice(const kube::ExtensionContext& context);

}  // namespace berth::dialects
