// SPDX-License-Identifier: Apache-2.0
//
// Extender: the four verbs in domain terms. Every verb is one call on one snapshot; nothing that
// decides is kept between verbs but reservations, which expire.
//
// Any thread may call any function. Bind may block in the PodBinder; the others only compute.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/cluster_state.h"
#include "cluster/disruption_budgets.h"
#include "scoring/engine.h"
#include "server/extender/pending_pods.h"
#include "server/extender/ports.h"

namespace berth {

struct BindRequest {
  std::string namespace_name;
  std::string pod_name;
  std::string uid;
  std::string node;
};

// The pods that would be evicted from one node.
struct NodeVictims {
  std::string node;
  std::vector<std::string> uids;
  std::int64_t pdb_violations = 0;  // as kube-scheduler counted them; passed on
  friend bool operator==(const NodeVictims&, const NodeVictims&) = default;
};

class Extender {
 public:
  // References: they outlive the Extender.
  struct Parts {
    ClusterState& state;
    Engine& engine;
    PodBinder& binder;
    DecisionSink& sink;
    const Clock& clock;
    Duration reservation_time;
    const DisruptionBudgets* budgets = nullptr;  // nullptr: there are none
  };

  explicit Extender(const Parts& parts) : parts_(parts), pending_(kMaxPendingPods) {}

  [[nodiscard]] std::shared_ptr<const Snapshot> Current() const { return parts_.state.Current(); }

  // One reason per candidate. Requires: candidates are nodes of the snapshot, each at most once.
  [[nodiscard]] std::vector<Reason> Filter(const std::shared_ptr<const Snapshot>& snapshot,
                                           const PodRequest& pod,
                                           std::span<const NodeIndex> candidates);

  // One priority 0..10 per candidate. Requires: as for Filter.
  [[nodiscard]] std::vector<std::uint8_t> Prioritize(
      const std::shared_ptr<const Snapshot>& snapshot, const PodRequest& pod,
      std::span<const NodeIndex> candidates);

  // The nodes on which the pod fits once the victims are gone: all that are given, and those that
  // our GPU accounting needs beside them (scoring/victims.h). A node where no allowed set suffices
  // is left out: nothing is evicted in vain. Given victims that are not on the node free nothing.
  [[nodiscard]] std::vector<NodeVictims> Preempt(const std::shared_ptr<const Snapshot>& snapshot,
                                                 const PodRequest& pod,
                                                 std::span<const NodeVictims> nodes);

  // Success: the pod is bound to the node (now, or already before). Idempotent by UID; a second
  // call for a pod whose bind is under way waits for that one. On any Error nothing stays reserved.
  Status Bind(const BindRequest& request) BERTH_EXCLUDES(in_flight_mutex_);

 private:
  static constexpr std::size_t kMaxPendingPods = 1 << 16;
  static constexpr int kBindAttempts = 3;  // a lost race is placed anew on the newest snapshot

  Status BindOnce(const BindRequest& request, const std::string& uid);
  Result<Placement> ReserveOn(const PodRequest& pod, const std::string& node);

  const Parts parts_;
  PendingPods pending_;
  Mutex in_flight_mutex_;
  CondVar in_flight_changed_;
  std::unordered_map<std::string, std::string> node_in_flight_
      BERTH_GUARDED_BY(in_flight_mutex_);  // by pod UID
};

}  // namespace berth
