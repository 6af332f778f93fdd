// SPDX-License-Identifier: Apache-2.0
#include "scoring/room/move_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/text.h"
#include "cluster/values/alike.h"

namespace berth {
namespace {

// A resident that holds something of what is missing.
struct Holder {
  Amounts held{};
  std::int64_t price = 0;
};

// Branch and bound over few holders.
class ExactLeast {
 public:
  explicit ExactLeast(std::vector<Holder> holders) : holders_(std::move(holders)) {
    // What those from i on hold together.
    rest_.resize(holders_.size() + 1);
    for (std::size_t i = holders_.size(); i-- > 0;) {
      rest_[i] = rest_[i + 1];
      for (std::size_t k = 0; k < rest_[i].size(); ++k) rest_[i][k] += holders_[i].held[k];
    }
  }
  std::optional<std::int64_t> Find(const Amounts& missing) {
    Look(0, missing, 0);
    if (best_ == kNone) return std::nullopt;
    return best_;
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  void Look(std::size_t i, const Amounts& missing, std::int64_t price) {
    if (price >= best_ || !CoversAll(rest_[i], missing)) return;
    if (CoversAll(Amounts{}, missing)) {
      best_ = price;
      return;
    }
    Amounts less = missing;
    for (std::size_t k = 0; k < less.size(); ++k) less[k] -= holders_[i].held[k];
    Look(i + 1, less, price + holders_[i].price);
    Look(i + 1, missing, price);
  }

  const std::vector<Holder> holders_;
  std::vector<Amounts> rest_;
  std::int64_t best_ = kNone;
};

// Of each kind of amount the cheapest per piece, the last one in part.
std::optional<std::int64_t> FractionalLeast(std::vector<Holder>& holders, const Amounts& missing) {
  double most = 0;
  for (std::size_t k = 0; k < missing.size(); ++k) {
    if (missing[k] == 0) continue;
    std::erase_if(holders, [](const Holder& one) { return one.held == Amounts{}; });
    const auto per_piece = [k](const Holder& one) {
      return one.held[k] == 0 ? std::numeric_limits<double>::infinity()
                              : static_cast<double>(one.price) / static_cast<double>(one.held[k]);
    };
    std::ranges::sort(holders, {}, per_piece);
    double left = static_cast<double>(missing[k]), price = 0;
    for (const Holder& one : holders) {
      if (left <= 0 || one.held[k] == 0) break;
      const double taken = std::min(left, static_cast<double>(one.held[k]));
      price += taken * per_piece(one);
      left -= taken;
    }
    if (left > 0) return std::nullopt;
    most = std::max(most, price);
  }
  return static_cast<std::int64_t>(std::floor(most * (1 - 1e-9)));
}

// Of the best-first search over nodes: beyond it the bound is what was reached.
constexpr std::size_t kMostLooks = 200'000;

using NodeList = std::vector<NodeIndex>;

RoomBound Impossible(BoundBy by) { return {0, true, by}; }

// What one more slot costs at least, if so many were taken before.
struct Slope {
  double price;
  int slots;
};

class BoundFinder {
 public:
  BoundFinder(const RoomNodes& nodes, Prices prices) : nodes_(nodes), prices_(prices) {}

  RoomBound Find() {
    const RoomGoal& goal = nodes_.ask().goal;
    RoomBound bound;
    if (goal.idle_nodes > 0) bound = OfIdleNodes(goal.idle_nodes);
    if (bound.impossible || goal.pods.empty()) return bound;
    if (AsksForMoreThanIsFree()) return Impossible(BoundBy::kFreeGpus);
    std::vector<NodeList> places = goal.within;
    if (places.empty()) places.push_back(UpTo<NodeIndex>(nodes_.size()));
    std::optional<RoomBound> least;
    for (const NodeList& place : places) {
      const RoomBound there = OfPods(place);
      if (there.impossible && least) continue;
      if (!least || least->impossible || there.price < least->price) least = there;
    }
    if (least->impossible || least->price > bound.price || bound.by == BoundBy::kNothing) {
      return *least;
    }
    return bound;
  }

 private:
  struct Kind {
    const PodRequest* pod;
    std::size_t index;  // of the first of them
    int count;
  };

  [[nodiscard]] bool AsksForMoreThanIsFree() const {
    std::int64_t asked = 0, free = 0;
    for (const PodRequest& pod : nodes_.ask().goal.pods) {
      if (!std::holds_alternative<WholeGpus>(pod.shape.gpus)) return false;
      asked += std::int64_t{pod.shape.gpu_count()} * kMilliPerGpu;
    }
    for (NodeIndex i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_.now(i);
      if (node.spec().places.count > 0 || node.spec().mig.known()) return false;
      free += node.free_gpu_milli();
    }
    return asked > free;
  }

