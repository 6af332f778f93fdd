// SPDX-License-Identifier: Apache-2.0
//
// ClusterState: the one mutable object. It holds which pods, and which ResourceClaims, have which
// devices on which node.
//
// The life of a pod here, keyed by its UID:
//
//                Reserve                  Confirm, PodBound
//      unknown ----------> reserved ---------------------------> bound
//       ^   |                 |                                    ^ |
//       |   |                 | Forget, PodGone                    | |
//       +---|-----------------+                                    | |
//       |   +------------------------- PodBound -------------------+ |
//       +--------------------------- PodGone ------------------------+
//
//                Plan                Reserve
//      unknown ----------> planned ----------> reserved
//           ^                 | Unplan, PodGone
//           +-----------------+
//
// A plan is a placement of every member of a gang, made before the first of them is bound. It holds
// the devices as a reservation does; no bind has begun, so it leaves no doubt.
//
// A reservation is a placement that was decided here and is not yet confirmed. It holds its devices
// until it is forgotten or its pod is gone. Its deadline frees nothing, because the pod may be
// bound by then: the caller has to ask the cluster (Overdue, Settle). The same holds for a pod that
// was bound here and that a list of all pods did not contain (PodMissed). An answer settles the
// doubt that it was asked for, and no later one. PodBound is the truth and replaces whatever was
// held, except for devices that an annotation names (device_disputes.h). What a pod was given
// (PodBound::given) outranks both: the pod holds that, and what it was planned with is free.
//
//   BERTH_TRY_STATUS(state.Apply(events));  // nodes and bound pods
//   const auto snapshot = state.Current();  // any decision runs on it, without a lock
//   BERTH_TRY(const auto node, state.Reserve(pod, placement, clock.Now() + 30s));
//   if (Bind(pod, placement, node->spec())) {
//     BERTH_TRY_STATUS(state.Confirm(pod.id.uid));
//   } else {
//     state.Forget(pod.id.uid);
//   }
//
// Any thread may call any function. One mutex, held for in-memory work only. Readers take a
// Snapshot and run without it. Every change publishes a new Snapshot before it returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/cluster_event.h"
#include "cluster/state/device_disputes.h"
#include "cluster/state/held_devices.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth {

// SharedConstraints: pods that may go to the same nodes share one object that says so: replicas
// do, and nearly all pods that say nothing but the tolerations that Kubernetes gives each pod.

// One thread at a time.
class SharedConstraints {
 public:
  using Shared = std::shared_ptr<const NodeConstraints>;

  // Returns the object that stands for all that are alike. nullptr: nullptr.
  Shared Share(const Shared& constraints) {
    if (constraints == nullptr) return nullptr;
    if (known_.size() >= sweep_at_) {
      std::erase_if(known_, [](const Shared& one) { return one.use_count() == 1; });
      sweep_at_ = known_.size() * 2 + kLeastSweep;
    }
    return *known_.insert(constraints).first;
  }
  [[nodiscard]] std::size_t size() const { return known_.size(); }

 private:
  static constexpr std::size_t kLeastSweep = 1000;
  struct Hash {
    std::size_t operator()(const Shared& one) const { return HashValue(*one); }
  };
  struct Same {
    bool operator()(const Shared& a, const Shared& b) const { return a == b || *a == *b; }
  };

  std::unordered_set<Shared, Hash, Same> known_;
  std::size_t sweep_at_ = kLeastSweep;
};

class ClusterState {
 public:
  ClusterState();

  // The newest snapshot.
  [[nodiscard]] std::shared_ptr<const Snapshot> Current() const BERTH_EXCLUDES(mutex_);

  // Calls `on_publish` after every new snapshot, instead of the function set before. The call comes
  // on the thread that changed the state and holds its lock: it must neither block nor call this
  // object.
  void OnPublish(std::function<void()> on_publish) BERTH_EXCLUDES(mutex_);

  // Applies the events in order and publishes once. Error: kInvalidArgument for an invalid NodeSpec
  // or invalid MIG devices; then none of the events is applied.
  Status Apply(std::span<const ClusterEvent> events) BERTH_EXCLUDES(mutex_);
  // The same; keeps nodes as they are in the events, without a copy.
  Status Apply(std::vector<ClusterEvent>&& events) BERTH_EXCLUDES(mutex_);

