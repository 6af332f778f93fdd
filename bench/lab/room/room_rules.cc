// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/room/room_rules.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "base/text.h"
#include "scoring/registry.h"
#include "scoring/room/make_room.h"
#include "scoring/room/room_nodes.h"
#include "server/planners/moves/room_maker.h"

namespace berth::replay {
namespace {

// Of one search; some hundredths of a second on a thousand nodes.
constexpr std::int64_t kSteps = 20'000;

bool HasRun(const PodRecord& pod, WallTime now, std::chrono::minutes time) {
  return pod.pod.checkpointed && now - *pod.pod.checkpointed >= time;
}

class BerthRule final : public RoomRule {
 public:
  explicit BerthRule(const RoomRuleOptions& options) : options_(options) {}

  [[nodiscard]] Duration period() const override { return RoomMaker::kBetweenPlans; }

  std::optional<RoomChange> Look(const RoomView& view) override {
    if (view.now < busy_until_ || view.now == looked_) return std::nullopt;
    looked_ = view.now;
    const std::optional<std::size_t> n = InNeed(view);
    if (!n) return std::nullopt;
    const PodRequest pod = view.pod(*n);
    const RoomPlan plan = Plan(view, pod);
    if (plan.found && plan.moves.empty()) return std::nullopt;  // its turn in the queue comes
    const bool is_good =
        plan.found && WhyNotByItself(plan, *view.cluster, options_.most_moves).empty();
    if (!is_good) {
      later_.insert_or_assign(pod.shape, view.now + RoomMaker::kAfterNone);
      return std::nullopt;
    }
    const auto moves = std::ssize(plan.moves);
    const double allowed = options_.moves_per_hundred * static_cast<double>(view.placed) / 100;
    if (static_cast<double>(view.moved + moves) > allowed) return std::nullopt;
    busy_until_ = view.now + kMoveTakes * moves;
    RoomChange change{.lets_in = n, .place = plan.places.front().placement};
    for (const PodMove& move : plan.moves) change.moves.push_back({move.pod->pod, move.place});
    return change;
  }

 private:
  // The oldest of the highest priority, but for those like one that no plan was found for.
  [[nodiscard]] std::optional<std::size_t> InNeed(const RoomView& view) const {
    std::optional<std::size_t> first;
    int highest = 0;
    for (const std::size_t n : view.waiting) {
      if (view.now - view.arrived(n) < std::chrono::minutes(options_.after_minutes)) break;
      const PodRequest pod = view.pod(n);
      const auto later = later_.find(pod.shape);
      if (later != later_.end() && view.now < later->second) continue;
      if (first && pod.priority <= highest) continue;
      first = n;
      highest = pod.priority;
    }
    return first;
  }

  static RoomPlan Plan(const RoomView& view, const PodRequest& pod) {
    RoomAsk ask;
    ask.snapshot = view.cluster;
    ask.goal.pods = {pod};
    ask.rules.now = WallOf(view.now);
    ask.rules.allows = [&](const PodRecord& one) {
      return one.pod.priority <= pod.priority && HasRun(one, ask.rules.now, ask.rules.youngest);
    };
    ask.reservations = view.reservations;
    ask.limits.steps = kSteps;
    return MakeRoom(ask);
  }

  const RoomRuleOptions options_;
  std::map<RequestShape, Instant> later_;
  Instant busy_until_{}, looked_{Duration(-1)};
};

struct Running {
  std::shared_ptr<const PodRecord> pod;
  NodeIndex node;
};

// Where it fits, of the nodes the fullest; those of `as_if` are as they are there.
using AsIf = std::map<NodeIndex, Node>;
std::optional<std::pair<NodeIndex, Placement>> FullestFor(const Snapshot& cluster,
                                                          const AsIf& as_if,
                                                          const PodRequest& pod) {
  std::optional<std::pair<std::int64_t, NodeIndex>> best;
  const auto at = [&](NodeIndex i) -> const Node& {
    const auto other = as_if.find(i);
    return other == as_if.end() ? cluster.node(i) : other->second;
  };
  for (NodeIndex i = 0; i < cluster.size(); ++i) {
    const Node& node = at(i);
    const std::pair<std::int64_t, NodeIndex> rank{node.free_gpu_milli(), i};
    if ((!best || rank < *best) && PlaceOnNode(node, pod)) best = rank;
  }
  if (!best) return std::nullopt;
  return std::pair(best->second, *PlaceOnNode(at(best->second), pod));
}

class KaiRule final : public RoomRule {
 public:
  explicit KaiRule(std::uint64_t seed) : random_(seed) {}

  [[nodiscard]] Duration period() const override { return std::chrono::seconds(1); }

  std::optional<RoomChange> Look(const RoomView& view) override {
    if (view.now != cycle_) {
      cycle_ = view.now;
      failed_.clear();
    }
    if (view.waiting.empty()) return std::nullopt;
    FindRunning(*view.cluster);
    for (const std::size_t n : view.waiting) {
      const PodRequest pod = view.pod(n);
      if (std::ranges::any_of(failed_, [&](const RequestShape& shape) {
            return AsksForNoLess(pod.shape, shape);
          })) {
        continue;
      }
      if (auto change = Consolidate(view, pod)) {
        change->lets_in = n;
        return change;
      }
      failed_.push_back(pod.shape);
    }
    return std::nullopt;
  }

