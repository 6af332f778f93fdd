// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/room_nodes.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "cluster/values/alike.h"
#include "scoring/room/move_bound.h"

namespace berth {
namespace {

constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

// A cluster of so many nodes at most is searched with every choice.
constexpr std::size_t kSmallCluster = 48;
// So many choices are tried of a pod in a larger one: of nodes where it fits, of sets that leave.
constexpr int kWidestFree = 3, kWidestLeaving = 24;
constexpr int kAnyChain = 1 << 20;
// Pods that are placed at the same time: each takes a part of the stack.
constexpr std::size_t kDeepest = 512;
// One scan of the nodes costs as much as so many steps, per node.
constexpr std::int64_t kNodesPerStep = 64;

// The sets of all nodes that may leave for one pod, the cheapest first.
class Choices {
 public:
  Choices(const RoomNodes& nodes, const Arrival& arrival, const std::vector<NodeIndex>& candidates)
      : nodes_(nodes), arrival_(arrival) {
    for (const NodeIndex node : candidates) {
      const auto least = LeastCost(nodes.residents(node), nodes.gone(node),
                                   nodes.Missing(*arrival.pod, node), Prices::kCosts);
      if (least) queue_.push({std::max<std::int64_t>(*least, 1), node, nullptr, {}});
    }
  }

  // The next one below the limit that is not the empty set. steps: counts what was looked at.
  std::optional<std::pair<NodeIndex, LeavingSet>> Next(std::int64_t below, std::int64_t& steps) {
    while (!queue_.empty() && queue_.top().price < below) {
      Entry entry = queue_.top();
      queue_.pop();
      if (entry.set.state != nullptr) {
        Push(entry.node, entry.sets, below, steps);
        return std::pair(entry.node, std::move(entry.set));
      }
      if (entry.sets == nullptr) {
        entry.sets = std::make_shared<LeavingSets>(nodes_, entry.node, arrival_, Prices::kCosts);
      }
      Push(entry.node, entry.sets, below, steps);
    }
    return std::nullopt;
  }
  [[nodiscard]] bool is_cut() const { return is_cut_; }

 private:
  struct Entry {
    std::int64_t price;
    NodeIndex node;
    std::shared_ptr<LeavingSets> sets;
    LeavingSet set;
    friend bool operator>(const Entry& a, const Entry& b) {
      return std::tuple(a.price, a.node, a.set.leave) > std::tuple(b.price, b.node, b.set.leave);
    }
  };

  void Push(NodeIndex node, const std::shared_ptr<LeavingSets>& sets, std::int64_t below,
            std::int64_t& steps) {
    const std::size_t before = sets->looked();
    auto next = sets->Next(below);
    while (next && next->leave == 0) next = sets->Next(below);
    steps += static_cast<std::int64_t>(sets->looked() - before) / 4 + 1;
    is_cut_ |= sets->is_cut();
    if (!next) return;
    const std::int64_t price = next->price;
    queue_.push({price, node, sets, *std::move(next)});
  }

  const RoomNodes& nodes_;
  const Arrival arrival_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  bool is_cut_ = false;
};

class Searcher {
 public:
  Searcher(RoomNodes& nodes, std::int64_t at_least)
      : nodes_(nodes), at_least_(at_least), small_(nodes.size() <= kSmallCluster) {}

  SearchedMoves Search() {
    std::vector<std::vector<NodeIndex>> places = nodes_.ask().goal.within;
    if (places.empty()) places.push_back(UpTo<NodeIndex>(nodes_.size()));
    const std::int64_t all = nodes_.ask().limits.steps;
    bool complete = false;
    for (const int chain : {0, 1, 2, kAnyChain}) {
      most_steps_ = chain == 0   ? all / 2
                    : chain == 1 ? all * 3 / 4
                    : chain == 2 ? all * 7 / 8
                                 : all;
      is_cut_ = nodes_.is_cut();
      for (const std::vector<NodeIndex>& place : places) {
        place_ = &place;
        Solve(Goals(), 0, chain);
      }
      complete = !is_cut_ && !stopped_;
      stopped_ = is_enough_;
      if (complete || is_enough_ || Best() <= at_least_) break;
    }
    best_.complete = complete;
    return std::move(best_);
  }

 private:
  using Pending = std::vector<Arrival>;

  [[nodiscard]] std::int64_t Best() const { return best_.found ? best_.cost : below_; }

