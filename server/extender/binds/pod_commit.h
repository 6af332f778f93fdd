// SPDX-License-Identifier: Apache-2.0
//
// PodCommit: one bind from the books to the cluster and back: reserve, tell the cluster, confirm;
// and what becomes of those whose outcome is unknown (doubts).
//
// Any thread; it blocks in the PodBinder. A race that is lost is tried anew on the newest snapshot.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "scoring/engine/engine.h"
#include "scoring/judgement.h"
#include "server/extender/ports/ports.h"

namespace berth {

class PodCommit {
 public:
  // Where the pod's group is, where domains matter to the pod.
  using GroupOf = std::function<GroupPlaces(const std::shared_ptr<const Snapshot>& snapshot,
                                            const PodRequest& pod)>;
  // References: they outlive it.
  struct Parts {
    ClusterState& state;
    PodBinder& binder;
    const Clock& clock;
    bool behind_scheduler = false;  // Extender::Parts
    GroupOf group_of;
  };
  explicit PodCommit(Parts parts) : parts_(std::move(parts)) {}

  // What is to be bound, and where it is bound already.
  struct Known {
    std::shared_ptr<const PodRequest> pod;
    std::optional<Placement> bound = {};
  };
  // remembered: as it was filtered; nullptr: that is forgotten. Asks the cluster where only that
  // knows. Error: as PodBinder::Find.
  Result<Known> Know(const PodId& id, std::shared_ptr<const PodRequest> remembered);

  struct Granted {
    Placement placement;
    std::optional<double> link_quality = {};  // device_fit.h
    // For which it was found, if it was reserved just now.
    std::shared_ptr<const Node> node = nullptr;
  };
  struct How {
    Engine& engine;
    Duration reservation_time;  // how long a bind may take
    bool to_scheduler = false;  // the pod is kube-scheduler's alone: nothing is reserved
    std::string_view decision;
  };
  // Error: kConflict: the pod does not fit there, or is bound elsewhere; kNotFound: no such node;
  // kInvalid: what the pod asks for is refused; others as PodBinder::Bind.
  Result<Granted> Commit(const How& how, Known known, const std::string& node);

  // Asks the cluster about the pod, and books the answer if it is about a doubt that still exists.
  // A pod that the books do not hold is left to the watch: it may have been deleted since the
  // answer. Error: as PodBinder::Find.
  Result<PodTruth> Settle(const PodId& id);

 private:
  // Whether the pod's GPUs there are kube-scheduler's to give (admission.h).
  [[nodiscard]] bool IsGivenByClaim(const PodRequest& pod, const std::string& node) const;
  // For a pod that is kube-scheduler's alone, or whose GPUs are.
  Result<Granted> BindUnbooked(const How& how, const PodRequest& pod, const std::string& node);
  Result<Granted> ReserveOn(const How& how, const PodRequest& pod, const std::string& node);
  // Requires: granted by ReserveOn.
  Status TellReserved(const How& how, const PodRequest& pod, const Granted& granted);
  [[nodiscard]] Result<Granted> AsBoundBefore(const PodId& id, const std::string& node,
                                              Error error) const;
  // kFits unless the newest state has the pod's group in another domain than its node's.
  [[nodiscard]] Reason DomainAllows(const PodRequest& pod, const std::string& node) const;

  const Parts parts_;
};

}  // namespace berth