 private:
  static bool AsksForNoLess(const RequestShape& pod, const RequestShape& other) {
    return pod.gpu_count() * pod.milli_per_gpu() >= other.gpu_count() * other.milli_per_gpu() &&
           pod.cpu_milli >= other.cpu_milli && pod.memory_bytes >= other.memory_bytes &&
           (other.models.empty() || pod.models == other.models);
  }

  void FindRunning(const Snapshot& cluster) {
    running_.clear();
    for (NodeIndex i = 0; i < cluster.size(); ++i) {
      for (const auto& pod : cluster.node(i).pods()) {
        if (pod->pod.shape.wants_gpu()) running_.push_back({pod, i});
      }
    }
  }

  // The newest first.
  std::vector<Running> DrawVictims() {
    const std::size_t count = std::min(kMostVictims, running_.size());
    for (std::size_t i = 0; i < count; ++i) {
      std::swap(running_[i], running_[i + random_.Below(running_.size() - i)]);
    }
    std::vector<Running> drawn(running_.begin(),
                               running_.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::sort(drawn, [](const Running& a, const Running& b) {
      return std::tuple(a.pod->pod.priority, b.pod->pod.checkpointed, a.pod->pod.id.uid) <
             std::tuple(b.pod->pod.priority, a.pod->pod.checkpointed, b.pod->pod.id.uid);
    });
    return drawn;
  }

  std::optional<RoomChange> Consolidate(const RoomView& view, const PodRequest& pod) {
    const std::vector<Running> victims = DrawVictims();
    for (std::size_t last = 0; last < victims.size(); ++last) {
      const NodeIndex node = victims[last].node;
      std::vector<std::shared_ptr<const PodRecord>> leave;
      for (std::size_t i = 0; i <= last; ++i) {
        if (victims[i].node == node) leave.push_back(victims[i].pod);
      }
      if (auto change = TryWithout(*view.cluster, node, leave, pod)) return change;
    }
    return std::nullopt;
  }

  static std::optional<RoomChange> TryWithout(
      const Snapshot& cluster, NodeIndex index,
      const std::vector<std::shared_ptr<const PodRecord>>& leave, const PodRequest& pod) {
    Node node = cluster.node(index).Without([&](const PodRecord& one) {
      return std::ranges::any_of(leave, [&one](const auto& gone) { return gone.get() == &one; });
    });
    auto place = PlaceOnNode(node, pod);
    if (!place) return std::nullopt;
    RoomChange change{.place = *place};
    Put(node, pod, *place);
    AsIf as_if;
    as_if.emplace(index, std::move(node));
    for (const auto& one : leave) {
      auto there = FullestFor(cluster, as_if, one->pod);
      if (!there) return std::nullopt;
      const auto at = as_if.try_emplace(there->first, cluster.node(there->first)).first;
      Put(at->second, one->pod, there->second);
      change.moves.push_back({one->pod, std::move(there->second)});
    }
    return change;
  }

  static void Put(Node& node, const PodRequest& pod, const Placement& place) {
    node.Put(std::make_shared<const PodRecord>(PodRecord{pod, place, PodState::kBound, {}}));
  }

  Random random_;
  Instant cycle_{Duration(-1)};
  std::vector<RequestShape> failed_;  // in this cycle
  std::vector<Running> running_;
};

class DeschedulerRule final : public RoomRule {
 public:
  [[nodiscard]] Duration period() const override { return std::chrono::minutes(5); }

  std::optional<RoomChange> Look(const RoomView& view) override {
    if (view.now == looked_) return std::nullopt;
    looked_ = view.now;
    std::vector<std::pair<double, NodeIndex>> order;
    for (NodeIndex i = 0; i < view.cluster->size(); ++i) {
      const Node& node = view.cluster->node(i);
      const auto all = static_cast<double>(std::int64_t{node.healthy_gpus()} * kMilliPerGpu);
      const double used = all - static_cast<double>(node.free_gpu_milli());
      if (used > 0) order.emplace_back(used / all, i);
    }
    std::ranges::sort(order);
    for (const auto& [part, node] : order) {
      RoomChange change{.evicted = PodsOf(*view.cluster, node)};
      if (!change.evicted.empty()) return change;
    }
    return std::nullopt;
  }

 private:
  // Those with GPUs; none: one of them fits nowhere else.
  static std::vector<std::string> PodsOf(const Snapshot& cluster, NodeIndex index) {
    std::vector<std::string> uids;
    for (const auto& pod : cluster.node(index).pods()) {
      if (!pod->pod.shape.wants_gpu()) continue;
      const bool fits = [&] {
        for (NodeIndex i = 0; i < cluster.size(); ++i) {
          if (i != index && PlaceOnNode(cluster.node(i), pod->pod)) return true;
        }
        return false;
      }();
      if (!fits) return {};
      uids.push_back(pod->pod.id.uid);
    }
    return uids;
  }

  Instant looked_{Duration(-1)};
};

}  // namespace

const std::vector<std::string>& RoomRuleNames() {
  static const std::vector<std::string> kNames = {"berth", "kai", "descheduler"};
  return kNames;
}

Result<std::unique_ptr<RoomRule>> MakeRoomRule(std::string_view name,
                                               const RoomRuleOptions& options) {
  if (name == "berth") return std::make_unique<BerthRule>(options);
  if (name == "kai") return std::make_unique<KaiRule>(options.seed);
  if (name == "descheduler") return std::make_unique<DeschedulerRule>();
  return Invalid("rule: want one of none, fluid, " + Join(RoomRuleNames(), ", ", std::identity()) +
                 ", got \"" + std::string(name) + "\"");
}

}  // namespace berth::replay
