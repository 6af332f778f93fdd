// SPDX-License-Identifier: Apache-2.0
//
// ClusterState: the one mutable object - which pods, and which ResourceClaims, hold what on which
// node.
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
// A reservation is a placement decided here and not yet confirmed: it holds its devices until it is
// forgotten or its pod is gone. Its deadline frees nothing: the pod may be bound by then, so that
// somebody has to look (Overdue). PodBound is the truth and replaces whatever was held.
//
// Any thread may call any function. One mutex, held for in-memory work only; readers take a
// Snapshot and run without it. Every change publishes a new Snapshot before it returns.
#pragma once

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
#include "base/result.h"
#include "cluster/cluster_event.h"
#include "cluster/pod_record.h"
#include "cluster/snapshot.h"

namespace berth {

class ClusterState {
 public:
  ClusterState();

  // The newest snapshot.
  [[nodiscard]] std::shared_ptr<const Snapshot> Current() const BERTH_EXCLUDES(mutex_);

  // Applies events in order and publishes once. Error: kInvalidArgument for a NodeSpec that is not
  // valid (nothing of the batch is applied then).
  Status Apply(std::span<const ClusterEvent> events) BERTH_EXCLUDES(mutex_);

  // Holds the placement for the pod, if it fits the newest state, until it is confirmed or
  // forgotten; after settle_after somebody has to ask the cluster about it. A pod that is reserved
  // already is moved (its own holdings count as free). Error: kConflict when it does not fit or the
  // pod is bound, kNotFound when the node is not known; nothing changes then.
  Status Reserve(const PodRequest& pod, const Placement& placement, Instant settle_after)
      BERTH_EXCLUDES(mutex_);

  // reserved -> bound. Error: kNotFound when there is no reservation: the pod is gone.
  Status Confirm(std::string_view uid) BERTH_EXCLUDES(mutex_);

  // Drops the reservation; exactly undoes Reserve. A bound or unknown pod is left alone: returns
  // whether there was one.
  bool Forget(std::string_view uid) BERTH_EXCLUDES(mutex_);

  // The pods whose reservation has a deadline that is not after now. They keep it until somebody
  // has found out whether they are bound.
  [[nodiscard]] std::vector<PodId> Overdue(Instant now) const BERTH_EXCLUDES(mutex_);

  [[nodiscard]] std::optional<PodRecord> FindPod(std::string_view uid) const BERTH_EXCLUDES(mutex_);
  // The UIDs of all pods, in order.
  [[nodiscard]] std::vector<std::string> PodUids() const BERTH_EXCLUDES(mutex_);
  // How many pods of that gang are held, wherever they are.
  [[nodiscard]] std::size_t GangSize(std::string_view gang) const BERTH_EXCLUDES(mutex_);
  // The names of the nodes on which they are, sorted; also of nodes that are not known.
  [[nodiscard]] std::vector<std::string> GangNodes(std::string_view gang) const
      BERTH_EXCLUDES(mutex_);
  // All pods, by UID; with the snapshot of the same moment.
  struct Contents {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<PodRecord> pods;
  };
  [[nodiscard]] Contents Everything() const BERTH_EXCLUDES(mutex_);

 private:
  using Specs = std::map<std::string, std::shared_ptr<const NodeSpec>, std::less<>>;

  // Puts the record into the books in place of the one with its UID, if there is one / takes one
  // out; the node with it.
  void Keep(std::shared_ptr<const PodRecord> record) BERTH_REQUIRES(mutex_);
  void Erase(std::string_view uid) BERTH_REQUIRES(mutex_);
  void Unlist(const PodRecord& record) BERTH_REQUIRES(mutex_);  // all but the node
  [[nodiscard]] std::shared_ptr<const PodRecord> Find(std::string_view uid) const
      BERTH_REQUIRES(mutex_);
  void ApplyOne(const ClusterEvent& event) BERTH_REQUIRES(mutex_);
  void UpsertNode(const NodeSpec& said) BERTH_REQUIRES(mutex_);
  // The spec with what is offered on its node.
  [[nodiscard]] NodeSpec WithOffers(NodeSpec spec) const BERTH_REQUIRES(mutex_);
  void Offer(const GpusOffered& offered) BERTH_REQUIRES(mutex_);
  void Claim(const GpusClaimed& claimed) BERTH_REQUIRES(mutex_);
  void ReplaceNode(const std::shared_ptr<const NodeSpec>& spec) BERTH_REQUIRES(mutex_);
  // The node with the pods and claims that are on it now.
  [[nodiscard]] std::shared_ptr<const Node> BuildNode(
      const std::shared_ptr<const NodeSpec>& spec) const BERTH_REQUIRES(mutex_);
  void RebuildSnapshot() BERTH_REQUIRES(mutex_);
  // Replaces the node after its pods changed; one not known (yet) is left for later.
  template <class Change>
  void ChangeNode(const std::string& name, Change change) BERTH_REQUIRES(mutex_);
  void Publish() BERTH_REQUIRES(mutex_);

  mutable Mutex mutex_;
  Specs specs_ BERTH_GUARDED_BY(mutex_);
  // The keys are the UIDs inside the records.
  std::unordered_map<std::string_view, std::shared_ptr<const PodRecord>> pods_
      BERTH_GUARDED_BY(mutex_);
  // Also of nodes that are not known (yet).
  std::unordered_map<std::string, PodRecords> pods_by_node_ BERTH_GUARDED_BY(mutex_);
  // By node, also by those that are not known (yet).
  struct ClaimsOfNode {
    std::map<ClaimSource, std::vector<ClaimedGpu>> by_source;
    Node::Claims all;  // of these, one after the other
  };
  std::unordered_map<std::string, ClaimsOfNode> claims_ BERTH_GUARDED_BY(mutex_);
  // By node, also by those that are not known (yet).
  std::unordered_map<std::string, NodeMig> offered_ BERTH_GUARDED_BY(mutex_);
  // How many pods of each gang there are on each node.
  std::map<std::string, std::map<std::string, std::size_t>, std::less<>> gangs_
      BERTH_GUARDED_BY(mutex_);
  std::set<std::pair<Instant, std::string>> deadlines_ BERTH_GUARDED_BY(mutex_);  // reservations'
  std::uint64_t departed_ BERTH_GUARDED_BY(mutex_) = 0;                           // as in Snapshot
  Snapshot next_ BERTH_GUARDED_BY(mutex_);  // the snapshot in the making
  bool node_set_changed_ BERTH_GUARDED_BY(mutex_) = false;
  std::shared_ptr<const Snapshot> current_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