  // Holds the placement for the pod, if it fits the newest state, until it is confirmed or
  // forgotten. After settle_after the caller has to ask the cluster about it. A pod that is
  // reserved already is moved (its own holdings count as free). Returns the node for which that was
  // found, without the pod: the Binding has to be written by this one, since the
  // cluster's may have other GPUs by now. Error: kConflict if it does not fit or the pod is bound,
  // kNotFound if the node is unknown; nothing changes then.
  Result<std::shared_ptr<const Node>> Reserve(const PodRequest& pod, const Placement& placement,
                                              Instant settle_after) BERTH_EXCLUDES(mutex_);

  // Holds the placements for the pods, all of them or none, with one new snapshot. Each is checked
  // with those before it in place. Pods that are planned already are moved. Error: as Reserve, of
  // the first that does not fit; kConflict also for a pod that is reserved. Nothing changes then.
  Status Plan(std::span<const PodPlacement> pods) BERTH_EXCLUDES(mutex_);

  // What is planned for that UID is planned for the pod from now on, with nothing free in between.
  // Error: kNotFound if nothing is, kConflict if the pod is in the books already.
  Status HandOver(std::string_view uid, const PodRequest& pod) BERTH_EXCLUDES(mutex_);

  // Drops those of the pods that are planned, with one new snapshot, and leaves the others alone.
  // Returns how many.
  std::size_t Unplan(std::span<const std::string> uids) BERTH_EXCLUDES(mutex_);

  // The pods are of other gangs than they were known to be. Those that are not here are left out.
  void Regroup(std::span<const PodRequest> pods) BERTH_EXCLUDES(mutex_);

  // reserved -> bound. Error: kNotFound when there is no reservation: the pod is gone.
  Status Confirm(std::string_view uid) BERTH_EXCLUDES(mutex_);

  // Drops the reservation; exactly undoes Reserve. Leaves a bound or unknown pod alone. Returns
  // whether there was a reservation.
  bool Forget(std::string_view uid) BERTH_EXCLUDES(mutex_);

  // A pod for which only the cluster knows whether it is bound.
  struct Doubt {
    PodId pod;
    std::uint64_t number = 0;  // no two doubts have the same
  };
  // The doubts about which the cluster has to be asked now. The pods keep what they hold.
  [[nodiscard]] std::vector<Doubt> Overdue(Instant now) const BERTH_EXCLUDES(mutex_);
  // The doubt about that pod, overdue or not.
  [[nodiscard]] std::optional<Doubt> DoubtAbout(std::string_view uid) const BERTH_EXCLUDES(mutex_);
  // Applies the cluster's answer about the doubt; nullopt: the pod is not bound. Returns false and
  // changes nothing if that doubt is over, because something newer is known.
  bool Settle(const Doubt& doubt, const std::optional<PodBound>& truth) BERTH_EXCLUDES(mutex_);

  [[nodiscard]] std::optional<PodRecord> FindPod(std::string_view uid) const BERTH_EXCLUDES(mutex_);
  // Whether the pod was reserved or bound to that node here, and no watch has shown it there yet.
  // What the pod says of itself plays no part.
  [[nodiscard]] bool IsBoundFromHere(std::string_view uid, std::string_view node) const
      BERTH_EXCLUDES(mutex_);
  // The UIDs of the pods that are bound.
  [[nodiscard]] std::vector<std::string> BoundUids() const BERTH_EXCLUDES(mutex_);
  // The UIDs of the pods that were reserved or bound here and not confirmed by a PodBound since.
  [[nodiscard]] std::vector<std::string> UnshownUids() const BERTH_EXCLUDES(mutex_);
  // The pods on known nodes whose annotation is not believed, by UID; how many they are.
  [[nodiscard]] std::vector<DeviceDispute> Disputes() const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t DisputeCount() const BERTH_EXCLUDES(mutex_);
  // What has changed of them since the last call; the first call: all. For one caller.
  [[nodiscard]] std::vector<DisputeChange> TakeDisputeChanges() BERTH_EXCLUDES(mutex_);
  // How often an annotation was compared with the books: the work that annotations make.
  [[nodiscard]] std::uint64_t DisputeChecks() const BERTH_EXCLUDES(mutex_);
  // The pods of that gang, on any node, with the snapshot of the same moment.
  struct GangContents {
    std::shared_ptr<const Snapshot> snapshot;
    PodRecords pods;
  };
  [[nodiscard]] GangContents GangPods(const GangId& gang) const BERTH_EXCLUDES(mutex_);
  // How many pods of that gang are planned, reserved or bound, on any node.
  [[nodiscard]] std::size_t GangSize(const GangId& gang) const BERTH_EXCLUDES(mutex_);
  // The names of their nodes, sorted; includes unknown nodes.
  [[nodiscard]] std::vector<std::string> GangNodes(const GangId& gang) const BERTH_EXCLUDES(mutex_);
  // All pods, sorted by UID, with the snapshot of the same moment.
  struct Contents {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<PodRecord> pods;
  };
  [[nodiscard]] Contents Everything() const BERTH_EXCLUDES(mutex_);
  // Those on nodes that are not known, sorted by UID.
  [[nodiscard]] PodRecords PodsOnUnknownNodes() const BERTH_EXCLUDES(mutex_);

