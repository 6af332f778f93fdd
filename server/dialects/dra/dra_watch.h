// SPDX-License-Identifier: Apache-2.0
//
// Dynamic resource allocation: ResourceSlices, ResourceClaims and DeviceClasses are watched, and
// the MIG device of an open claim is chosen before kube-scheduler does.
#pragma once

#include <memory>

#include "cluster/claims/device_classes.h"
#include "cluster/claims/mig_offers.h"
#include "server/kube/watch/watch_source.h"

namespace berth::dialects {

// References: they outlive the extension.
std::unique_ptr<kube::ClusterExtension> WatchDra(const kube::ExtensionContext& context,
                                                 MigOffers& offers, DeviceClasses& classes);

}  // namespace berth::dialects
