// SPDX-License-Identifier: Apache-2.0
//
// What a pod was given (cluster/values/pod_record.h), as two of them write it.
//
// The kubelet, from Kubernetes 1.36 on, in the status of a container as soon as it is admitted, and
// until it has ended:
//
//   "allocatedResourcesStatus":[{"name":"vendor.com/gpu","resources":[
//     {"resourceID":"GPU-...","health":"Healthy"}]}]
//
// The agent of the node, where the kubelet does not, in the annotation berth.dev/given:
//
//   {"version":1,"containers":{"main":{"vendor.com/gpu":["GPU-..."]}}}
//
// "GPU-...::3" is a replica of a GPU. Of MIG devices the resource is one of those names
// ("vendor.com/mig-1g.10gb"), of claims "claim:NAME" or "claim:NAME/REQUEST". Devices of other
// resources are left out.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "server/wire/json/strict_json.h"

namespace berth::wire {

// MIG devices that pods ask for and have, as our own JSON: in the annotation berth.dev/devices and
// in the cluster file.
//
//   grant  {"gpu": 2, "uuid": "GPU-..", "profile": "1g.10gb", "start": 4, "shared": true}
//          gpu, uuid and start where they are known; shared where it is true
//   want   {"profile": "1g.10gb", "shared": false, "count": 2}
//          {"min_slices": 2, "min_memory_mib": 10240, "count": 1}

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

inline constexpr std::string_view kGivenKey = "berth.dev/given";

enum class GivenKind : std::uint8_t { kOther, kGpus, kMig, kClaimed };

// Collects devices, of all containers of one pod.
class GivenCollector {
 public:
  explicit GivenCollector(Evidence by) { given_.by = by; }

  // health: "Unhealthy" is; anything else is not known to be.
  void Add(GivenKind kind, std::string_view id, std::string_view health = {});
  // Error: kInvalidArgument with what is too long, or too much; nothing counts then.
  Result<GivenDevices> Finish();

 private:
  GivenDevices given_;
  std::set<std::string, std::less<>> replicas_;  // whole IDs
  std::string problem_;
};

// is_gpus: whether pods ask for whole GPUs by that name.
using IsGpuResource = std::function<bool(std::string_view resource)>;
GivenKind KindOfResource(std::string_view resource, const IsGpuResource& is_gpus);

// The annotation. Error: kInvalidArgument with the path of the key, what is wanted, what was found.
Result<GivenDevices> DecodeGiven(std::string_view text, const IsGpuResource& is_gpus);

}  // namespace berth::wire
