// SPDX-License-Identifier: Apache-2.0
//
// What a pod with GPUs needs of its node's driver and of the GPUs (cluster/values/version_needs.h):
//
//   berth.dev/min-driver: "550.54.15"
//   berth.dev/min-cuda: "12.4"                  what the driver runs at least
//   berth.dev/min-compute-capability: "9.0"
#pragma once

#include <string_view>

#include "base/result.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::wire {

[[nodiscard]] bool IsVersionKey(std::string_view key);

// Reads the annotations into the constraints. Error: kInvalidArgument "annotation KEY: want ...".
Status ReadVersionNeeds(PodParts& parts);

}  // namespace berth::wire