 private:
  using SpecMap = std::map<std::string, std::shared_ptr<const NodeSpec>, std::less<>>;

  // Puts the record in place of the one with its UID, if there is one / takes one out. Both change
  // the node too.
  void Keep(PodRecord kept) BERTH_REQUIRES(mutex_);
  void Erase(std::string_view uid) BERTH_REQUIRES(mutex_);
  // The pod has left the cluster.
  void Leave(std::string_view uid) BERTH_REQUIRES(mutex_);
  void Miss(const std::string& uid) BERTH_REQUIRES(mutex_);
  void Show(const PodBound& bound) BERTH_REQUIRES(mutex_);
  // Keeps what is believed of it.
  void Book(const PodBound& bound) BERTH_REQUIRES(mutex_);
  // Keeps what it was given. Returns false where nobody says it, or it does not count: then the
  // plan does. given: what is known of it now.
  bool BookGiven(const PodBound& bound, const std::shared_ptr<const GivenDevices>& given)
      BERTH_REQUIRES(mutex_);
  // Gives the pods there the GPUs of the claims that were made for them.
  void FindClaimedGpus(const std::string& node) BERTH_REQUIRES(mutex_);
  // The placement with the GPUs of the claim that was made for the pod, if one is known there.
  [[nodiscard]] Placement WithClaim(Placement placement, const PodRequest& pod) const
      BERTH_REQUIRES(mutex_);
  // What the pods there were given, whose node has changed.
  void FindGivenGpus(const NodeSpec& spec) BERTH_REQUIRES(mutex_);
  // What a pod on that node says of the health of its GPUs, now and before; nullptr: nothing.
  void HearHealth(const std::string& node, const GivenDevices* before, const GivenDevices* now)
      BERTH_REQUIRES(mutex_);
  void HearPodsOn(const std::string& node) BERTH_REQUIRES(mutex_);
  // Closes the GPUs that are not well any more.
  void CloseUnwell() BERTH_REQUIRES(mutex_);
  // Of the pods there, the GPUs that the node has by the UUIDs that it says now.
  void FindNamedGpus(const NodeSpec& spec) BERTH_REQUIRES(mutex_);
  // Believes the devices that the disputed pod names, if there is room for them now.
  void Reconsider(const std::string& uid) BERTH_REQUIRES(mutex_);
  // The same of all disputed pods that name a device which somebody has left.
  void ReconsiderFreed() BERTH_REQUIRES(mutex_);
  [[nodiscard]] DeviceDisputes::SpecOf Specs() const BERTH_REQUIRES(mutex_);
  // Disputes annotations that name devices which the new node does not have.
  void DisputeUnknownDevices(const NodeSpec& spec) BERTH_REQUIRES(mutex_);
  void Unlist(const PodRecord& record) BERTH_REQUIRES(mutex_);  // all but the node
  [[nodiscard]] std::shared_ptr<const PodRecord> Find(std::string_view uid) const
      BERTH_REQUIRES(mutex_);
  [[nodiscard]] const PodRecords& PodsOn(const std::string& node) const BERTH_REQUIRES(mutex_);
  [[nodiscard]] const NodeSpec* SpecOf(std::string_view node) const
      BERTH_REQUIRES(mutex_);  // nullptr: not known
  template <class Event>
  Status ApplyAll(std::span<Event> events) BERTH_EXCLUDES(mutex_);
  // All but NodeUpserted.
  void ApplyOne(const ClusterEvent& event) BERTH_REQUIRES(mutex_);
  void UpsertNode(NodeSpec said) BERTH_REQUIRES(mutex_);
  void RemoveNode(const std::string& name) BERTH_REQUIRES(mutex_);
  // T: GpusOffered or SliceGpusOffered.
  template <class T>
  void Offer(const T& offered) BERTH_REQUIRES(mutex_);
  void Refuse(const GpuPodsRefused& refused) BERTH_REQUIRES(mutex_);
  void Claim(const GpusClaimed& claimed) BERTH_REQUIRES(mutex_);
  void ReplaceNode(const std::shared_ptr<const NodeSpec>& spec) BERTH_REQUIRES(mutex_);
  // The node with the pods and claims that are on it now.
  [[nodiscard]] std::shared_ptr<const Node> BuildNode(
      const std::shared_ptr<const NodeSpec>& spec) const BERTH_REQUIRES(mutex_);
  void RebuildSnapshot() BERTH_REQUIRES(mutex_);
  // Replaces the node after its pods changed; if they change again before there is a snapshot, it
  // is built anew then. Does nothing for an unknown node, which is built when it appears.
  template <class Change>
  void ChangeNode(const std::string& name, Change change) BERTH_REQUIRES(mutex_);
  void Publish() BERTH_REQUIRES(mutex_);

