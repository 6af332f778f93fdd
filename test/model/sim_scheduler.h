// SPDX-License-Identifier: Apache-2.0
//
// SimScheduler: the kube-scheduler of the model. One pod at a time asks for a node; its bind waits
// for an answer while the next pod is looked at. A pod that fits nowhere sleeps until something
// happens that kube-scheduler hears of: its condition changes (also because the refusal's text is
// another), a pod or node comes or goes, or a bind that it had assumed fails. Where pods of lower
// priority are in its way it has some evicted, as kube-scheduler reckons and Berth says.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/extender/extender.h"
#include "test/model/sim_api.h"
#include "test/model/sim_calls.h"
#include "test/model/sim_world.h"

namespace berth::test {

class SimScheduler {
 public:
  // References: they outlive the object.
  SimScheduler(SimWorld& world, SimCalls& calls, SimApi& api)
      : world_(world), calls_(calls), api_(api) {}

  // Looks at one of the pods that may be looked at.
  void Schedule(Extender& berth, int number_of_berth);

  void Created(const std::string& uid) { pending_[uid] = world_.clock.Now(); }
  void Deleted(const std::string& uid);
  void Woken(const std::string& uid);
  void WakeAll();
  // The pod's bind has failed.
  void Retry(const std::string& uid);
  void Restart();

  // How often a pod that is there was looked at since Reset, the most of all pods.
  [[nodiscard]] int MostLooks() const;
  void ResetLooks() { looks_.clear(); }

 private:
  [[nodiscard]] std::string NextPod();
  [[nodiscard]] std::vector<NodeIndex> Offered(const Snapshot& snapshot, const SimPod& pod);
  // GPUs for that pod: others that are nominated there keep theirs.
  [[nodiscard]] int FreeGpus(const std::string& node, const std::string& uid) const;
  void Refused(const std::string& uid, std::string text);
  // Whether an extender after Berth leaves the node.
  [[nodiscard]] bool IsLeft(const SimPod& pod, const std::string& node);
  [[nodiscard]] bool HasPort(const std::string& uid) const;
  // Asks Berth where others may be evicted for the pod, on the nodes that are not named, and evicts
  // them on one of these.
  void Preempt(Extender& berth, const std::string& uid, const std::set<std::string>& never);
  [[nodiscard]] std::vector<std::string> VictimsOn(const std::string& node,
                                                   const std::string& uid) const;
  void Answered(int number, const Status& bound);

  SimWorld& world_;
  SimCalls& calls_;
  SimApi& api_;
  std::map<std::string, Instant> pending_;  // by UID: not before
  std::set<std::string> asleep_;
  std::map<std::string, std::string> assumed_;    // [uid] node
  std::map<std::string, std::string> nominated_;  // [uid] node, where others were evicted for it
  std::map<std::string, std::string> texts_;      // [uid] why it was refused last
  std::map<std::string, int> looks_;              // [uid]
  int refusals_ = 0;
};

}  // namespace berth::test
