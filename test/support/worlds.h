// SPDX-License-Identifier: Apache-2.0
//
// Worlds: clusters as people have them, drawn from a seed, for tests of what Berth does by itself:
// evict, move, keep, close, hold, refuse. Same seed, same world, with every compiler.
//
//   World world(seed);                      // or World(seed, {.nodes = 3, .gpus = 4, ...})
//   ClusterState state;
//   world.Populate(state);                  // nodes, pods that run, pods that have ended
//   world.budgets();                        // of disruptions, sorted by namespace
//   world.waiting();                        // pods without a node
//   world.Snapshot();                       // without a ClusterState: no record is shortened
//   const PodRequest pod = world.APod();    // one more that waits; AGang(): several
//   world.random().Chance(30);              // the test's own draws, by the same seed
//   KubernetesList(world);                  // worlds_json.h: the same as kubectl shows it
//
// One to three pools of GPU nodes and one of CPU nodes. In percent:
//   pools    70 have a taint that their pods tolerate, 35 RDMA or EFA devices, of these 60 huge
//            pages; 30 are short of CPU; of two pools one has another model, of other size
//   nodes    in one of three zones; 6 joining (start-up taint, nothing runs there yet), 8 cordoned,
//            6 not ready, 8 take no more pods, 6 have a GPU out of order
//   on each  two pods of DaemonSets; a static pod on 30; a pod without GPUs on 25
//   apps     pods of one controller: 35 ReplicaSet, 35 Job, 20 StatefulSet, 10 none; 30 in a gang
//            of two or three; 45 with a node selector (zone, machine or pool), 25 with a required
//            node affinity, by model or zone; 15 with a word against moves (karpenter, cluster
//            autoscaler, hostPath, berth.dev/keep); 8 of another scheduler, on GPUs that nobody
//            knows; priorities 0, 50, 100, 1000; 40 with a budget that allows none, one or two
//   pods     4 of those that run are ending; 10 more have ended and hold nothing
//   waiting  replicas of apps, larger pods, pods that may go nowhere (no toleration, the wrong
//            zone), and gangs
// Not drawn: MIG, places (shared GPUs), ResourceClaims, links: random_world.h has the odd nodes.
//
// Autoscaler: takes away nodes that stand idle and brings others for pods that wait.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "bench/replay/time/sim_clock.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/state/cluster_event.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "test/support/random_world.h"

namespace berth::test {

// What clusters have and clean test worlds lack. Every test of a feature that acts meets all of
// them (test/arch/acting_features.txt).
enum class WorldProperty : std::uint8_t {
  kTaintedPools,
  kStartUpTaints,
  kSelectors,
  kAffinity,
  kZones,
  kTwoModels,
  kOtherDevices,
  kHugePages,
  kDaemonSets,
  kStaticPods,
  kControllers,
  kBudgets,
  kGangs,
  kPriorities,
  kShortOfCpu,
  kFullOfPods,
  kCordoned,
  kUnready,
  kForeignPods,
  kEndingPods,
  kEndedPods,
  kUnmovable,
  kAutoscaler,
};
struct PropertyWord {
  WorldProperty property;
  std::string_view name;
};
inline constexpr std::array kWorldProperties = {
    PropertyWord{WorldProperty::kTaintedPools, "tainted-pools"},
    PropertyWord{WorldProperty::kStartUpTaints, "start-up-taints"},
    PropertyWord{WorldProperty::kSelectors, "selectors"},
    PropertyWord{WorldProperty::kAffinity, "affinity"},
    PropertyWord{WorldProperty::kZones, "zones"},
    PropertyWord{WorldProperty::kTwoModels, "two-models"},
    PropertyWord{WorldProperty::kOtherDevices, "other-devices"},
    PropertyWord{WorldProperty::kHugePages, "huge-pages"},
    PropertyWord{WorldProperty::kDaemonSets, "daemon-sets"},
    PropertyWord{WorldProperty::kStaticPods, "static-pods"},
    PropertyWord{WorldProperty::kControllers, "controllers"},
    PropertyWord{WorldProperty::kBudgets, "budgets"},
    PropertyWord{WorldProperty::kGangs, "gangs"},
    PropertyWord{WorldProperty::kPriorities, "priorities"},
    PropertyWord{WorldProperty::kShortOfCpu, "short-of-cpu"},
    PropertyWord{WorldProperty::kFullOfPods, "full-of-pods"},
    PropertyWord{WorldProperty::kCordoned, "cordoned"},
    PropertyWord{WorldProperty::kUnready, "unready"},
    PropertyWord{WorldProperty::kForeignPods, "foreign-pods"},
    PropertyWord{WorldProperty::kEndingPods, "ending-pods"},
    PropertyWord{WorldProperty::kEndedPods, "ended-pods"},
    PropertyWord{WorldProperty::kUnmovable, "unmovable"},
    PropertyWord{WorldProperty::kAutoscaler, "autoscaler"},
};

struct WorldSize {
  int nodes = 10;         // with GPUs
  int cpu_nodes = 1;      // without
  int gpus = 8;           // of a node, at most: 2, 4 or 8
  int held_percent = 75;  // of the GPUs, about
  int most_held = 1000;   // pods with GPUs that run
  int waiting = 5;        // pods, about
  bool shares = false;    // a third of the apps asks for shares of GPUs
  bool gangs = true;
};

class World {
 public:
  // Now, in every world: SimClock's.
  static WallTime Now() { return SimClock().Wall(); }
  // As Kubernetes has them for its own.
  static constexpr int kCritical = 2'000'001'000;

  struct RunningPod {
    PodRequest pod;
    Placement placement;
    PodLife life;
    bool ended = false;  // Succeeded or Failed: it is there, and holds nothing
  };

