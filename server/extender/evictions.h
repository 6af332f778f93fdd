// SPDX-License-Identifier: Apache-2.0
//
// Evictions: which pods were to go for whom, until they are seen gone.
//
// kube-scheduler may learn that a victim is gone before we do, and ask at once where the pod fits
// that it made room for. "Nowhere" would make it evict others: the answer must be "not now".
#pragma once

#include <deque>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "cluster/snapshot.h"
#include "server/extender/node_victims.h"

namespace berth {

// Any thread may call it.
class Evictions {
 public:
  // kube-scheduler may evict the victims of one of the nodes for the pod.
  void Agree(const std::string& pod_uid, std::vector<NodeVictims> nodes) BERTH_EXCLUDES(mutex_);

  // Whether a candidate has victims that were agreed on for the pod. Says so a few times and then
  // no more: they may be those of a node that kube-scheduler did not choose.
  bool Awaited(const std::string& pod_uid, const Snapshot& snapshot,
               std::span<const NodeIndex> candidates) BERTH_EXCLUDES(mutex_);

  void Forget(const std::string& pod_uid) BERTH_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kMostPods = 1024;  // the oldest is forgotten first
  static constexpr int kMostTimes = 8;            // a scheduling cycle asks up to twice

  struct Agreed {
    std::vector<NodeVictims> nodes;
    int times = 0;
  };
  Mutex mutex_;
  std::unordered_map<std::string, Agreed> by_pod_ BERTH_GUARDED_BY(mutex_);
  std::deque<std::string> order_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth
