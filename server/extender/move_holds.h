// SPDX-License-Identifier: Apache-2.0
//
// MoveHolds: the places that are held for the successors of pods that Berth evicts to make room.
//
// A place is held in the books (ClusterState::Plan) for a stand-in, "NAME-moves-here", that no API
// server knows. Once the pod has been evicted, the first pod of its kind that the same controller
// made takes the place, when kube-scheduler asks about it; then that is the one node that fits it.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "cluster/state/cluster_state.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"

namespace berth {

// Any thread may call it.
class MoveHolds {
 public:
  // The state outlives it.
  explicit MoveHolds(ClusterState& state) : state_(state) {}

  // Holds the place for the successor of that pod. Error: as ClusterState::Plan.
  Status Hold(const PodRequest& pod, const Placement& place) BERTH_EXCLUDES(mutex_);
  // The pod is about to be evicted: a successor may come.
  void Open(const std::string& uid) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool Has(const std::string& uid) const BERTH_EXCLUDES(mutex_);
  // Of the pod of that UID; empty: it has not come yet.
  [[nodiscard]] std::optional<PodId> SuccessorOf(const std::string& uid) const
      BERTH_EXCLUDES(mutex_);
  // Holds nothing for that pod's successor any more. A bind of it that has begun goes on.
  void Release(const std::string& uid) BERTH_EXCLUDES(mutex_);

  // For each filter: the pod takes a place that is held for it. True: it has just done so.
  [[nodiscard]] bool Adopt(const PodRequest& pod) BERTH_EXCLUDES(mutex_);
  // Whether the pod has taken such a place.
  [[nodiscard]] bool HasAdopted(const std::string& uid) const BERTH_EXCLUDES(mutex_);

  // The UID in the books of what is held for the successor of the pod of that UID.
  static std::string StandInOf(const std::string& uid) { return "move-" + uid; }

 private:
  struct Held {
    PodRequest pod;  // that is moved
    bool open = false;
    std::optional<PodId> successor = {};
  };

  ClusterState& state_;
  std::atomic<bool> any_{false};  // a place is open
  mutable Mutex mutex_;
  std::map<std::string, Held> held_ BERTH_GUARDED_BY(mutex_);  // by UID of the pod that is moved
};

}  // namespace berth
