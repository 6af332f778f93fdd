// SPDX-License-Identifier: Apache-2.0
//
// RoomNodes: the nodes of a snapshot while a plan is thought out: pods leave them and come to them.
//
// Whether a pod fits, and on which devices, is the verdict of the engine's own filters and device
// picker on a Node that is built without the pods that left and with those that came. What a node
// would be is a function of who left and who came: not of the order in which that was thought of.
// Not thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/groups/disruption_budgets.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"
#include "scoring/profile_spec.h"
#include "scoring/reservations/reservations.h"

namespace berth {

// MoveCost: which running pods may be moved to make room for others, and what a move costs.
//
//   cost = GPUs x (work lost + grace period + kRestart) x weight, in thousandths of GPU-minutes
//   work lost   since the pod's checkpoint, else since it started, else kMostLost (victims.h)
//   weight      1 + pod-deletion-cost / 2^27 + priority / 2^25, within .1 and 10: as Karpenter
//               weighs pods (pkg/utils/disruption, EvictionCost)
//
// Pure functions.

// Why a pod is not moved.
enum class Stays : std::uint8_t {
  kNot,      // it may be moved
  kUnder,    // its bind is under way, or it is ending
  kUnknown,  // as Mobility, or it could not be placed anew; as Mobility, ...
  kNoController,
  kComesBack,
  kDoNotDisrupt,
  kNotSafeToEvict,
  kHostPath,  // ...to here
  kKeep,      // berth.dev/keep
  kYoung,
  kBudget,      // its disruption budget allows none now, or it has several
  kGang,        // a gang would have to move as a whole
  kClaims,      // it has devices by ResourceClaims
  kScheduler,   // another scheduler would place its successor
  kNotAllowed,  // MoveRules::allows
};
// "no controller would make it anew": after "NAME stays: ". Empty: it may be moved.
std::string_view TextOf(Stays stays);

struct MoveRules {
  WallTime now = {};
  // A pod that has run for less is not moved, so that nobody is moved again and again.
  std::chrono::minutes youngest = std::chrono::minutes(10);
  // Sorted by namespace. Moves come one after the other, so a budget has to allow one at a time.
  std::span<const PodDisruptionBudget> budgets = {};
  // Others are not moved; empty: all may be.
  std::function<bool(const PodRecord& pod)> allows = {};
  bool keep_model = true;  // pods with GPUs move to GPUs of the same model
  // spec.schedulerName of those that ask Berth: pods of others stay. Empty: not known.
  std::set<std::string> schedulers = {};
};

Stays WhyItStays(const PodRecord& pod, const MoveRules& rules);

inline constexpr std::chrono::minutes kRestart = std::chrono::minutes(5);
// Less than so much of a GPU counts as so much, in thousandths: a pod without GPUs costs, too.
inline constexpr std::int64_t kLeastMilli = 100;

// Above 0.
std::int64_t MoveCost(const PodRecord& pod, WallTime now);
// The work that is lost by the move: since when it is counted, in minutes.
std::chrono::minutes LostByMove(const PodRecord& pod, WallTime now);

// RoomAsk: what room is asked for, and by whose moves it may be made. Values.

// All of these pods have a place, and so many nodes have nothing but idle GPUs.
struct RoomGoal {
  std::vector<PodRequest> pods = {};  // UIDs unique, none of them on a node
  int idle_nodes = 0;
  std::string model = {};  // of the idle nodes; empty: any
  // The pods have to be on the nodes of one of these sets; empty: anywhere.
  std::vector<std::vector<NodeIndex>> within = {};
};

struct SearchLimits {
  std::int64_t steps = 100'000;       // nodes of the search tree and evaluations of nodes
  std::function<bool()> enough = {};  // asked now and then: the best plan so far will do
};

struct RoomAsk {
  std::shared_ptr<const Snapshot> snapshot;
  RoomGoal goal = {};
  MoveRules rules = {};
  NodeGuard guard = NodeGuard::kOff;
  const Reservations* reservations = nullptr;  // as in Question; they outlive the ask
  SearchLimits limits = {};
};

// HeldAmounts: how much of what nodes are short of a pod holds. Sums of it are an upper bound of
// what comes free when pods leave. Pure functions.

// Of GPUs (or places), CPU, memory, disk.
using Amounts = std::array<std::int64_t, 4>;

// At most so much of each is free when the pod has ended.
Amounts AmountsHeld(const PodRecord& pod);

// What the node lacks of each; 0: nothing, or it cannot be counted. free_gpus: the GPUs of the node
// that count as free for the shape.
Amounts AmountsMissing(const Node& node, const RequestShape& shape, GpuMask free_gpus);

inline bool CoversAll(const Amounts& held, const Amounts& missing) {
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i] < missing[i]) return false;
  }
  return true;
}

// A pod that may be moved.
struct Resident {
  std::shared_ptr<const PodRecord> pod;
  std::int64_t cost = 0;  // of its move
  Amounts held{};
};