  // Idle nodes first, then the largest pods.
  [[nodiscard]] Pending Goals() const {
    const RoomGoal& goal = nodes_.ask().goal;
    Pending goals(static_cast<std::size_t>(goal.idle_nodes));
    for (std::size_t i = 0; i < goal.pods.size(); ++i) goals.push_back({&goal.pods[i], kNoNode, i});
    SortBySize(goals);
    return goals;
  }

  static void SortBySize(Pending& pending) {
    std::ranges::stable_sort(pending, {}, [](const Arrival& one) {
      const PodRequest* const pod = one.pod;
      return pod == nullptr ? std::tuple<bool, bool, int, int, std::int64_t>()
                            : std::tuple<bool, bool, int, int, std::int64_t>(
                                  true, one.from != kNoNode, -pod->shape.gpu_count(),
                                  -pod->shape.milli_per_gpu(), -pod->shape.cpu_milli);
    });
  }

  bool Stops() {
    if (!stopped_ && ++steps_ > most_steps_) stopped_ = true;
    const auto& enough = nodes_.ask().limits.enough;
    if (!stopped_ && enough && steps_ >= next_question_) {
      next_question_ = steps_ + 16;
      is_enough_ = stopped_ = enough();
    }
    return stopped_ || Best() <= at_least_;
  }

  void Keep(std::int64_t cost) {
    best_.found = true;
    best_.cost = cost;
    best_.nodes.clear();
    for (const NodeIndex node : nodes_.changed()) best_.nodes.push_back({node, nodes_.state(node)});
  }

  // Puts the first of those that are pending somewhere, then the others.
  void Solve(Pending pending, std::int64_t cost, int chain) {
    if (cost >= Best() || Stops()) return;
    if (pending.empty()) return Keep(cost);
    if (depth_ == kDeepest) {
      is_cut_ = true;
      return;
    }
    const Arrival item = pending.front();
    pending.erase(pending.begin());
    if (item.pod == nullptr) return SolveIdle(pending, cost, chain);
    const std::vector<NodeIndex> candidates = CandidatesOf(item);
    if (SolveFree(item, candidates, pending, cost, chain)) return;
    if (item.from != kNoNode && chain == 0) {
      is_cut_ = true;
      return;
    }
    SolveLeaving(item, candidates, pending, cost, item.from == kNoNode ? chain : chain - 1);
  }

  // The nodes that it may use. Of pods of the goal that are alike each goes to the node of the one
  // before it, or to a later one: else each set of nodes would be tried in every order.
  [[nodiscard]] std::vector<NodeIndex> CandidatesOf(const Arrival& item) {
    std::vector<NodeIndex> candidates;
    steps_ += static_cast<std::int64_t>(nodes_.size()) / kNodesPerStep;
    const NodeIndex first = item.from == kNoNode && small_ ? FirstFor(item) : 0;
    if (item.from == kNoNode) {
      std::ranges::copy_if(*place_, std::back_inserter(candidates), [&](NodeIndex node) {
        return node >= first && nodes_.MayGo(item, node);
      });
      return candidates;
    }
    for (NodeIndex node = 0; node < nodes_.size(); ++node) {
      if (nodes_.MayGo(item, node)) candidates.push_back(node);
    }
    return candidates;
  }

  // In a small cluster: where the pod of the goal that is like it and comes before it went.
  [[nodiscard]] NodeIndex FirstFor(const Arrival& item) const {
    const std::vector<PodRequest>& pods = nodes_.ask().goal.pods;
    NodeIndex last = 0;
    for (const NodeIndex node : nodes_.changed()) {
      for (const Arrival& other : nodes_.state(node)->arrivals) {
        const bool alike = other.from == kNoNode && SamePodKind(pods[other.index], *item.pod);
        if (alike) last = node;
      }
    }
    return last;
  }

  // Where it fits as it is, the fullest nodes first. True: nothing that costs more need be tried.
  bool SolveFree(const Arrival& item, const std::vector<NodeIndex>& candidates,
                 const Pending& pending, std::int64_t cost, int chain) {
    std::vector<std::pair<std::int64_t, NodeIndex>> order;
    for (const NodeIndex node : candidates) {
      if (nodes_.Missing(*item.pod, node) != Amounts{}) continue;
      order.emplace_back(nodes_.now(node).free_gpu_milli(), node);
    }
    std::ranges::sort(order);
    int tried = 0;
    for (const auto& entry : order) {
      const NodeIndex node = entry.second;
      auto state = nodes_.With(node, 0, item);
      ++steps_;
      if (state == nullptr) continue;
      if (!small_ && ++tried > kWidestFree) {
        is_cut_ = true;
        return true;
      }
      Try(node, std::move(state), pending, cost, chain);
      if (cost >= Best() || Stops()) return true;
    }
    return false;
  }

