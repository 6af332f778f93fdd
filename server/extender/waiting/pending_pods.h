// SPDX-License-Identifier: Apache-2.0
//
// PendingPods: the requests of pods that were filtered and not yet bound. The bind verb names a pod
// and no more; what it asks for must have been kept. Bounded in pods and in bytes: the one not
// touched for longest is forgotten first.
//
// With each it keeps what came of filter's answers: a node that is all that filter leaves to
// kube-scheduler, or the best of them, and to which the pod is not bound, is out for a while
// (gang_limits.h), as it is for a member of a gang.
//
// Any thread may call it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/engine/engine.h"
#include "server/extender/gangs/roster/gang_limits.h"
#include "server/extender/ports/ports.h"

namespace berth {

class PendingPods {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{32} << 20;

  static constexpr std::size_t kMostSchedulers = 64;

  explicit PendingPods(std::size_t capacity, std::size_t most_bytes = kMostBytes)
      : recent_(capacity, most_bytes) {}

  // Returns whether it was not known.
  bool Remember(const PodRequest& pod) BERTH_EXCLUDES(mutex_);
  // nullptr when it is not known.
  [[nodiscard]] std::shared_ptr<const PodRequest> Find(const std::string& uid)
      BERTH_EXCLUDES(mutex_);
  // By its name; of several the one touched last. Counts as no touch.
  [[nodiscard]] std::shared_ptr<const PodRequest> FindNamed(std::string_view namespace_name,
                                                            std::string_view name) const
      BERTH_EXCLUDES(mutex_);
  void Forget(const std::string& uid) BERTH_EXCLUDES(mutex_);
  // Filter is asked about the pod: the nodes that are out for it.
  std::set<std::string> ComesBack(const std::string& uid, Instant now) BERTH_EXCLUDES(mutex_);
  // kube-scheduler hears of that node next.
  void Told(const std::string& uid, std::string_view node, Instant now) BERTH_EXCLUDES(mutex_);
  void BindComes(const std::string& uid) BERTH_EXCLUDES(mutex_);
  // "kube-scheduler asked about m0 3 times and did not bind it to n0"; "": no node is out.
  [[nodiscard]] std::string NotBound(const std::string& uid, Instant now) const
      BERTH_EXCLUDES(mutex_);
  // The spec.schedulerName of all pods that it was ever told to remember; kMostSchedulers at most,
  // of at most 253 bytes.
  [[nodiscard]] std::set<std::string> Schedulers() const BERTH_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const BERTH_EXCLUDES(mutex_);
  // About what the pods take.
  [[nodiscard]] std::size_t bytes() const BERTH_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMostOut = 8;  // nodes of a pod

  struct Known {
    std::shared_ptr<const PodRequest> pod;
    std::string node = {};  // that was told last, so often, last then, and no bind has come
    int asks = 0;
    Instant told{};
    std::vector<gangs::NodeOut> out = {};
  };

  mutable Mutex mutex_;
  Recent<std::string, Known> recent_ BERTH_GUARDED_BY(mutex_);  // by UID
  std::set<std::string> schedulers_ BERTH_GUARDED_BY(mutex_);
};

// RecentDecisions: between which nodes the last pods could choose, so that another profile can be
// asked the same.
//
// Memory is bounded: kCapacity decisions, all about one set of nodes (a decision about another set
// pushes out those before it). Their snapshots share every node and chunk of nodes that did not
// change in between. One placement between two decisions is a node, a chunk and the list of chunks,
// beside four bytes per candidate: about 25 KB a decision and 2 MB in all for 5,000 nodes. At worst
// every node changed between any two of them: kCapacity times the nodes, about 0.5 KB each.
// Decisions about shapes of more than kMostShapeBytes are left out.
//
// Any thread may call it. Remembering copies the candidates before the lock is taken; under the
// lock pointers change places.

struct RecentDecision {
  std::shared_ptr<const Snapshot> snapshot;
  RequestShape shape;
  std::vector<NodeIndex> candidates;
  std::vector<int> pull;  // as Engine::Prioritize takes it
};

class RecentDecisions {
 public:
  static constexpr std::size_t kCapacity = 64;
  static constexpr std::size_t kMostShapeBytes = std::size_t{64} << 10;  // HeldBytes
  using List = std::vector<std::shared_ptr<const RecentDecision>>;

  void Remember(const std::shared_ptr<const Snapshot>& snapshot, const RequestShape& shape,
                std::span<const NodeIndex> candidates, std::span<const int> pull = {})
      BERTH_EXCLUDES(mutex_);

