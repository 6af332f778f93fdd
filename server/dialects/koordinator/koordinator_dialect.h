// SPDX-License-Identifier: Apache-2.0
//
// What Koordinator's scheduler writes on the Pods that it binds: the GPUs, or parts of them, that
// they got. They count on their node, so that nobody else gets them.
//
//   scheduling.koordinator.sh/device-allocated:
//     {"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "50",
//                                         "koordinator.sh/gpu-memory": "40Gi",
//                                         "koordinator.sh/gpu-memory-ratio": "50"}}], "rdma": ..}
//
// Core and ratio are percent of a GPU; the minor is taken as the index, as of its Devices.
// (koordinator at 0cbedd6, apis/extension/device_share.go.)
#pragma once

#include <memory>

#include "server/wire/dialect.h"

namespace berth::dialects {

std::unique_ptr<const wire::Dialect> MakeKoordinator();

}  // namespace berth::dialects
