// SPDX-License-Identifier: Apache-2.0
//
// DeviceOffers: the devices that drivers publish for each node, and those of them that somebody
// has: a ResourceClaim that is allocated, or one for which they were chosen and whose allocation
// the watch has not shown yet (Hold).
//
// All pools are of one driver, so that pool and name tell a device.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/claims/node_devices.h"
#include "cluster/node/mig_spec.h"
#include "cluster/node/mig_use.h"
#include "topology/mig/mig_product.h"

namespace berth {

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
