// SPDX-License-Identifier: Apache-2.0
//
// DeviceRooms: nodes on which pods are evicted for a pod that waits: one that gets its GPUs by
// claims (device_preemption.h), or one for which others are moved (room_maker.h). What comes free
// there is that pod's, or its gang's: until it is planned there, no other pod with GPUs and no
// higher priority is let in. A pod with claims of its own is not planned: others are kept out until
// it has them. The nodes that kube-scheduler clears for members of gangs are kept the same way.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/state/cluster_state.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_request.h"
#include "scoring/reservations/reservations.h"

namespace berth {

struct DeviceRoom {
  PodId pod = {};      // for which; a member, if it is a gang
  GangId gang = {};    // empty: a pod alone
  bool moves = false;  // it is made by moves
  int priority = 0;
  std::string node = {};
  std::vector<PodId> victims = {};   // all of them
  std::vector<PodId> left = {};      // that are still to be evicted
  Instant since{};                   // the first of them was
  std::optional<Instant> held = {};  // since then there is room, and its GPUs are planned for it
  bool own_claims = false;           // it has claims of its own: nothing is planned
};

// Any thread may call it.
class DeviceRooms {
 public:
  static constexpr std::size_t kMost = 32;

  using ByNode = std::map<std::string, DeviceRoom, std::less<>>;
  // Never nullptr.
  [[nodiscard]] std::shared_ptr<const ByNode> Current() const BERTH_EXCLUDES(shown_);
  // Those that keep others out; nullptr: none does. The same object as long as these are the same.
  [[nodiscard]] std::shared_ptr<const KeptNodes> Kept() const BERTH_EXCLUDES(shown_);
  // That of the pod.
  [[nodiscard]] std::optional<DeviceRoom> Of(const std::string& uid) const BERTH_EXCLUDES(shown_);

  // How often a room has let in again whom it kept out: it was dropped, or is planned for its pod.
  [[nodiscard]] std::uint64_t openings() const { return openings_.load(); }

  // Adds it, or replaces that of its node. False: there are kMost.
  bool Put(DeviceRoom room) BERTH_EXCLUDES(mutex_);
  void Drop(const std::string& node) BERTH_EXCLUDES(mutex_);

  // Others are evicted for members of the gang on these nodes, and none is planned there yet: until
  // one is, they are kept like the rooms. In place of what was said of the gang before; none: no
  // more. Beyond kMostCleared nodes, half of them for one namespace, nothing is kept.
  static constexpr std::size_t kMostCleared = 4096;
  void KeepFor(const GangId& gang, KeptNodes nodes) BERTH_EXCLUDES(mutex_);

 private:
  // What is kept where these are the rooms; what was is kept on if it is the same.
  std::shared_ptr<const KeptNodes> KeptWith(const ByNode& rooms) const BERTH_REQUIRES(mutex_);
  void Publish(std::shared_ptr<const ByNode> rooms) BERTH_REQUIRES(mutex_) BERTH_EXCLUDES(shown_);

  std::atomic<bool> any_{false};
  std::atomic<std::uint64_t> openings_{0};
  Mutex mutex_;  // of those that change it
  std::map<GangId, KeptNodes> cleared_ BERTH_GUARDED_BY(mutex_);
  mutable Mutex shown_;  // that requests take; these are changed with both held
  std::shared_ptr<const ByNode> rooms_ BERTH_GUARDED_BY(shown_) = std::make_shared<const ByNode>();
  std::shared_ptr<const KeptNodes> kept_ BERTH_GUARDED_BY(shown_);
};

// Whether it keeps anybody out.
bool IsClosed(const DeviceRoom& room);

// MoveHolds: the places that are held for the successors of pods that Berth evicts to make room.
//
// A place is held in the books (ClusterState::Plan) for a stand-in, "NAME-moves-here", that no API
// server knows. Once the pod has been evicted, the first pod of its kind that the same controller
// made takes the place, when kube-scheduler asks about it; then that is the one node that fits it.

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
