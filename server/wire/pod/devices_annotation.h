// SPDX-License-Identifier: Apache-2.0
//
// The annotation berth.dev/devices: which GPUs or MIG devices each container of a bound pod has.
// Written with the binding, read back from the watch, so that a restart loses nothing. Beside it,
// for shares of GPUs whose UUIDs are known, berth.dev/visible-devices: these, joined by commas, as
// the NVIDIA runtime takes them from a container's environment. It is never read back.
//
//   {"version":1,"node":"n1","containers":
//     {"main":{"gpus":[{"index":3,"uuid":"GPU-..","milli":1000,"memory_mib":81920}]}}}
//     {"main":{"mig":[{"gpu":2,"uuid":"GPU-..","profile":"1g.10gb","start":4}]}}
//     {"main":{"places":[{"index":2,"uuid":"GPU-.."}]}}
//
// "places" are replicas of GPUs (of time slicing, for one), where an agent carries out on which
// they are. GPU and start are there where Berth chose them; where the node's own allocator does,
// the profile alone. "shared" is true for one user of several of a device.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/node/node.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth::wire {

inline constexpr std::string_view kDevicesKey = "berth.dev/devices";
// The decision's id in the log: beside every Binding of Berth's.
inline constexpr std::string_view kDecisionKey = "berth.dev/decision";
inline constexpr std::string_view kVisibleDevicesKey = "berth.dev/visible-devices";

// The value for that pod; UUIDs are those of the node, where they are known. Requires: the node has
// the devices (CheckDevices).
std::string EncodeDevices(const PodRequest& pod, const Placement& placement, const NodeSpec& node);

// The value of berth.dev/visible-devices; empty: none is written. Requires: as EncodeDevices.
std::string VisibleDevices(const PodRequest& pod, const Placement& placement, const NodeSpec& node);

// The pod's grants, put together again from those of its containers: exactly what EncodeDevices
// took apart. Error: kInvalidArgument with the path of the key for another version or node, a wrong
// type, an unknown key, a GPU that is there twice, and for containers whose GPUs are not what such
// a pod would have been given ("containers.main: want ..., got ...").
Result<PodDevices> DecodeDevices(std::string_view text, const PodRequest& pod,
                                 std::string_view node);

// The annotation berth.dev/devices as almost every pod has it.
using GpusByContainer = std::map<std::string, std::vector<DeviceGrant>>;

inline constexpr std::int64_t kMostGrantedMib = std::int64_t{1} << 40;

// By container, what the text gives to a pod on that node. nullopt: there is more in the text, or
// something is wrong with it.
std::optional<GpusByContainer> ReadPlainDevices(std::string_view text, std::string_view node);

}  // namespace berth::wire
