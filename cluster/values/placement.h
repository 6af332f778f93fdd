// SPDX-License-Identifier: Apache-2.0
//
// Placement: a pod's node and what it takes there. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/values/pod_request.h"
#include "topology/gpu_mask.h"

namespace berth {

// One GPU (or a share of it) given to a pod.
struct DeviceGrant {
  static constexpr int kUnknown = -1;
  int gpu = 0;               // index on the node; kUnknown beside a UUID
  int milli = kMilliPerGpu;  // thousandths of its compute; 1000 = whole
  // Of its memory; 0 where the node's GPU memory is not known.
  std::int64_t memory_mib = 0;
  // If a record names the GPU by it, and as long as it is not known which one of the node that is
  // (given_grants.h). An index beside it is the one that the GPU had then.
  std::string uuid = {};
  // Thousandths of the GPU's memory, on top of memory_mib, as long as the GPU is not known.
  // kAsAsked: none, and the amounts are the pod's, in the units of the GPU's agent.
  int memory_milli = 0;
  static constexpr int kAsAsked = kMilliPerGpu + 1;
  // Of a share: those that have a part of it.
  ContainerMask containers = 0;
  friend bool operator==(const DeviceGrant&, const DeviceGrant&) = default;
};

// One MIG device given to a pod. GPU and start are set if Berth chooses them, or if another
// scheduler's record has them. If the node's own allocator picks (MigSpec::allocator), only the
// profile is certain.
struct MigGrant {
  static constexpr int kUnknown = -1;
  int gpu = kUnknown;    // index on the node
  int start = kUnknown;  // memory unit at which it begins; known only together with the GPU
  MigProfile profile = {};
  bool shared = false;    // one user of several of a device
  std::string uuid = {};  // of the GPU, if a record has it instead of the index
  [[nodiscard]] bool exact() const { return start >= 0 && (gpu >= 0 || !uuid.empty()); }
  friend auto operator<=>(const MigGrant&, const MigGrant&) = default;
};

constexpr int kMaxGpuPlaces = 1'000'000;

struct Placement {
  std::string node;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_bytes = 0;
  std::vector<DeviceGrant> grants;  // by ascending GPU index, each known GPU at most once
  std::vector<MigGrant> mig = {};   // sorted
  int places = 0;                   // on GPUs with several users (NodeSpec::places)
  std::int64_t ephemeral_bytes = 0;
  // If the devices are known by the record of another scheduler's agent that counts on nodes of
  // that agent alone (NodeSpec::agents), and as long as the node is not known (given_grants.h).
  std::string agent = {};
  // The GPUs that its places are on, by index: one for each place, ascending. Empty: not known.
  std::vector<int> places_on = {};
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Divides the GPUs of its places the same way: each container gets as many as it asks for, in the
// order of the containers.
std::vector<std::pair<std::string, std::vector<int>>> PlacesByContainer(const PodRequest& pod,
                                                                        const Placement& placement);

// The devices of a placement, as in Placement.
struct PodDevices {
  std::vector<DeviceGrant> grants = {};
  std::vector<MigGrant> mig = {};
  std::vector<int> places_on = {};
  [[nodiscard]] bool empty() const { return grants.empty() && mig.empty() && places_on.empty(); }
  friend bool operator==(const PodDevices&, const PodDevices&) = default;
};
PodDevices DevicesOf(const Placement& placement);
void SetDevices(PodDevices devices, Placement& placement);

// Whether they are on the same GPUs, and the MIG devices that `planned` names are among `has`.
bool AreAsPlanned(const PodDevices& planned, const PodDevices& has);

// The GPUs of the grants that are among the first `gpus` of a node.
GpuMask GpusAmong(std::span<const DeviceGrant> grants, std::size_t gpus);

// What a pod of that shape takes of the node beside devices.
Placement WithoutDevices(std::string node, const RequestShape& shape);

// What a pod with a share asks for of that GPU, all containers that have a part of it together.
GpuShare AskedOf(const DeviceGrant& grant, const RequestShape& shape);

// Divides a pod's grants among its containers: whole GPUs in the order of the containers (the GPUs
// of an init container that ends first are reused by those after it), of a share, on each of its
// GPUs, a part to every container that has one there. Containers without a GPU are left out.
std::vector<std::pair<std::string, std::vector<DeviceGrant>>> GrantsByContainer(
    const PodRequest& pod, const Placement& placement);

// Divides a pod's MIG devices the same way: each container gets the first remaining ones of the
// profiles that it asks for. Containers that get none are left out.
std::vector<std::pair<std::string, std::vector<MigGrant>>> MigByContainer(
    const PodRequest& pod, const Placement& placement);

}  // namespace berth
