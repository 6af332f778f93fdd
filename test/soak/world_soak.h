// SPDX-License-Identifier: Apache-2.0
//
// WorldSoak: everything that Berth does by itself at once, on a cluster as people have them
// (test/support/worlds.h): it keeps room for those who wait, holds gangs, agrees to evictions,
// evicts to make room, closes nodes whose kubelets refuse pods. Around it are a kube-scheduler with
// its own filters and its preemption, controllers, kubelets and a node autoscaler, in one thread,
// on a virtual clock, with every choice drawn from one seed.
//
// What may never be:
//   vain eviction    a pod for which others were evicted is not placed within its time, although it
//                    is there, the node is, and nothing of higher priority came to it; of a gang,
//                    although no node went and nothing of higher priority came to any
//   homeless         a pod that Berth evicted to make room has a successor without a node, although
//                    nothing else happened to the node that was held for it
//   closed by one    a node takes no pods with GPUs since the kubelet refused pods of one owner
//   asleep           all pods of a gang wait, and for minutes there has been room for all of them
//                    that is kept for nobody else
//   kept in vain     GPUs are kept on a node for a pod that the node has too little of something
//                    else for, as kube-scheduler counts it (other_limits.h), also once those that
//                    Berth let it evict are gone
//   twice            a GPU has two pods
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/replay/time/sim_clock.h"
#include "server/extender/extender.h"
#include "server/extender/waiting/pending_pods.h"
#include "server/kube/watch/kubelet_refusals.h"
#include "server/planners/moves/room_maker.h"
#include "test/support/wire_fixture.h"
#include "test/support/worlds.h"

namespace berth::test {

// What is looked for; one that is off is counted, and fails nothing.
struct SoakChecks {
  bool vain_evictions = true;  // for pods of no gang
  bool vain_for_gangs = true;
  bool moves = true;  // homeless, and evictions by Berth for a pod that has its place
  bool closed_by_one = true;
  bool asleep = true;
  bool kept_in_vain = true;
};

class WorldSoak {
 public:
  WorldSoak(std::uint64_t seed, const SoakChecks& checks);
  ~WorldSoak();

  // Some seconds and all that happens in them; false: something that must never happen did.
  bool Step();
  [[nodiscard]] const std::string& failure() const { return failure_; }
  // What happened last, a line each.
  [[nodiscard]] std::string History() const;
  // How often what happened, to see that a run was not idle; what was found begins with "FOUND ".
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  struct Pod {
    PodRequest pod;
    Instant ask_at{};
    Instant since{};
    std::string nominated = {};
    int refusals = 0;
    bool binding = false;
  };
  // Somebody was evicted for a pod, or for the pods of a gang.
  struct Debt {
    std::vector<std::string> uids;  // for whom
    std::string node;
    std::vector<std::string> victims;
    int priority = 0;
    bool of_gang = false;
    Instant since{};
    std::optional<Instant> free_since = {};  // the victims are gone
    bool excused = false;
  };
  struct Homeless {
    std::string from, node;  // where its place was held
    Instant since{};
    bool excused = false;
  };
  class Binder;
  class Evictor;
  class Waker;
  class News;

  void Arrive();
  void EndSome();
  void EndLeaving();
  void Scale();
  void AskAll();
  void Ask(Pod& pod);
  void ShowUnschedulable(const Pod& pod, const std::string& said);
  void Refuse(Pod& pod);
  void Preempt(Pod& pod, const Extender::Moment& now, const std::set<std::string>& never);
  [[nodiscard]] Node WithNominated(const Node& node, const Pod& pod) const;
  // kube-scheduler's own filters.
  [[nodiscard]] bool MayOffer(const Node& node, const Pod& pod) const;
  void Bound(const std::string& uid, const std::string& node);
  void Shown(const PodRequest& pod, const std::string& node);
  void Evict(const std::string& uid);
  void Gone(const std::string& uid, bool has_successor);
  void Excuse(const std::string& node, int priority, const std::string& uid);
  void CheckDebts();
  [[nodiscard]] bool HasMoreImportantPlanned(const Debt& debt) const;
  void CheckHomeless();
  void CheckClosed();
  void CheckAsleep();
  void CheckKept();
  void CheckTwice();
  [[nodiscard]] bool HasRoom(const std::vector<const Pod*>& members) const;
  // Why Berth believes that the pod is not there.
  [[nodiscard]] std::string WhyNotOn(const std::string& node, const Pod& pod) const;

  void Put(const PodRequest& pod);
  void Note(const std::string& what);
  void Find(bool fails, const std::string& kind, const std::string& what);
  void Apply(const ClusterEvent& event);

  const SoakChecks checks_;
  World world_;
  RandomWorld random_;
  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  DisruptionBudgets budgets_;
  NodeDomains domains_{{}};
  DeviceRooms rooms_;
  GangTable gangs_{{state_, waiting_, domains_, nullptr, nullptr, &rooms_}};
  MoveHolds holds_{state_};
  std::unique_ptr<Binder> binder_;
  std::unique_ptr<Evictor> evictor_;
  std::unique_ptr<Waker> waker_;
  std::unique_ptr<News> news_;
  std::optional<Extender> extender_;
  std::optional<RoomMaker> maker_;
  std::optional<kube::KubeletRefusals> refusals_;
  Autoscaler scaler_;

  std::map<std::string, Pod> pending_;       // by UID
  std::map<std::string, Instant> leaving_;   // until when
  std::map<std::string, std::string> lost_;  // by UID: why the kubelet did not admit it
  std::map<std::string, std::set<std::string>> refused_by_;  // by node: owners of refused pods
  std::vector<Debt> debts_;
  std::map<std::string, Homeless> homeless_;       // by UID of the successor
  std::map<std::string, std::string> held_for_;    // by UID of who is evicted: where its place is
  std::map<std::string, Instant> has_room_since_;  // by gang
  // Of pods that have or had a node, by UID.
  std::map<std::string, std::shared_ptr<const NodeConstraints>> constraints_;
  // By UID of a pod: whom Berth let kube-scheduler evict for it last, on any node, and when.
  std::map<std::string, std::pair<Instant, std::set<std::string>>> agreed_;
  std::set<std::string> kept_in_vain_;  // found: node and pod
  std::set<std::string> bad_owners_;    // whose pods kubelets refuse, for something that is no GPU
  std::uint64_t refused_ = 0;           // pods, by kubelets
  std::uint64_t steps_ = 0;
  std::map<std::string, std::uint64_t> counts_;
  std::deque<std::string> history_;
  std::string failure_;
};

}  // namespace berth::test
