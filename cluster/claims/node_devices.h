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
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cel/device.h"
#include "cluster/claims/device_claim.h"
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

// A capacity of a device, in thousandths, and what claims get of it (requestPolicy, KEP-5075). A
// device that several claims may share is full when one of its capacities is.
struct DeviceCapacity {
  std::string name;      // as published
  bool is_exact = true;  // all of it is a whole number of thousandths of 64 bits
  std::int64_t there_is = 0;
  std::optional<std::int64_t> unasked = {};  // of a claim that does not say how much; else all
  std::vector<std::int64_t> values = {};     // validValues, ascending; empty = any
  std::optional<std::int64_t> least = {}, most = {}, step = {};  // validRange
  friend bool operator==(const DeviceCapacity&, const DeviceCapacity&) = default;

  // What a claim takes that asks for so much (nullptr: does not say). nullopt: 64 bits do not hold
  // it.
  [[nodiscard]] std::optional<std::int64_t> TakenFor(const std::int64_t* asked) const;
  // Whether a claim may take just so much.
  [[nodiscard]] bool Admits(std::int64_t taken) const;
};
using DeviceCapacities = std::vector<DeviceCapacity>;

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
  // nullptr: none. Devices may share them.
  std::shared_ptr<const DeviceCapacities> capacity = nullptr;
  [[nodiscard]] const DeviceCapacities& capacities() const {
    static const DeviceCapacities kNone;
    return capacity == nullptr ? kNone : *capacity;
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
  // nullptr: no slice has it.
  [[nodiscard]] const PublishedDevice* Find(std::string_view device) const;
  // The same slices, and not others of the same content.
  friend bool operator==(const DevicePool&, const DevicePool&) = default;
};
using DevicePools = std::vector<DevicePool>;  // in the order above

// The pools of the slices of one node, or of slices of several generations of its pools.
DevicePools GatherPools(std::vector<std::shared_ptr<const PublishedSlice>> slices);

// By pool and name.
using DeviceName = std::pair<std::string, std::string>;
// What claims have together of divisible devices.
using UsedParts = std::map<DeviceName, CapacityUses>;

// SharedDevices: what devices of all nodes have in common is kept once: attributes, capacities, and
// the counters that they consume.
// One thread at a time; slices that were shared may be read by others meanwhile.
class SharedDevices {
 public:
  void Share(PublishedSlice& slice);

 private:
  cel::SharedValues values_;
  template <class T>
  struct Known {
    std::unordered_multimap<std::size_t, std::weak_ptr<const T>> by_hash = {};
    std::size_t sweep_at = 1024;
  };
  template <class T>
  static void ShareOne(std::shared_ptr<const T>& it, Known<T>& known);

  Known<ConsumedCounters> counters_;
  Known<DeviceCapacities> capacities_;
};

// About what the slice takes by itself, beside what it may share with others.
std::size_t OwnBytes(const PublishedSlice& slice);

// DeviceLikeness: which nodes' devices are alike to those who choose among them. Most nodes of a
// cluster have the same devices but for what tells one from another (cel::IsIdentity).

// Everything that the pool's slices publish but their names, the pool's and the node's.
Digest LikenessOf(const DevicePool& pool);

}  // namespace berth
