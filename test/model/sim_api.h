// SPDX-License-Identifier: Apache-2.0
//
// SimApi: the API server of the model: nodes, pods and gangs as they are, the watch by which Berth
// hears of them later, and the Bindings that it asks for. What may never be is looked for in these
// books, with every Binding.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cluster/state/cluster_state.h"
#include "cluster/state/waiting_pods.h"
#include "server/extender/ports/ports.h"
#include "test/model/sim_calls.h"
#include "test/model/sim_world.h"
#include "test/support/builders.h"

namespace berth::test {

// What is left of a gang that ran may go alone after so long (gang_limits.h).
constexpr Duration kRemnantAfter = std::chrono::seconds(60);
constexpr int kLowest = std::numeric_limits<int>::min();
constexpr int kModelNodes = 6, kModelGpus = 4, kModelGangs = 5;

struct SimPod {
  APod pod{""};
  std::string gang;  // "" = none
  int gpus = 1;
  Instant created{};
  std::string node;  // "" = not bound
  std::vector<int> devices;
  int priority = 0;
  bool heard = false;  // by the watch
  bool unschedulable = false;
  bool leaving = false;  // it was evicted, and ends soon
  Instant ends{};
};

struct SimGang {
  // Whether the pod of that name, which ends with its rank, is in the first half.
  [[nodiscard]] bool IsInPart(const std::string& pod) const {
    return parted && 2 * (pod.back() - '0') < total;
  }
  int minimum = 2, total = 2;
  int gpus = 1;  // of each pod
  int priority = 0;
  bool one_rack = false;      // all of it in one
  bool parted = false;        // the first half of its pods in one
  bool one_per_node = false;  // its pods have a port that one pod of a node can have
  std::string dropped = {};   // another extender takes this node out for its pods; "" = none
  bool ran = false;           // a pod of it was bound
  bool ran_before = false;    // it was created anew
  // The names of its pods that have ended with success since it was created, and are not made anew.
  std::set<std::string> ended;
  int dying = 0;            // pods of it are gone, and Berth has not heard of it
  std::uint64_t heard = 0;  // in which step it last heard of one
};

class SimApi final : public GangHistory {
 public:
  // References: they outlive the object.
  SimApi(SimWorld& world, SimCalls& calls);

  // What Berth asks. leads: whether it is the one that may write.
  Status Bind(const BindOrder& order, bool leads);
  Result<PodTruth> Find(const PodId& id);
  Result<std::vector<GangPast>> In(const std::string& namespace_name) override;

  // What Berth has not heard of yet, in order.
  bool Deliver(ClusterState& state, WaitingPods& waiting);  // false: it has heard of everything
  // Everything as it is, to a Berth that begins.
  void ListTo(ClusterState& state, WaitingPods& waiting);

  // Its UID. The priority is that of the gang, if it is in one.
  std::string Create(const std::string& name, const std::string& gang, int gpus, int priority);
  void Delete(const std::string& uid);
  // It has ended with success: the watch shows it no more, and the books still have it.
  void Succeed(const std::string& uid);
  // kube-scheduler has found no node for it.
  void ShowUnschedulable(const std::string& uid);
  // The pod ends in some seconds, for the other one.
  void Evict(const std::string& uid, const std::string& preemptor);
  // Pods that were evicted and whose time has come.
  [[nodiscard]] std::vector<std::string> Ended() const;
  // A node that is there goes, with its pods; one that is not comes. The pods that went.
  std::vector<std::string> Toggle(const std::string& node);
  // Pods that were bound to a node after it had gone: they are deleted soon.
  [[nodiscard]] std::vector<std::string> Stranded() const;
  // All nodes are there again.
  void Restore();

  [[nodiscard]] const std::map<std::string, SimPod>& pods() const { return pods_; }  // by UID
  [[nodiscard]] const std::set<std::string>& nodes() const { return nodes_; }
  [[nodiscard]] std::map<std::string, SimGang>& gangs() { return gangs_; }  // that ever were
  [[nodiscard]] std::vector<std::string> MembersOf(const std::string& gang) const;
  // GPUs of the node that no pod has, or none of at least that priority.
  [[nodiscard]] int FreeGpus(const std::string& node, int priority = kLowest) const;
  // Whether a pod on the node has the port.
  [[nodiscard]] bool IsPortTaken(const std::string& node) const;

  // At the end, when nothing has disturbed for long: gangs that are not whole and could be; extras:
  // and members beyond the minimum.
  void CheckGangs(bool extras);

 private:
  using Told = std::function<void(ClusterState&, WaitingPods&)>;

  void Take(SimPod& pod, const Placement& placement);
  void CheckOnce(const SimPod& pod, const Placement& placement);
  void CheckBegin(const SimPod& pod);
  void CheckRack(const SimPod& pod);
  void CheckGang(const std::string& name, const SimGang& gang, bool extras);
  void CheckIsOfUse(const SimPod& preemptor);
  // How many more pods of the gang there is room for, beside those of at least that priority;
  // what Berth does not judge is left out, or not.
  [[nodiscard]] int RoomFor(const std::string& name, const SimGang& gang, int priority,
                            bool all = true) const;

  void Apply(ClusterState& state, const ClusterEvent& event);
  void Tell(Told what) { watch_.push_back(std::move(what)); }
  [[nodiscard]] Told Shown(const SimPod& pod, bool with_gang = true);
  [[nodiscard]] Told ShownNode(const std::string& node);

  SimWorld& world_;
  SimCalls& calls_;
  std::set<std::string> nodes_;
  std::map<std::string, SimPod> pods_;
  std::map<std::string, SimGang> gangs_;
  std::deque<Told> watch_;
  Instant changed_{};  // when there was less room, or one of a gang less
  int created_ = 0;
};

// The rack of the model's node: two nodes have one.
std::string RackOf(const std::string& node);

}  // namespace berth::test