  [[nodiscard]] std::vector<Kind> Kinds() const {
    std::vector<Kind> kinds;
    const std::vector<PodRequest>& pods = nodes_.ask().goal.pods;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      const auto known = std::ranges::find_if(
          kinds, [&](const Kind& kind) { return SamePodKind(*kind.pod, pods[i]); });
      if (known != kinds.end()) {
        ++known->count;
      } else {
        kinds.push_back({&pods[i], i, 1});
      }
    }
    return kinds;
  }

  [[nodiscard]] RoomBound OfPods(const NodeList& place) const {
    RoomBound most;
    for (const Kind& kind : Kinds()) {
      RoomBound of_one = OfOne(kind, place);
      if (of_one.impossible) return of_one;
      if (kind.count > 1 && std::holds_alternative<WholeGpus>(kind.pod->shape.gpus)) {
        const RoomBound of_all = OfSlots(kind, place);
        if (of_all.impossible) return of_all;
        if (of_all.price > of_one.price) of_one = of_all;
      }
      if (most.by == BoundBy::kNothing || of_one.price > most.price) most = of_one;
    }
    return most;
  }

  [[nodiscard]] RoomBound OfOne(const Kind& kind, const NodeList& place) const {
    const Arrival arrival{kind.pod, kNoNode, kind.index};
    struct AtNode {
      std::int64_t price;
      NodeIndex node;
      bool exact;
      bool operator>(const AtNode& other) const {
        return std::tuple(price, !exact, node) > std::tuple(other.price, !other.exact, other.node);
      }
    };
    std::priority_queue<AtNode, std::vector<AtNode>, std::greater<>> queue;
    for (const NodeIndex node : place) {
      if (!nodes_.MayGo({kind.pod}, node)) continue;
      const auto least =
          LeastCost(nodes_.residents(node), 0, nodes_.Missing(*kind.pod, node), prices_);
      if (least) queue.push({*least, node, false});
    }
    for (std::size_t looks = 0; !queue.empty();) {
      const AtNode entry = queue.top();
      queue.pop();
      if (entry.exact || looks > kMostLooks) return {entry.price, false, BoundBy::kOneNode};
      LeavingSets sets(nodes_, entry.node, arrival, prices_);
      const auto set = sets.Next(std::numeric_limits<std::int64_t>::max());
      looks += sets.looked();
      if (set) {
        queue.push({std::max(entry.price, set->price), entry.node, true});
      } else if (sets.is_cut()) {
        queue.push({std::max(entry.price, sets.at_least()), entry.node, true});
      }
    }
    return Impossible(BoundBy::kNoPlace);
  }

  // What a node asks for one slot more, ascending: the largest convex function below what it costs.
  void AddSlopes(const Kind& kind, NodeIndex node, std::vector<Slope>& slopes) const {
    if (nodes_.now(node).spec().mig.known()) {  // where GPUs are not counted
      slopes.push_back({0, kind.count});
      return;
    }
    std::vector<std::int64_t> prices = {0};
    PodRequest several = *kind.pod;
    for (int slots = 1; slots <= kind.count; ++slots) {
      several.shape.gpus = WholeGpus{std::get<WholeGpus>(kind.pod->shape.gpus).count * slots};
      several.shape.cpu_milli = kind.pod->shape.cpu_milli * slots;
      several.shape.memory_bytes = kind.pod->shape.memory_bytes * slots;
      several.shape.ephemeral_bytes = kind.pod->shape.ephemeral_bytes * slots;
      const auto least =
          LeastCost(nodes_.residents(node), 0, nodes_.Missing(several, node), prices_);
      if (!least) break;
      prices.push_back(std::max(*least, prices.back()));
    }
    for (std::size_t at = 0; at + 1 < prices.size();) {
      std::size_t next = at + 1;
      const auto slope = [&](std::size_t to) {
        return static_cast<double>(prices[to] - prices[at]) / static_cast<double>(to - at);
      };
      for (std::size_t to = at + 2; to < prices.size(); ++to) {
        if (slope(to) <= slope(next)) next = to;
      }
      slopes.push_back({slope(next), static_cast<int>(next - at)});
      at = next;
    }
  }

  [[nodiscard]] RoomBound OfSlots(const Kind& kind, const NodeList& place) const {
    std::vector<Slope> slopes;
    for (const NodeIndex node : place) {
      if (nodes_.MayGo({kind.pod}, node)) AddSlopes(kind, node, slopes);
    }
    std::ranges::sort(slopes, {}, &Slope::price);
    double price = 0;
    int left = kind.count;
    for (const Slope& slope : slopes) {
      const int taken = std::min(left, slope.slots);
      price += slope.price * taken;
      left -= taken;
      if (left == 0) break;
    }
    if (left > 0) return Impossible(BoundBy::kNoPlace);
    return {static_cast<std::int64_t>(std::ceil(price * (1 - 1e-9))), false, BoundBy::kSlots};
  }