  explicit World(std::uint64_t seed, const WorldSize& size = {});

  [[nodiscard]] const std::vector<NodeSpec>& nodes() const { return nodes_; }  // by name
  [[nodiscard]] const std::vector<RunningPod>& pods() const { return pods_; }
  [[nodiscard]] const std::vector<PodRequest>& waiting() const { return waiting_; }
  [[nodiscard]] const std::vector<PodDisruptionBudget>& budgets() const { return budgets_; }
  [[nodiscard]] RandomWorld& random() { return random_; }

  // All of it, in an order in which an API server may tell it.
  [[nodiscard]] std::vector<ClusterEvent> Events() const;
  void Populate(ClusterState& state) const;
  // Those that wait are shown to Berth, made at that time; kube-scheduler has found no node.
  void PutWaiting(WaitingPods& waiting, WallTime created) const;
  void PutBudgets(DisruptionBudgets& budgets) const;
  [[nodiscard]] std::shared_ptr<const berth::Snapshot> Snapshot() const;
  // The node as in that snapshot.
  [[nodiscard]] Node NodeOf(const NodeSpec& spec) const;

  // One more pod that waits, with GPUs, of no gang / the pods of one more gang, two or three. They
  // are not among waiting().
  PodRequest APod();
  std::vector<PodRequest> AGang();
  // What a controller makes in its place when the pod is evicted, or gone.
  PodRequest Successor(const PodRequest& pod);

  // A new node of the pool of such a node, and what of DaemonSets comes up with it.
  [[nodiscard]] NodeSpec NewNodeLike(const NodeSpec& spec, const std::string& name) const;
  [[nodiscard]] std::vector<PodBound> DaemonPodsOn(const NodeSpec& spec) const;

 private:
  struct Pool {
    std::string name, model, machine;
    std::int64_t memory_mib = 0;
    int gpus = 0, cpu = 0, number = 0;
    bool tainted = false;
    OtherResources others;
  };
  struct App {
    std::string namespace_name, name, kind;  // kind: of its controller; empty: none
    std::size_t pool = 0;
    int gpus = 0, milli = 0, priority = 0, gang = 0;  // gang: pods of one; 0: it is in none
    bool foreign = false, completes = false;
    PodRequest pod;  // what all of them ask for
  };

  void DrawPools(const WorldSize& size);
  void DrawNodes(const WorldSize& size);
  App DrawApp(std::size_t pool, const WorldSize& size);
  void Constrain(App& app);
  PodRequest PodOf(const App& app);
  void GiveDaemons(std::vector<Node>& nodes);
  void Fill(std::vector<Node>& nodes, const WorldSize& size);
  // Returns whether all of them have a place; else none of them is there.
  bool Place(std::vector<Node>& nodes, const App& app);
  void PlaceBeside(std::vector<Node>& nodes);
  void Run(Node& node, const PodRequest& pod, const Placement& placement, PodLife life);
  std::optional<Placement> AnyPlace(const Node& node, const PodRequest& pod);
  void End(const std::vector<Node>& nodes);
  void MarkNodes(const std::vector<Node>& nodes);
  void DrawBudgets();
  void DrawWaiting(const WorldSize& size);
  [[nodiscard]] const Pool& PoolOf(const NodeSpec& spec) const;

  RandomWorld random_;
  WorldSize size_;
  std::vector<Pool> pools_;
  std::vector<App> apps_;
  std::vector<NodeSpec> nodes_;
  std::set<std::string> joining_;
  std::vector<RunningPod> pods_;
  std::vector<PodRequest> waiting_;
  std::vector<PodDisruptionBudget> budgets_;
  int serial_ = 0;
};

// What the world has, found out from its nodes and pods. kAutoscaler is none of a world's own.
std::set<WorldProperty> PropertiesOf(const World& world);

// A node autoscaler beside Berth, as Cluster Autoscaler and Karpenter are: it sees what the API
// server shows and knows nothing of Berth's plans. A node is taken when nothing but what belongs to
// nodes was bound there for `idle`. For a pod that waits for `patience` and would fit an empty node
// of a pool, a node comes: at first with a start-up taint and without GPUs, then with its
// GPUs, then without the taint.
class Autoscaler {
 public:
  struct Rules {
    Duration idle = std::chrono::minutes(10);
    Duration patience = std::chrono::seconds(30);
    Duration stage = std::chrono::minutes(1);  // from one of the three to the next
    std::size_t most_nodes = 16;               // with GPUs
  };
  explicit Autoscaler(World& world) : Autoscaler(world, Rules()) {}
  Autoscaler(World& world, const Rules& rules) : world_(world), rules_(rules) {}

  // One look, some time after the last one. Returns what happens.
  std::vector<ClusterEvent> Look(const Snapshot& cluster, std::span<const PodRequest> waiting,
                                 Instant now);
  void Step(ClusterState& state, std::span<const PodRequest> waiting, Instant now);

  // Nodes that say that they are not to be taken; empty: none does.
  std::function<bool(const std::string& node)> stays;
  [[nodiscard]] int taken() const { return taken_; }
  [[nodiscard]] int brought() const { return brought_; }

 private:
  struct Coming {
    NodeSpec whole;
    Instant since;
    int stage = 0;
  };
  void TakeIdle(const Snapshot& cluster, Instant now, std::vector<ClusterEvent>& events);
  void BringOne(const Snapshot& cluster, std::span<const PodRequest> waiting, Instant now,
                std::vector<ClusterEvent>& events);
  void GoOn(Instant now, std::vector<ClusterEvent>& events);

  World& world_;
  const Rules rules_;
  std::map<std::string, Instant> idle_since_, waits_since_;
  std::vector<Coming> coming_;
  int taken_ = 0, brought_ = 0;
};

}  // namespace berth::test
