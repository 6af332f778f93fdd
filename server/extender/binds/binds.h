// SPDX-License-Identifier: Apache-2.0
//
// BindsUnderWay: carries binds out, at most one of a pod at a time, as jobs where there are jobs. A
// second bind of the pod to the same node stands in line until the first has ended; one to another
// node is refused. A bind in line is an entry here and holds no thread. One that is held (by its
// gang) is under way until Release or Answer.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "scoring/engine/engine.h"
#include "scoring/judgement.h"
#include "server/extender/ports/ports.h"

namespace berth {

struct BindRequest {
  std::string namespace_name;
  std::string pod_name;
  std::string uid;
  std::string node;
  std::optional<Instant> asked =
      {};  // when the request came; a bind that waits too long is refused
};

// What is said where too many binds wait already.
inline constexpr std::string_view kTooManyBinds = "too many binds under way";

// Called once with what became of the bind, on any thread; destroyed without a call where memory
// ends.
using BindDone = std::function<void(Status)>;

// Any thread may call any function but RunOn. Every bind that begins is answered once.
class BindsUnderWay {
 public:
  struct Bind {
    BindRequest request;  // with a UID
    BindDone done;
    // Whether the client still waits for the answer, if known; none: it does.
    std::function<bool()> waits = {};
  };
  using Entry = std::shared_ptr<const Bind>;
  // Whether a bind still has to ask the pod's gang, or has been released by it.
  enum class Turn { kAsksGang, kReleased };
  // What becomes of the bind. Nothing: it is held, and may be answered by now.
  using BindOnce = std::function<std::optional<Status>(const Entry& bind, Turn)>;

  static constexpr std::size_t kMostInLine = 10'000;  // of all pods together

  explicit BindsUnderWay(BindOnce once) : once_(std::move(once)) {}

  // Where binds are carried out; without that, on the thread that calls Begin. Before all others.
  void RunOn(Jobs jobs) { jobs_ = std::move(jobs); }

  // Carries it out, or has it stand in line. False: too many wait, and it is not answered.
  [[nodiscard]] bool Begin(const Entry& bind) BERTH_EXCLUDES(mutex_);
  // Carries out a bind that was held.
  void Release(const Entry& bind);
  // Ends a bind that was held.
  void Answer(const Entry& bind, Status bound);
  // Calls it while binds of the pod stand in line, which go on also where it throws. False: a bind
  // of the pod is under way, and nothing is called.
  bool BetweenBinds(const std::string& uid, const std::function<void()>& ask)
      BERTH_EXCLUDES(mutex_);

 private:
  struct OfPod {
    std::string node;  // "": the cluster is being asked about the pod
    std::deque<Entry> line;
  };

  // What is under way for the pod has ended. Returns the bind that stands first in line, which is
  // under way from now on; nullptr: none does.
  Entry End(const std::string& uid) BERTH_EXCLUDES(mutex_);
  // Carries the bind out, answers it, and goes on with those that stand in line behind it.
  void CarryOut(Entry bind, Turn turn = Turn::kAsksGang);
  // Has it carried out as a job; false: there is no room, or there are no jobs.
  bool Post(const Entry& bind, Turn turn = Turn::kAsksGang);
  // The bind whose turn it is, if there is one: as a job, else here.
  void GoOnWith(const Entry& next);

  const BindOnce once_;
  Jobs jobs_;
  Mutex mutex_;
  std::unordered_map<std::string, OfPod> by_uid_ BERTH_GUARDED_BY(mutex_);
  std::size_t in_line_ BERTH_GUARDED_BY(mutex_) = 0;
};

// PodCommit: one bind from the books to the cluster and back: reserve, tell the cluster, confirm;
// and what becomes of those whose outcome is unknown (doubts).
//
// Any thread; it blocks in the PodBinder. A race that is lost is tried anew on the newest snapshot.

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