  [[nodiscard]] RoomBound OfIdleNodes(int wanted) const {
    std::vector<std::int64_t> prices;
    for (NodeIndex i = 0; i < nodes_.size(); ++i) {
      if (!nodes_.MayBeIdle(i)) continue;
      const auto leave = nodes_.ToBeIdle(i);
      if (!leave) continue;
      std::int64_t price = 0;
      for (std::size_t r = 0; r < nodes_.residents(i).size(); ++r) {
        if ((*leave >> r & 1) != 0) price += PriceOf(nodes_.residents(i)[r], prices_);
      }
      prices.push_back(price);
    }
    if (prices.size() < static_cast<std::size_t>(wanted)) return Impossible(BoundBy::kNoPlace);
    std::ranges::sort(prices);
    return {std::accumulate(prices.begin(), prices.begin() + wanted, std::int64_t{0}), false,
            BoundBy::kIdleNodes};
  }

  const RoomNodes& nodes_;
  const Prices prices_;
};

}  // namespace

std::optional<std::int64_t> LeastCost(std::span<const Resident> residents, RoomNodes::Set gone,
                                      const Amounts& missing, Prices prices) {
  if (missing == Amounts{}) return 0;
  std::vector<Holder> holders;
  holders.reserve(residents.size());
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if ((gone >> i & 1) != 0) continue;
    bool holds = false;
    for (std::size_t k = 0; k < missing.size(); ++k) {
      holds |= missing[k] > 0 && residents[i].held[k] > 0;
    }
    if (holds) holders.push_back({residents[i].held, PriceOf(residents[i], prices)});
  }
  if (holders.size() > kMostExact) return FractionalLeast(holders, missing);
  return ExactLeast(std::move(holders)).Find(missing);
}

LeavingSets::LeavingSets(const RoomNodes& nodes, NodeIndex node, const Arrival& arrival,
                         Prices prices)
    : nodes_(nodes),
      node_(node),
      arrival_(arrival),
      prices_(prices),
      missing_(nodes.Missing(*arrival.pod, node)) {
  const std::vector<Resident>& residents = nodes.residents(node);
  for (std::size_t i = 0; i < residents.size(); ++i) {
    if ((nodes.gone(node) >> i & 1) == 0) order_.push_back(i);
  }
  queue_.push({0, 0, 0});
}

// The sets one larger by the next one, or with that one instead of the last: each set once.
void LeavingSets::PushAfter(const Entry& entry) {
  const std::vector<Resident>& residents = nodes_.residents(node_);
  const std::size_t next = entry.set == 0 ? 0 : entry.last + 1;
  if (next >= order_.size()) return;
  const auto bit = [this](std::size_t i) { return RoomNodes::Set{1} << order_[i]; };
  const auto price = [&](std::size_t i) { return PriceOf(residents[order_[i]], prices_); };
  queue_.push({entry.price + price(next), next, entry.set | bit(next)});
  if (entry.set == 0) return;
  queue_.push({entry.price - price(entry.last) + price(next), next,
               (entry.set & ~bit(entry.last)) | bit(next)});
}

bool LeavingSets::HoldEnough(RoomNodes::Set set) const {
  Amounts held{};
  const std::vector<Resident>& residents = nodes_.residents(node_);
  for (; set != 0; set &= set - 1) {
    const Amounts& of_one = residents[static_cast<std::size_t>(std::countr_zero(set))].held;
    for (std::size_t k = 0; k < held.size(); ++k) held[k] += of_one[k];
  }
  return CoversAll(held, missing_);
}

std::optional<LeavingSet> LeavingSets::Next(std::int64_t below) {
  while (!queue_.empty() && looked_ < kMostSets) {
    const Entry entry = queue_.top();
    at_least_ = entry.price;
    if (entry.price >= below) return std::nullopt;
    queue_.pop();
    ++looked_;
    const bool has_found = std::ranges::any_of(
        found_, [&entry](RoomNodes::Set set) { return (set & entry.set) == set; });
    PushAfter(entry);
    if (has_found || !HoldEnough(entry.set)) continue;
    auto state = nodes_.With(node_, entry.set, arrival_);
    if (state == nullptr) continue;
    found_.push_back(entry.set);
    return LeavingSet{entry.set, entry.price, std::move(state)};
  }
  if (queue_.empty()) at_least_ = std::numeric_limits<std::int64_t>::max();
  return std::nullopt;
}

RoomBound BoundOfMoves(const RoomNodes& nodes, Prices prices) {
  return BoundFinder(nodes, prices).Find();
}

}  // namespace berth
