// SPDX-License-Identifier: Apache-2.0
//
// DeviceLikeness: which nodes' devices are alike to whoever chooses among them. Most nodes of a
// cluster have the same devices but for what tells one from another (cel::IsIdentity): UUIDs,
// addresses. Of these it counts which devices of the pool have the same one. So a claim finds on
// alike nodes the same devices by name, unless a selector of it looks at such an attribute.
// Pure functions.
#pragma once

#include "base/digest.h"
#include "cluster/claims/node_devices.h"

namespace berth {

// Everything that the pool's slices publish but their names, the pool's and the node's.
Digest LikenessOf(const DevicePool& pool);

}  // namespace berth
