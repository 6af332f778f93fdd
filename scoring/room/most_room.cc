// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/most_room.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "cluster/values/alike.h"
#include "scoring/room/move_bound.h"
#include "scoring/room/room_nodes.h"

namespace berth {
namespace {

// So many sets of goals are tried at most.
constexpr std::int64_t kMostTries = 4096;
constexpr int kNever = std::numeric_limits<int>::max();

std::int64_t MilliOf(const PodRequest& pod) {
  return std::int64_t{pod.shape.gpu_count()} * pod.shape.milli_per_gpu();
}

std::int64_t MilliOf(const RoomGoal& goal) {
  return std::accumulate(
      goal.pods.begin(), goal.pods.end(), std::int64_t{0},
      [](std::int64_t sum, const PodRequest& pod) { return sum + MilliOf(pod); });
}

bool AreAlike(const RoomGoal& a, const RoomGoal& b) {
  return a.within == b.within &&
         std::ranges::equal(a.pods, b.pods, [](const PodRequest& one, const PodRequest& other) {
           return one.priority == other.priority && SamePodKind(one, other);
         });
}

// Goals that are alike: any of them may stand for any other.
struct Kind {
  std::vector<std::size_t> goals;  // in their order
  std::size_t pods = 0;            // of one of them
  std::size_t in = 0;              // so many are let in
  int needs = 0;                   // one more needs so many moves at least
};

class MostFinder {
 public:
  explicit MostFinder(const MostWish& wish)
      : wish_(wish), most_(*wish.ask.most_moves), now_(wish.ask.snapshot) {
    for (std::size_t i = 0; i < wish.goals.size(); ++i) AddToKinds(i);
    // Per pod the fewest GPUs first.
    std::ranges::stable_sort(kinds_, {}, [&](const Kind& kind) {
      return MilliOf(wish.goals[kind.goals.front()]) / static_cast<std::int64_t>(kind.pods);
    });
  }

  MostRoom Find() {
    plan_.after = now_;
    LetInOneByOne();
    found_.at_most = AtMost();
    if (found_.pods < found_.at_most) TryAllSets();
    return Told();
  }

 private:
  void AddToKinds(std::size_t goal) {
    const RoomGoal& asked = wish_.goals[goal];
    if (asked.pods.empty()) return;
    const auto known = std::ranges::find_if(
        kinds_, [&](const Kind& kind) { return AreAlike(wish_.goals[kind.goals.front()], asked); });
    if (known != kinds_.end()) {
      known->goals.push_back(goal);
    } else {
      kinds_.push_back({.goals = {goal}, .pods = asked.pods.size()});
    }
  }

  // nothing: there is no time.
  std::optional<RoomPlan> Plan(const std::shared_ptr<const Snapshot>& snapshot, RoomGoal goal,
                               int most_moves) {
    RoomAsk ask = wish_.ask;
    if (wish_.limits) {
      const auto limits = wish_.limits();
      if (!limits) return std::nullopt;
      ask.limits = *limits;
    }
    ask.snapshot = snapshot;
    ask.goal = std::move(goal);
    ask.most_moves = most_moves;
    return MakeRoom(ask);
  }

  // A move may make room for others, too: then all of them are looked at again.
  void LetInOneByOne() {
    for (int allowed = 0; allowed <= Left();) {
      const std::size_t moves = plan_.moves.size();
      if (!LetInWith(allowed)) return;
      allowed = plan_.moves.size() > moves ? 0 : std::max(allowed + 1, LeastNeed());
    }
  }
  // Those that need so many moves each, until somebody moves. False: there is no time.
  bool LetInWith(int allowed) {
    const std::size_t moves = plan_.moves.size();
    for (Kind& kind : kinds_) {
      while (kind.in < kind.goals.size() && kind.needs <= allowed) {
        if (!LetIn(kind, allowed)) return false;
        if (plan_.moves.size() > moves) return true;
      }
    }
    return true;
  }
  [[nodiscard]] int Left() const { return most_ - static_cast<int>(std::ssize(plan_.moves)); }
  [[nodiscard]] int LeastNeed() const {
    int least = kNever;
    for (const Kind& kind : kinds_) {
      if (kind.in < kind.goals.size()) least = std::min(least, kind.needs);
    }
    return least == kNever ? most_ + 1 : least;
  }

  // One more of that kind, if it can be. False: there is no time.
  bool LetIn(Kind& kind, int allowed) {
    const std::size_t goal = kind.goals[kind.in];
    const auto plan = Plan(now_, wish_.goals[goal], allowed);
    if (!plan) return false;
    if (plan_.staying.empty() && plan_.moves.empty()) plan_.staying = plan->staying;
    if (!plan->found) {
      const auto least = static_cast<int>(plan->least_moves.price);
      kind.needs = plan->least_cost.impossible ? kNever : std::max(allowed + 1, least);
      return true;
    }
    ++kind.in;
    found_.pods += kind.pods;
    now_ = plan->after;
    Append(*plan, goal);
    for (Kind& other : kinds_) {
      if (!plan->moves.empty() && other.needs != kNever) other.needs = 0;
    }
    return true;
  }

  void Append(const RoomPlan& more, std::size_t goal) {
    const std::size_t before = plan_.moves.size();
    for (PodMove move : more.moves) {
      if (move.waits_for != kNoMove) move.waits_for += before;
      plan_.moves.push_back(std::move(move));
    }
    for (const RoomPlan::Place& place : more.places) places_.push_back({goal, place});
    plan_.cost += more.cost;
    plan_.after = more.after;
  }

  // Nobody knows yet whether so many can be let in together.
  [[nodiscard]] std::size_t AtMost() {
    std::size_t by_kind = 0;
    for (const Kind& kind : kinds_) by_kind += kind.pods * MostOf(kind);
    return std::max(found_.pods, std::min(by_kind, MostByGpus()));
  }

