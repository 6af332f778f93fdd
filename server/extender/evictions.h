// SPDX-License-Identifier: Apache-2.0
//
// Evictions: which pods were to go for whom, until they are seen gone.
//
// kube-scheduler may learn that a victim is gone before we do, and ask at once where the pod fits
// that it made room for. Nobody else may be evicted for it then: the room is as good as there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/recent.h"
#include "cluster/state/snapshot.h"

namespace berth {

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

}  // namespace berth