// A pod that is to come to a node: one of the goal, or a resident of another node (or of the same:
// it changes its GPUs).
struct Arrival {
  const PodRequest* pod = nullptr;  // nullptr: nobody; the node is to be idle
  NodeIndex from = kNoNode;         // kNoNode: of the goal
  std::size_t index = 0;            // of the goal's pods, or of the node's residents
};

// Whether it counts as an idle node once no pod there has GPUs. model: empty: any.
bool CanBeIdle(const Node& node, std::string_view model);

class RoomNodes {
 public:
  // Of the residents of one node so many take part, the cheapest.
  static constexpr std::size_t kMostResidents = 64;
  using Set = std::uint64_t;  // of residents of one node

  // What a node is thought to be.
  struct State {
    Set gone = 0;
    bool closed = false;  // it is to be idle: nobody with GPUs comes
    std::vector<Arrival> arrivals;
    std::vector<Placement> placements;  // of these
    std::shared_ptr<const Node> node;
  };

  // Requires: the ask outlives it.
  explicit RoomNodes(const RoomAsk& ask);

  [[nodiscard]] std::size_t size() const { return states_.size(); }
  [[nodiscard]] const RoomAsk& ask() const { return ask_; }
  // By cost, then by UID.
  [[nodiscard]] const std::vector<Resident>& residents(NodeIndex node) const {
    return residents_[node];
  }
  // A node has more residents than take part.
  [[nodiscard]] bool is_cut() const { return is_cut_; }
  [[nodiscard]] const Node& now(NodeIndex node) const {
    return states_[node] == nullptr ? ask_.snapshot->node(node) : *states_[node]->node;
  }
  [[nodiscard]] Set gone(NodeIndex node) const {
    return states_[node] == nullptr ? 0 : states_[node]->gone;
  }
  [[nodiscard]] bool closed(NodeIndex node) const {
    return states_[node] != nullptr && states_[node]->closed;
  }
  // nullptr: as in the snapshot.
  [[nodiscard]] const std::shared_ptr<const State>& state(NodeIndex node) const {
    return states_[node];
  }
  // Nodes that are not as in the snapshot.
  [[nodiscard]] const std::set<NodeIndex>& changed() const { return changed_; }

  // Whether the pod may use the node at all, whatever is free there.
  [[nodiscard]] bool MayGo(const Arrival& arrival, NodeIndex node) const;
  // What the pod lacks on the node by amounts, each 0 or more: who leaves has to hold as much. GPUs
  // that cannot be counted (shares, MIG devices) are 0.
  [[nodiscard]] Amounts Missing(const PodRequest& pod, NodeIndex node) const;

  // The node if these left too and that one came. nullptr: it does not fit. Requires: MayGo.
  [[nodiscard]] std::shared_ptr<const State> With(NodeIndex node, Set leave,
                                                  const Arrival& arrival) const;
  // Whether the node has the model of the goal and GPUs that could all be idle.
  [[nodiscard]] bool MayBeIdle(NodeIndex node) const;
  // All residents with GPUs that are still there; nothing: others have GPUs too.
  [[nodiscard]] std::optional<Set> ToBeIdle(NodeIndex node) const;

  // Returns what was there, to be put back.
  std::shared_ptr<const State> Replace(NodeIndex node, std::shared_ptr<const State> state);

 private:
  [[nodiscard]] bool Pack(const Node& bare, State& state) const;
  [[nodiscard]] bool PackInOrder(const Node& bare, const std::vector<std::size_t>& order,
                                 State& state) const;

  const RoomAsk& ask_;
  std::vector<std::vector<Resident>> residents_;
  std::vector<std::shared_ptr<const State>> states_;
  std::set<NodeIndex> changed_;
  bool is_cut_ = false;
};

// Whether a pod that is moved away from the one node may use the other one.
bool MayMoveTo(const Node& to, const PodRequest& pod, const Node& from, const MoveRules& rules);

// Where the pod would be on that node, by the engine's filters and device picker, of shares the
// tightest; nothing: it does not fit.
std::optional<Placement> PlaceOnNode(const Node& node, const PodRequest& pod);

// SearchMoves: who moves where, so that the goal is reached at the lowest cost.
//
// Branch and bound: the next one that has no place goes to a node where it fits, or to one that
// fewest have to leave for it (move_bound.h); these are then without a place themselves. A pod
// that leaves a node for one that comes does so in a set without a needless pod: nothing is missed.
// First without chains (each that leaves finds a free place), then with chains of one, two, and any
// number of pods; each search is cut off by the best plan of those before it.
//
// In a small cluster every choice is tried. In a large one only the first few of them: then a plan
// is optimal if it costs no more than the bound. A function of its arguments, but for
// SearchLimits::enough.

struct SearchedMoves {
  struct Node {
    NodeIndex node;
    std::shared_ptr<const RoomNodes::State> state;
  };
  bool found = false;
  std::int64_t cost = 0;
  std::vector<Node> nodes;  // that change, by index
  bool complete = false;    // every choice was tried: none is cheaper, or there is none at all
};

// at_least: no plan costs less. It leaves the nodes as they were.
SearchedMoves SearchMoves(RoomNodes& nodes, std::int64_t at_least);

}  // namespace berth
