// SPDX-License-Identifier: Apache-2.0
//
// DeviceOffers: the devices that drivers publish for each node, and those of them that somebody
// has: a ResourceClaim that is allocated, or one for which they were chosen and whose allocation
// the watch has not shown yet (Hold).
//
// All pools are of one driver, so that pool and name tell a device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/random.h"
#include "base/result.h"
#include "cel/device.h"
#include "cluster/claims/device_claim.h"
#include "cluster/node/mig_spec.h"
#include "cluster/node/mig_use.h"
#include "cluster/values/node_constraints.h"
#include "topology/mig/mig_product.h"

namespace berth {

// NodeDevices: the devices that drivers publish for one node in ResourceSlices, as an allocator
// sees them: in the order in which kube-scheduler tries them - pools by driver and name, those with
// binding conditions last; slices by name; devices as published.
//
// Source: k8s.io/dynamic-resource-allocation structured/internal/incubating, GatherPools (1.37).
// A slice that is not of one node (nodeSelector, allNodes, perDeviceNodeSelection) is not here.

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

// MigOffers: the GPUs that DRA partitions - the MIG devices offered on each, and those that
// ResourceClaims have. Separate from NodeSpec::mig, the devices that Berth gives to pods: here a
// pod gets its device by a claim, and kube-scheduler places it. Devices that pods can get by the
// name of an extended resource are added to the node all the same (MigByExtendedResources).
//
//   taken     placements that allocated claims have, exactly: the device of a claim has a profile
//             and a start
//   whole     a claim has the whole GPU, or a part that nothing describes
//
// Some placements of a GPU may not be offered (tainted, or left out by the driver).

struct OfferedGpu {
  std::string pool = {};  // of the driver
  std::string uuid = {};  // empty = unknown
  int index = -1;         // as the driver counts; -1 = unknown
  std::shared_ptr<const MigProduct> product = {};
  MigSet offered = 0;
  std::vector<std::string> devices = {};  // names, by placement of the product; "" = there is none
  MigSet taken = 0;
  bool whole = false;
  friend bool operator==(const OfferedGpu&, const OfferedGpu&) = default;

  // What a claim may get now.
  [[nodiscard]] MigSet Free() const { return whole ? 0 : product->Addable(taken) & offered; }
};
using OfferedGpus = std::vector<OfferedGpu>;  // of one node

// Takes the devices of the claims; devices on other GPUs are ignored. Returns the claims whose
// device overlaps one that another claim has already.
std::vector<const ClaimedGpu*> TakeClaimed(std::span<const ClaimedGpu> claimed, OfferedGpus& gpus);

// The part of the offers that pods can get by extended resources which stand for these profiles, as
// the MIG devices of their node; unknown if they can get nothing. A MigSpec has one product: GPUs
// of another product than the first, and GPUs that no name distinguishes from the others, are left
// out.
NodeMig MigByExtendedResources(std::span<const OfferedGpu> gpus,
                               std::span<const MigProfile> profiles);

// Any thread may call any function. A result of Current does not change.
class MigOffers {
 public:
  using ByNode = std::map<std::string, std::shared_ptr<const OfferedGpus>, std::less<>>;

  [[nodiscard]] std::shared_ptr<const ByNode> Current() const BERTH_EXCLUDES(mutex_);

  // Replaces everything known about these nodes' GPUs.
  void Put(std::vector<std::pair<std::string, OfferedGpus>> nodes) BERTH_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const ByNode> current_ BERTH_GUARDED_BY(mutex_) =
      std::make_shared<const ByNode>();
};

struct NodeDevices {
  DevicePools pools;
  std::set<DeviceName> taken;
  UsedParts parts = {};  // of those that several claims share
  // Of all that, pools without their names; DeviceOffers sets it. Nothing: the node is like no
  // other.
  std::optional<Digest> likeness = {};

  [[nodiscard]] bool IsSame(const NodeDevices& other) const {
    return pools == other.pools && taken == other.taken && parts == other.parts;
  }
};

// What one claim is to have.
struct ClaimHold {
  std::string claim;  // "namespace/name"
  std::string node;
  std::vector<DeviceName> devices;
  UsedParts parts = {};
};

// Any thread may call any function. A result of Current does not change.
class DeviceOffers {
 public:
  using Devices = std::shared_ptr<const NodeDevices>;
  using ByNode = std::map<std::string, Devices, std::less<>>;

  [[nodiscard]] std::shared_ptr<const ByNode> Current() const BERTH_EXCLUDES(mutex_);

  // Replaces everything known of these nodes; no pools: the node has no devices.
  void Put(std::vector<std::pair<std::string, NodeDevices>> nodes) BERTH_EXCLUDES(mutex_);

  // Whether there are nodes whose devices are not kept, as there are too many: they are not here.
  void NoteInPart(bool in_part) { in_part_ = in_part; }
  [[nodiscard]] bool in_part() const { return in_part_; }

  // Takes devices for claims that do not have them yet, all or none, until Release or that time:
  // they were chosen, and only a write and the watch will show the outcome. What a claim held
  // before it gives back. `chosen_from`: what Current said. Error: kConflict if that has changed of
  // one of the nodes.
  Status Hold(const ByNode& chosen_from, const std::vector<ClaimHold>& holds, Instant now,
              Instant until) BERTH_EXCLUDES(mutex_);
  // The claim is known to have its devices, or not to get them.
  void Release(std::string_view claim) BERTH_EXCLUDES(mutex_);

 private:
  struct Held {
    ClaimHold hold;
    Instant until;
  };
  using Holds = std::map<std::string, Held, std::less<>>;  // by claim

  // Its node is published to `next`.
  Holds::iterator Drop(Holds::iterator held, ByNode& next) BERTH_REQUIRES(mutex_);
  // The node as it was put, with the held devices taken.
  void Publish(const std::string& node, ByNode& next) const BERTH_REQUIRES(mutex_);

  std::atomic<bool> in_part_ = false;
  mutable Mutex mutex_;
  ByNode put_ BERTH_GUARDED_BY(mutex_);
  Holds holds_ BERTH_GUARDED_BY(mutex_);
  std::shared_ptr<const ByNode> current_ BERTH_GUARDED_BY(mutex_) =
      std::make_shared<const ByNode>();
};

}  // namespace berth