  // Oldest first.
  [[nodiscard]] List All() const BERTH_EXCLUDES(mutex_);

 private:
  using Ring = std::array<std::shared_ptr<const RecentDecision>, kCapacity>;

  mutable Mutex mutex_;
  Ring ring_ BERTH_GUARDED_BY(mutex_);
  std::size_t next_ BERTH_GUARDED_BY(mutex_) = 0;  // the oldest, overwritten next
};

struct DecisionChanges {
  std::size_t compared = 0;
  std::size_t changed = 0;  // of them: the best node is another one
  [[nodiscard]] double ratio() const {
    return compared == 0 ? 0 : static_cast<double>(changed) / static_cast<double>(compared);
  }
};

// Asks both engines for the best node of every decision: among its candidates with the highest
// priority the first by name; none when nothing fits. A function of the decisions and the profiles.
// The engines should not be in use: their tables follow the old snapshots.
DecisionChanges CompareDecisions(const RecentDecisions::List& decisions, Engine& before,
                                 Engine& after);

// Evictions: which pods were to go for whom, until they are seen gone.
//
// kube-scheduler may learn that a victim is gone before we do, and ask at once where the pod fits
// that it made room for. Nobody else may be evicted for it then: the room is as good as there.

// NodeVictims: the pods that would be evicted from one node. A value.
struct NodeVictims {
  std::string node;
  std::vector<std::string> uids;
  std::int64_t pdb_violations = 0;  // as kube-scheduler counted them; passed on
  friend bool operator==(const NodeVictims&, const NodeVictims&) = default;
};

// Any thread may call it; nothing is looked for under its lock.
class Evictions {
 public:
  using Nodes = std::vector<NodeVictims>;

  // kube-scheduler may evict the victims of one of the nodes for the pod. Requires: each has some.
  void Agree(const std::string& pod_uid, Nodes nodes) BERTH_EXCLUDES(mutex_);

  // Whether victims that were agreed on for the pod are still to be seen gone, on one of the
  // candidates. No more once those of one node are gone, which is the one that kube-scheduler
  // chose; and only so many times, since it may have evicted nobody.
  bool Awaited(const std::string& pod_uid, const Snapshot& snapshot,
               std::span<const NodeIndex> candidates) BERTH_EXCLUDES(mutex_);
  // The same, on none of the nodes that it asks about now: these would be evicted in vain. One that
  // it asks about again it has not made room on.
  bool AwaitedElsewhere(const std::string& pod_uid, const Snapshot& snapshot,
                        std::span<const NodeVictims> asked) BERTH_EXCLUDES(mutex_);

  // Those that were agreed on for the pod on that node last; none: without any UIDs.
  NodeVictims AgreedOn(const std::string& pod_uid, const std::string& node) BERTH_EXCLUDES(mutex_);

  void Forget(const std::string& pod_uid) BERTH_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMostPods = 1024;  // the oldest is forgotten first
  // UIDs of victims, of all pods together: some 10 MB.
  static constexpr std::size_t kMostUids = 100'000;
  static constexpr int kMostTimes = 8;  // a scheduling cycle asks up to twice

  struct Agreed {
    std::shared_ptr<const Nodes> nodes;
    int times = 0;  // that somebody was told to wait
  };
  // Without nodes where nothing was agreed on.
  Agreed Find(const std::string& pod_uid) BERTH_EXCLUDES(mutex_);
  // nullptr: there is nothing to wait for.
  std::shared_ptr<const Nodes> StillThere(const std::string& pod_uid, const Snapshot& snapshot)
      BERTH_EXCLUDES(mutex_);
  // What it is given; true counts as one of the times.
  bool Counted(const std::string& pod_uid, bool is_awaited) BERTH_EXCLUDES(mutex_);

  Mutex mutex_;
  Recent<std::string, Agreed> by_pod_ BERTH_GUARDED_BY(mutex_){kMostPods, kMostUids};
};

// OwedWakes: pods that kube-scheduler is to ask about again, for which the waker had no room yet.
class OwedWakes {
 public:
  static constexpr std::size_t kMost = 1 << 16;  // of more the others are not woken

  // waker: outlives it; nullptr: nobody wakes pods.
  explicit OwedWakes(PodWaker* waker) : waker_(waker) {}

  // Wakes these and those that it owes. Those without room are offered again at the next call.
  void Wake(std::span<const PodId> pods) BERTH_EXCLUDES(mutex_);

 private:
  PodWaker* const waker_;
  Mutex mutex_;
  std::map<std::string, PodId> by_uid_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