  void SolveLeaving(const Arrival& item, const std::vector<NodeIndex>& candidates,
                    const Pending& pending, std::int64_t cost, int chain) {
    Choices choices(nodes_, item, candidates);
    steps_ += static_cast<std::int64_t>(candidates.size()) / 8;
    for (int tried = 0; !Stops(); ++tried) {
      const std::int64_t below = Best() == kNone ? kNone : Best() - cost;
      auto choice = choices.Next(below, steps_);
      if (!choice) break;
      if (!small_ && tried == kWidestLeaving) {
        is_cut_ = true;
        break;
      }
      auto& [node, set] = *choice;
      Pending rest = pending;
      AddLeaving(node, set.leave, rest);
      Try(node, std::move(set.state), rest, cost + set.price, chain);
    }
    is_cut_ |= choices.is_cut();
  }

  void AddLeaving(NodeIndex node, RoomNodes::Set leave, Pending& pending) const {
    for (; leave != 0; leave &= leave - 1) {
      const auto index = static_cast<std::size_t>(std::countr_zero(leave));
      pending.push_back({&nodes_.residents(node)[index].pod->pod, node, index});
    }
    SortBySize(pending);
  }

  void SolveIdle(const Pending& pending, std::int64_t cost, int chain) {
    struct Clearing {
      std::int64_t price;
      NodeIndex node;
      RoomNodes::Set leave;
    };
    std::vector<Clearing> order;
    // Which node is the first of several makes no difference: they come in this order.
    std::pair<std::int64_t, NodeIndex> after{-1, 0};
    steps_ += static_cast<std::int64_t>(nodes_.size()) / kNodesPerStep;
    for (NodeIndex node = 0; node < nodes_.size(); ++node) {
      if (!nodes_.MayBeIdle(node)) continue;
      if (nodes_.closed(node)) {
        after = std::max(after, std::pair(PriceOfAll(node, nodes_.gone(node)), node));
        continue;
      }
      const auto leave = nodes_.ToBeIdle(node);
      if (leave) order.push_back({PriceOfAll(node, *leave), node, *leave});
    }
    std::ranges::sort(order, {},
                      [](const Clearing& one) { return std::pair(one.price, one.node); });
    int tried = 0;
    for (const Clearing& one : order) {
      if (std::pair(one.price, one.node) <= after) continue;
      if (cost + one.price >= Best() || Stops()) return;
      if (!small_ && ++tried > kWidestLeaving) {
        is_cut_ = true;
        return;
      }
      Pending rest = pending;
      AddLeaving(one.node, one.leave, rest);
      // A pod that leaves an idle node was not put there by another's coming: goals come first.
      Try(one.node, nodes_.With(one.node, one.leave, {}), rest, cost + one.price, chain);
    }
  }

  [[nodiscard]] std::int64_t PriceOfAll(NodeIndex node, RoomNodes::Set set) const {
    std::int64_t price = 0;
    for (; set != 0; set &= set - 1) {
      price += nodes_.residents(node)[static_cast<std::size_t>(std::countr_zero(set))].cost;
    }
    return price;
  }

  void Try(NodeIndex node, std::shared_ptr<const RoomNodes::State> state, const Pending& pending,
           std::int64_t cost, int chain) {
    auto before = nodes_.Replace(node, std::move(state));
    ++depth_;
    Solve(pending, cost, chain);
    --depth_;
    nodes_.Replace(node, std::move(before));
  }

  RoomNodes& nodes_;
  const std::int64_t at_least_;
  const bool small_;
  std::int64_t below_ = kNone;  // plans that cost as much do not count
  const std::vector<NodeIndex>* place_ = nullptr;
  std::int64_t steps_ = 0, most_steps_ = 0, next_question_ = 0;
  std::size_t depth_ = 0;
  bool stopped_ = false;    // this search is out of steps, or
  bool is_enough_ = false;  // all of them are
  bool is_cut_ = false;     // something was not tried
  SearchedMoves best_;
};

}  // namespace

SearchedMoves SearchMoves(RoomNodes& nodes, std::int64_t at_least) {
  return Searcher(nodes, at_least).Search();
}

}  // namespace berth
