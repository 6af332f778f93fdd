// SPDX-License-Identifier: Apache-2.0
//
// Dynamic resource allocation: ResourceSlices, ResourceClaims and DeviceClasses are watched, and
// the MIG device of an open claim is chosen before kube-scheduler does.
#pragma once

#include <memory>

#include "server/dialects/dra/device_claims.h"
#include "server/kube/watch/watch_source.h"

namespace berth::dialects {

// References: they outlive the extension. chooses: the devices of claims are chosen. Where they are
// not, only whole GPUs are kept of what slices publish: with dynamic MIG a node has some hundred
// devices more.
std::unique_ptr<kube::ClusterExtension> WatchDra(const kube::ExtensionContext& context,
                                                 const DeviceClaims::Tables& tables, bool chooses);

}  // namespace berth::dialects
