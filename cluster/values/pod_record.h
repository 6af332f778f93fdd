// SPDX-License-Identifier: Apache-2.0
//
// PodRecord: one pod on one node, as ClusterState keeps it and as the nodes of a snapshot show it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/values/given_devices.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

enum class PodState {
  kPlanned,   // its gang has a plan in which it goes there; no bind of it has begun
  kReserved,  // its bind is under way, or in doubt
  kBound,
};

// What the API server says of a pod's life. Explanations tell it, and rooms that are gathered for a
// gang (scoring/earmarks) count on the ends of pods that complete.
struct PodLife {
  std::optional<WallTime> started = {};  // status.startTime: its kubelet has seen it
  std::optional<WallTime> ends = {};     // metadata.deletionTimestamp: its grace period is over
  bool comes_back = false;               // a DaemonSet's or a static pod: it is back at once
  bool completes = false;                // restartPolicy is not Always: it ends with its work
  bool evicted = false;                  // it ends since somebody called the Eviction API
  std::string replica_set = {};          // of a Deployment: "train-7d9f8c6b5"; empty: it is of none
  friend bool operator==(const PodLife&, const PodLife&) = default;

  // "train" of "train-7d9f8c6b5"; empty: it is of none.
  [[nodiscard]] std::string_view deployment() const {
    return std::string_view(replica_set)
        .substr(0, replica_set.empty() ? 0 : replica_set.rfind('-'));
  }
};

// What ClusterState holds for one pod.
struct PodRecord {
  PodRequest pod;
  Placement placement;
  PodState state = PodState::kReserved;
  Instant settle_after{};  // while reserved: when to ask the cluster about the pod

  bool annotated = false;  // its devices come from its annotation (device_disputes.h)
  bool leaving = false;    // it was told to end: it holds its devices and is no member of its gang
  PodLife life = {};
  // What its record says, if the placement is what that means on the node as it is now
  // (named_grants.h); nullptr: the placement says it all.
  std::shared_ptr<const Placement> said = nullptr;

  // What it was given, where somebody says it; nullptr: nobody does.
  std::shared_ptr<const GivenDevices> given = nullptr;
  // The devices that it was planned with (empty: nobody planned any), while its placement has those
  // that it was given. nullptr: `given` is unknown, or the node does not know those devices.
  std::shared_ptr<const PodDevices> planned = nullptr;

  // By whom it has the devices of its placement.
  [[nodiscard]] Evidence evidence() const { return planned ? given->by : Evidence::kPlan; }
  // It was planned on GPUs or MIG devices, and has others.
  [[nodiscard]] bool on_other_gpus() const {
    return planned != nullptr && !AreAsPlanned(*planned, DevicesOf(placement));
  }
  // It has GPUs, and they are unknown: it was bound past Berth.
  [[nodiscard]] bool unattributed() const {
    return pod.shape.wants_gpu() && placement.grants.empty() && placement.mig.empty();
  }
};

// Pods of one node: sorted by UID, each UID once. Shared by snapshots; never changed.
using PodRecords = std::vector<std::shared_ptr<const PodRecord>>;

// The position at which the pod with that UID is, or would be inserted.
inline PodRecords::const_iterator PositionOf(const PodRecords& pods, std::string_view uid) {
  return std::ranges::lower_bound(
      pods, uid, {}, [](const auto& pod) -> std::string_view { return pod->pod.id.uid; });
}

}  // namespace berth