  // Earmarks are kept for one pod and not for another that is like it: nothing is proven then.
  [[nodiscard]] bool HasEarmarks() const {
    return wish_.ask.reservations != nullptr && !wish_.ask.reservations->empty();
  }

  // By bisection: more than a number are too many, then that many and more.
  [[nodiscard]] std::size_t MostOf(const Kind& kind) {
    std::size_t low = kind.in, high = kind.goals.size();
    while (low < high && !HasEarmarks()) {
      if (wish_.limits && !wish_.limits()) break;
      const std::size_t middle = low + (high - low + 1) / 2;
      RoomAsk ask = wish_.ask;
      ask.goal.within = wish_.goals[kind.goals.front()].within;
      for (std::size_t i = 0; i < middle; ++i) AddPods(kind.goals[i], ask.goal);
      const RoomNodes nodes(ask);
      const RoomBound bound = BoundOfMoves(nodes, Prices::kMoves);
      if (bound.impossible || bound.price > most_) {
        high = middle - 1;
      } else {
        low = middle;
      }
    }
    return high;
  }
  void AddPods(std::size_t goal, RoomGoal& to) const {
    const std::vector<PodRequest>& pods = wish_.goals[goal].pods;
    to.pods.insert(to.pods.end(), pods.begin(), pods.end());
  }

  [[nodiscard]] std::size_t MostByGpus() const {
    std::vector<std::int64_t> asked;
    for (const RoomGoal& goal : wish_.goals) {
      for (const PodRequest& pod : goal.pods) asked.push_back(MilliOf(pod));
    }
    std::int64_t free = 0;
    const Snapshot& snapshot = *wish_.ask.snapshot;
    for (NodeIndex i = 0; i < snapshot.size(); ++i) {
      const Node& node = snapshot.node(i);
      if (node.spec().places.count > 0 || node.spec().mig.known()) return asked.size();
      free += node.free_gpu_milli();
    }
    std::ranges::sort(asked);
    std::size_t most = 0;
    while (most < asked.size() && asked[most] <= free) free -= asked[most++];
    return most;
  }

  // Every number of each kind, the largest first, with one plan for all of them.
  void TryAllSets() {
    std::int64_t sets = 1;
    for (const Kind& kind : kinds_) {
      if (!wish_.goals[kind.goals.front()].within.empty()) return;
      sets *= std::ssize(kind.goals) + 1;
      if (sets > kMostTries) return;
    }
    if (HasEarmarks()) return;
    rest_.assign(kinds_.size() + 1, 0);
    for (std::size_t i = kinds_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1] + kinds_[i].pods * kinds_[i].goals.size();
    }
    tried_all_ = true;
    Try(0, {}, 0);
    if (tried_all_) found_.at_most = found_.pods;
  }

  // goals: of the kinds before this one, which a plan lets in.
  void Try(std::size_t kind, const std::vector<std::size_t>& goals, std::size_t pods) {
    if (kind == kinds_.size() || pods + rest_[kind] <= found_.pods) return;
    const Kind& of = kinds_[kind];
    for (std::size_t count = of.goals.size() + 1; count-- > 0 && tried_all_;) {
      const std::size_t now = pods + count * of.pods;
      if (now + rest_[kind + 1] <= found_.pods) return;
      std::vector<std::size_t> more = goals;
      more.insert(more.end(), of.goals.begin(),
                  of.goals.begin() + static_cast<std::ptrdiff_t>(count));
      if (count > 0 && !TryThese(more, now)) continue;
      Try(kind + 1, more, now);
    }
  }

  // Whether one plan lets all of these in. The best plan so far is kept.
  bool TryThese(const std::vector<std::size_t>& goals, std::size_t pods) {
    RoomGoal all;
    for (const std::size_t goal : goals) AddPods(goal, all);
    auto plan = Plan(wish_.ask.snapshot, std::move(all), most_);
    if (!plan || (!plan->found && !plan->optimal)) {
      tried_all_ = false;
      return false;
    }
    if (!plan->found || pods <= found_.pods) return plan->found;
    found_.pods = pods;
    places_.clear();
    std::size_t next = 0;
    for (const std::size_t goal : goals) {
      for (std::size_t pod = 0; pod < wish_.goals[goal].pods.size(); ++pod) {
        RoomPlan::Place place = plan->places[next++];
        place.pod = pod;
        places_.push_back({goal, std::move(place)});
      }
    }
    plan_ = *std::move(plan);
    return true;
  }

  MostRoom Told() {
    std::ranges::stable_sort(places_, {},
                             [](const Placed& one) { return std::pair(one.goal, one.place.pod); });
    plan_.places.clear();
    for (Placed& one : places_) {
      if (one.place.pod == 0) found_.in.push_back(one.goal);
      one.place.pod = plan_.places.size();
      plan_.places.push_back(std::move(one.place));
    }
    plan_.found = found_.pods > 0;
    plan_.optimal = found_.pods == found_.at_most;
    plan_.least_cost = plan_.least_moves = {};
    found_.plan = std::move(plan_);
    return std::move(found_);
  }

  struct Placed {
    std::size_t goal;
    RoomPlan::Place place;
  };

  const MostWish& wish_;
  const int most_;
  std::vector<Kind> kinds_;
  std::shared_ptr<const Snapshot> now_;
  std::vector<Placed> places_;
  RoomPlan plan_;
  MostRoom found_;
  std::vector<std::size_t> rest_;  // pods of that kind and those that follow
  bool tried_all_ = false;
};

}  // namespace

MostRoom FindMostRoom(const MostWish& wish) { return MostFinder(wish).Find(); }

}  // namespace berth
