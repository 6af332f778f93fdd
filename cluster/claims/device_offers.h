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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/claims/node_devices.h"

namespace berth {

struct NodeDevices {
  DevicePools pools;
  std::set<DeviceName> taken;
  // Of all that, pools without their names; DeviceOffers sets it. Nothing: the node is like no
  // other.
  std::optional<Digest> likeness = {};

  [[nodiscard]] bool IsSame(const NodeDevices& other) const {
    return pools == other.pools && taken == other.taken;
  }
};

// What one claim is to have.
struct ClaimHold {
  std::string claim;  // "namespace/name"
  std::string node;
  std::vector<DeviceName> devices;
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
    std::string node;
    std::vector<DeviceName> devices;
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