  mutable Mutex mutex_;
  SpecMap specs_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, GpuPodsRefused> refusing_ BERTH_GUARDED_BY(mutex_);  // by node
  // By the UIDs inside the records, which are not written down a second time.
  struct UidOf {
    std::string_view operator()(std::string_view uid) const { return uid; }
    std::string_view operator()(const std::shared_ptr<const PodRecord>& record) const {
      return record->pod.id.uid;
    }
  };
  struct UidHash {
    using is_transparent = void;
    std::size_t operator()(const auto& pod) const noexcept {
      return std::hash<std::string_view>()(UidOf()(pod));
    }
  };
  struct SameUid {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const { return UidOf()(a) == UidOf()(b); }
  };
  std::unordered_set<std::shared_ptr<const PodRecord>, UidHash, SameUid> pods_
      BERTH_GUARDED_BY(mutex_);
  // Also of nodes that are not known (yet).
  std::unordered_map<std::string, PodRecords> pods_by_node_ BERTH_GUARDED_BY(mutex_);
  const PodRecords no_pods_;
  HeldDevices held_ BERTH_GUARDED_BY(mutex_);  // of pods_
  // Records that are not in the books any more, or not with these devices: of this moment alone.
  std::vector<std::shared_ptr<const PodRecord>> freed_ BERTH_GUARDED_BY(mutex_);
  // How often the pods of these nodes have changed since the last snapshot.
  std::map<std::string, int> changes_ BERTH_GUARDED_BY(mutex_);
  NodeClaims claims_ BERTH_GUARDED_BY(mutex_);
  GangMembers gangs_ BERTH_GUARDED_BY(mutex_);
  // By UID: pods reserved or bound here that no PodBound has shown since.
  struct Unshown {
    std::uint64_t number = 0;  // of the doubt
    bool missed = false;       // a list of all pods did not show it
  };
  std::unordered_map<std::string, Unshown> unshown_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t doubts_ BERTH_GUARDED_BY(mutex_) = 0;  // the number of the last one
  // Of reservations, and of pods that were bound here and missed (at once).
  std::set<std::pair<Instant, std::string>> deadlines_ BERTH_GUARDED_BY(mutex_);
  DeviceDisputes disputes_ BERTH_GUARDED_BY(mutex_);
  UnwellGpus unwell_ BERTH_GUARDED_BY(mutex_);
  SharedConstraints constraints_ BERTH_GUARDED_BY(mutex_);
  std::set<std::string> health_changed_ BERTH_GUARDED_BY(mutex_);  // nodes: of this moment alone
  std::uint64_t departed_ BERTH_GUARDED_BY(mutex_) = 0;            // as in Snapshot
  Snapshot next_ BERTH_GUARDED_BY(mutex_);                         // the snapshot in the making
  bool node_set_changed_ BERTH_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const Snapshot> current_ BERTH_GUARDED_BY(mutex_);
  std::function<void()> on_publish_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
