// SPDX-License-Identifier: Apache-2.0
//
// MIG devices that pods ask for and have, as our own JSON: in the annotation berth.dev/devices and
// in the cluster file.
//
//   grant  {"gpu": 2, "uuid": "GPU-..", "profile": "1g.10gb", "start": 4, "shared": true}
//          gpu, uuid and start where they are known; shared where it is true
//   want   {"profile": "1g.10gb", "shared": false, "count": 2}
//          {"min_slices": 2, "min_memory_mib": 10240, "count": 1}
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

// uuid: of the GPU; empty = not known.
Json MigGrantJson(const MigGrant& grant, const std::string& uuid = "");
// Adds one. Error: kInvalidArgument with the path: no profile, a start without a GPU, a device that
// is there twice, a UUID that is too long, more than kMaxMigDevicesPerPod.
Status ReadMigGrant(const Json& json, const std::string& path, std::vector<MigGrant>& grants);

// Error: kInvalidArgument with the path for a text that is longer than any UUID of a GPU.
Status CheckGpuUuid(const std::string& path, const std::string& uuid);

Json MigWantsJson(const MigSlices& ask);
// Adds one and keeps them sorted. Error: kInvalidArgument with the path.
Status ReadMigWant(const Json& json, const std::string& path, MigSlices& ask);

}  // namespace berth::wire
