// SPDX-License-Identifier: Apache-2.0
//
// PodRecord: one pod on one node, as ClusterState keeps it and as the nodes of a snapshot show it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

// GivenDevices: the devices that a pod has on its node, by somebody who saw them being given. They
// outrank the plan (Placement): without an agent on the node the kubelet picks by itself.

// Who says what a pod has, the weakest first. Anybody who may write a pod can forge all but the
// last.
enum class Evidence : std::uint8_t {
  kPlan,     // Berth, or an annotation from before the pod was admitted
  kAgent,    // the agent of the node, in an annotation
  kKubelet,  // the kubelet, in the pod's status
};

struct GivenDevices {
  static constexpr std::size_t kMostIds = 64;  // of one pod, of each of the three lists
  static constexpr std::size_t kLongestId = 64;
  static constexpr std::size_t kLongestClaimed = 128;

  Evidence by = Evidence::kKubelet;  // never kPlan
  // GPUs, as the device plugin names them, without the number of a replica: sorted, unique.
  std::vector<std::string> ids = {};
  // How many replicas of each of `ids` it has. Empty: they were given whole.
  std::vector<int> replicas = {};
  std::vector<std::string> mig = {};  // MIG devices, in the same way
  // Devices of its claims, as their driver names them in the status; often the name in the
  // ResourceSlice behind other text ("8d1f..-gpu-1"): sorted, unique. Their health alone counts:
  // what a claim holds its own status says.
  std::vector<std::string> claimed = {};
  std::vector<std::string> unwell = {};  // of all these, the unhealthy ones: sorted

  [[nodiscard]] bool IsUnwell(const std::string& id) const {
    return std::ranges::binary_search(unwell, id);
  }
  [[nodiscard]] bool empty() const { return ids.empty() && mig.empty() && claimed.empty(); }
  friend bool operator==(const GivenDevices&, const GivenDevices&) = default;
};

enum class PodState {
  kPlanned,   // its gang has a plan in which it goes there; no bind of it has begun
  kReserved,  // its bind is under way, or in doubt
  kBound,
};
// "bound", "planned", "reserved": for people and in files.
inline const char* StateOf(PodState state) {
  if (state == PodState::kBound) return "bound";
  return state == PodState::kPlanned ? "planned" : "reserved";
}

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
  // (given_grants.h); nullptr: the placement says it all.
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
