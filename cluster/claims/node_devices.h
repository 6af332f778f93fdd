// SPDX-License-Identifier: Apache-2.0
//
// NodeDevices: the devices that drivers publish for one node in ResourceSlices, as an allocator
// sees them: in the order in which kube-scheduler tries them - pools by driver and name, those with
// binding conditions last; slices by name; devices as published.
//
// Source: k8s.io/dynamic-resource-allocation structured/internal/incubating, GatherPools (1.37).
// A slice that is not of one node (nodeSelector, allNodes, perDeviceNodeSelection) is not here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cel/device.h"
#include "cluster/values/node_constraints.h"

namespace berth {

// Of counters of its pool: the name of the counter set, of the counter, and how much.
struct ConsumedCounter {
  std::string set;
  std::string counter;
  std::int64_t milli = 0;  // thousandths
  friend bool operator==(const ConsumedCounter&, const ConsumedCounter&) = default;
};

using ConsumedCounters = std::vector<ConsumedCounter>;

struct PublishedDevice {
  std::string name;
  cel::Device seen;           // by selectors and constraints
  std::vector<Taint> taints;  // NoSchedule and NoExecute
  // nullptr: none. Devices may share it.
  std::shared_ptr<const ConsumedCounters> consumes;
  [[nodiscard]] const ConsumedCounters& consumed() const {
    static const ConsumedCounters kNone;
    return consumes == nullptr ? kNone : *consumes;
  }
  bool divisible = false;  // several claims may have parts of it (allowMultipleAllocations)
  bool binds = false;      // it has binding conditions: it is prepared before pods are bound
};

struct PublishedSlice {
  std::string namespace_name;  // always empty
  std::string name;
  std::string driver;
  std::string pool;
  std::int64_t generation = 0;
  std::int64_t slices_in_pool = 0;  // resourceSliceCount
  std::string node;                 // empty = not of one node
  bool in_part = false;             // devices of it are not kept
  std::vector<PublishedDevice> devices;
  ConsumedCounters counters;  // sharedCounters: how much there is
};

struct DevicePool {
  std::string driver;
  std::string name;
  // Every slice of the newest generation is there, and they do not contradict each other.
  bool usable = true;
  // Of one generation, by name.
  std::vector<std::shared_ptr<const PublishedSlice>> slices;
  Digest likeness = {};     // LikenessOf
  std::size_t devices = 0;  // of all slices
  // The same slices, and not others of the same content.
  friend bool operator==(const DevicePool&, const DevicePool&) = default;
};
using DevicePools = std::vector<DevicePool>;  // in the order above

// The pools of the slices of one node, or of slices of several generations of its pools.
DevicePools GatherPools(std::vector<std::shared_ptr<const PublishedSlice>> slices);

// By pool and name.
using DeviceName = std::pair<std::string, std::string>;

// SharedDevices: what devices of all nodes have in common is kept once: attributes, capacities, and
// the counters that they consume.
// One thread at a time; slices that were shared may be read by others meanwhile.
class SharedDevices {
 public:
  void Share(PublishedSlice& slice);

 private:
  cel::SharedValues values_;
  std::unordered_multimap<std::size_t, std::weak_ptr<const ConsumedCounters>> counters_;
  std::size_t sweep_at_ = 1024;
};

// About what the slice takes by itself, beside what it may share with others.
std::size_t OwnBytes(const PublishedSlice& slice);

// DeviceLikeness: which nodes' devices are alike to those who choose among them. Most nodes of a
// cluster have the same devices but for what tells one from another (cel::IsIdentity).

// Everything that the pool's slices publish but their names, the pool's and the node's.
Digest LikenessOf(const DevicePool& pool);

}  // namespace berth
