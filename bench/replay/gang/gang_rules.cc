// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/gang/gang_rules.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "bench/rules/kube_choice.h"
#include "cluster/state/snapshot.h"
#include "scoring/devices/device_picker.h"
#include "scoring/gangs/gang_plan.h"
#include "scoring/groups/group_domains.h"
#include "scoring/registry.h"
#include "scoring/waste/request_mix.h"
#include "topology/domains/domain_tree.h"

namespace berth::replay {
namespace {

using Snapshots = std::shared_ptr<const Snapshot>;

class Berth final : public GangRule {
 public:
  static Result<std::unique_ptr<GangRule>> Create(const Snapshot& fleet, bool packs_domains) {
    auto rule = std::make_unique<Berth>();
    rule->packs_domains_ = packs_domains;
    rule->mix_ = std::make_shared<LearnedMix>(LearningParameters{});
    BERTH_TRY(rule->engine_,
              Engine::Create({*FindBuiltinProfile("expected-waste"), {}, rule->mix_}, fleet));
    return std::unique_ptr<GangRule>(std::move(rule));
  }

  void Hear(const GangJob& job, const Snapshots& snapshot) override {
    for (const GangRole& role : job.roles) {
      for (int i = 0; i < role.count; ++i) mix_->Observe(role.shape);
    }
    engine_->Follow(snapshot);
  }

  GangAttempt Try(const Snapshots& snapshot, const DomainTree& tree, const GangJob& job,
                  const std::vector<PodRequest>& pods, const std::vector<char>&, int) override {
    if (pods.size() == 1 && !packs_domains_) return TrySingle(snapshot, pods.front());
    GangAsk ask;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      ask.members.push_back({pods[i], static_cast<int>(i)});
    }
    ask.minimum = static_cast<std::int64_t>(pods.size());
    ask.domain = job.domain;
    GangAttempt attempt;
    auto plan = PlanGang({snapshot, tree, *engine_, room_}, ask);
    if (!plan) return attempt;
    for (GangPlan::Place& place : plan->places) {
      attempt.places.push_back({place.member, std::move(place.placement)});
    }
    return attempt;
  }

 private:
  GangAttempt TrySingle(const Snapshots& snapshot, const PodRequest& pod) {
    GangAttempt attempt;
    const std::vector<NodeIndex> best = engine_->Best(snapshot, pod.shape);
    if (best.empty()) return attempt;
    if (auto placement = engine_->PlaceOn(snapshot, pod.shape, best.front())) {
      attempt.places.push_back({0, *std::move(placement)});
    }
    return attempt;
  }

  std::shared_ptr<LearnedMix> mix_;
  std::shared_ptr<Engine> engine_;
  GangRoom room_;
  bool packs_domains_ = false;
};

// Where one pod goes among nodes, the highest value; ties to the first by name. The devices are the
// tightest that fit.
template <class Value>
std::optional<Placement> BestNode(const Snapshot& snapshot, const PodRequest& pod,
                                  const std::vector<char>& allowed, Value value) {
  std::optional<NodeIndex> best;
  std::int64_t most = 0;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    if (allowed[i] == 0 || FirstObjection(snapshot.node(i), pod.shape) != Reason::kFits) continue;
    const std::int64_t here = value(i);
    if (best && here <= most) continue;
    best = i;
    most = here;
  }
  if (!best) return std::nullopt;
  const Node& node = snapshot.node(*best);
  return PlacementFor(node, pod.shape,
                      DeviceChoices(node, pod.shape, DeviceRule::kTightest).front());
}

std::vector<char> NodesOf(const DomainTree& tree, std::optional<TopologyDomain> domain,
                          std::size_t level) {
  std::vector<char> nodes(tree.nodes(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i] = !domain || tree.DomainOf(i, level) == *domain ? 1 : 0;
  }
  return nodes;
}

class Greedy final : public GangRule {
 public:
  GangAttempt Try(const Snapshots& snapshot, const DomainTree& tree, const GangJob& job,
                  const std::vector<PodRequest>& pods, const std::vector<char>& has_node,
                  int attempts) override {
    Transaction transaction(snapshot);
    GangAttempt attempt;
    attempt.back_off =
        std::min(std::chrono::seconds(1) * (1 << std::min(attempts, 4)), std::chrono::seconds(10));
    std::optional<NodeIndex> first = NodeOfHeld(*snapshot, pods, has_node);
    std::size_t placed = static_cast<std::size_t>(std::ranges::count(has_node, 1));
    for (std::size_t i = 0; i < pods.size(); ++i) {
      if (has_node[i] != 0) continue;
      const auto placement = PlaceOne(*transaction.now(), tree, job, pods[i], first);
      if (!placement || !transaction.Put(pods[i], *placement)) continue;
      if (!first) first = snapshot->names().Find(placement->node);
      attempt.places.push_back({i, *placement});
      ++placed;
    }
    const std::size_t missing = pods.size() - placed;
    if (missing * 10 <= pods.size()) attempt.hold = std::chrono::seconds(60);
    return attempt;
  }

 private:
  static std::optional<NodeIndex> NodeOfHeld(const Snapshot& snapshot,
                                             const std::vector<PodRequest>& pods,
                                             const std::vector<char>& has_node) {
    const auto held = std::ranges::find(has_node, 1);
    if (held == has_node.end()) return std::nullopt;
    const auto& uid = pods[static_cast<std::size_t>(held - has_node.begin())].id.uid;
    for (NodeIndex i = 0; i < snapshot.size(); ++i) {
      if (snapshot.node(i).FindPod(uid) != nullptr) return i;
    }
    return std::nullopt;
  }

  // Affinity to the first member: required for a required level, before all else for a preferred.
  static std::optional<Placement> PlaceOne(const Snapshot& snapshot, const DomainTree& tree,
                                           const GangJob& job, const PodRequest& pod,
                                           std::optional<NodeIndex> first) {
    const auto level = job.domain.required ? job.domain.required : job.domain.preferred;
    const auto near = [&](NodeIndex i) {
      return first && level && tree.DomainOf(i, *level) == tree.DomainOf(*first, *level);
    };
    std::vector<char> allowed(snapshot.size(), 1);
    if (first && job.domain.required) {
      for (NodeIndex i = 0; i < snapshot.size(); ++i) allowed[i] = near(i) ? 1 : 0;
    }
    return BestNode(snapshot, pod, allowed, [&](NodeIndex i) {
      return KubeChoice::OwnScore(snapshot.node(i), pod.shape) + (near(i) ? 1000 : 0);
    });
  }
};

class VolcanoLike final : public GangRule {
 public:
  GangAttempt Try(const Snapshots& snapshot, const DomainTree& tree, const GangJob& job,
                  const std::vector<PodRequest>& pods, const std::vector<char>&, int) override {
    const auto level = job.domain.required ? job.domain.required : job.domain.preferred;
    if (level && pods.size() > 1) {
      for (std::size_t at = *level + 1; at-- > job.domain.required.value_or(0);) {
        const auto [first, last] = tree.Level(at);
        for (TopologyDomain domain = first; domain < last; ++domain) {
          GangAttempt attempt = Within(snapshot, NodesOf(tree, domain, at), job, pods);
          if (attempt.places.size() == pods.size()) return attempt;
        }
      }
      if (job.domain.required) return {};
    }
    GangAttempt attempt = Within(snapshot, NodesOf(tree, std::nullopt, 0), job, pods);
    return attempt.places.size() == pods.size() ? attempt : GangAttempt{};
  }

 private:
  static GangAttempt Within(const Snapshots& snapshot, const std::vector<char>& nodes,
                            const GangJob& job, const std::vector<PodRequest>& pods) {
    std::int64_t free = 0;
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      if (nodes[i] != 0) free += snapshot->node(i).free_gpu_milli();
    }
    GangAttempt attempt;
    if (free < job.gpu_milli()) return attempt;
    Transaction transaction(snapshot);
    for (std::size_t i = 0; i < pods.size(); ++i) {
      const Snapshot& now = *transaction.now();
      const auto placement = BestNode(
          now, pods[i], nodes, [&now](NodeIndex node) { return -now.node(node).free_gpu_milli(); });
      if (!placement || !transaction.Put(pods[i], *placement)) return attempt;
      attempt.places.push_back({i, *placement});
    }
    return attempt;
  }
};

class KueueTasLike final : public GangRule {
 public:
  GangAttempt Try(const Snapshots& snapshot, const DomainTree& tree, const GangJob& job,
                  const std::vector<PodRequest>& pods, const std::vector<char>& has_node,
                  int attempts) override {
    if (std::ranges::count(has_node, 1) > 0) return TryRest(snapshot, pods, has_node);
    for (const std::vector<char>& nodes : Candidates(*snapshot, tree, job)) {
      auto attempt = Within(snapshot, tree, nodes, job, pods);
      if (!attempt) continue;
      if (attempt->places.size() < pods.size()) Hold(*attempt, attempts);
      return *std::move(attempt);
    }
    return {};
  }

 private:
  static void Hold(GangAttempt& attempt, int attempts) {
    attempt.hold = std::chrono::seconds(300);
    attempt.back_off = std::chrono::seconds(60) * (1 << std::min(attempts, 5));
  }

  static DomainWish WishOf(const GangJob& job, const GangRole& role) {
    DomainWish wish;
    wish.pods = role.count;
    wish.mode = DomainMode::kUnconstrained;
    if (job.members() == 1) return wish;
    if (job.domain.required) {
      wish.mode = DomainMode::kRequired;
      wish.level = *job.domain.required;
    } else if (job.domain.preferred) {
      wish.mode = DomainMode::kPreferred;
      wish.level = *job.domain.preferred;
    }
    return wish;
  }

  // Roles that must be together are a group of pod sets: the domains of the level by the room that
  // they have for the workers, the tightest first.
  static std::vector<std::vector<char>> Candidates(const Snapshot& snapshot, const DomainTree& tree,
                                                   const GangJob& job) {
    if (!job.domain.required || job.roles.size() == 1) return {NodesOf(tree, std::nullopt, 0)};
    std::vector<int> room(tree.nodes());
    for (NodeIndex i = 0; i < room.size(); ++i) {
      room[i] = RoomBySums(snapshot.node(i), job.roles.back().shape);
    }
    const std::vector<std::int64_t> sums = tree.SumUp(room);
    const auto [first, last] = tree.Level(*job.domain.required);
    std::vector<TopologyDomain> domains;
    for (TopologyDomain domain = first; domain < last; ++domain) domains.push_back(domain);
    std::ranges::stable_sort(domains, {}, [&](TopologyDomain domain) { return sums[domain]; });
    std::vector<std::vector<char>> candidates;
    for (const TopologyDomain domain : domains) {
      candidates.push_back(NodesOf(tree, domain, *job.domain.required));
    }
    return candidates;
  }

  // Empty: by the counts there is no room.
  static std::optional<GangAttempt> Within(const Snapshots& snapshot, const DomainTree& tree,
                                           const std::vector<char>& nodes, const GangJob& job,
                                           const std::vector<PodRequest>& pods) {
    Transaction transaction(snapshot);
    GangAttempt attempt;
    std::size_t next = 0;
    for (const GangRole& role : job.roles) {
      std::vector<int> room(tree.nodes(), 0);
      for (NodeIndex i = 0; i < room.size(); ++i) {
        if (nodes[i] != 0) room[i] = RoomBySums(transaction.now()->node(i), role.shape);
      }
      const auto choice = ChooseDomains(tree, room, WishOf(job, role));
      if (!choice) return std::nullopt;
      for (NodeIndex i = 0; i < room.size(); ++i) {
        for (std::int64_t n = 0; n < choice->pods[i]; ++n, ++next) {
          (void)PutOn(transaction, i, pods[next], next, attempt);
        }
      }
    }
    return attempt;
  }

  // Amounts of a node are sums: the rule does not know what is free of each GPU.
  static int RoomBySums(const Node& node, const RequestShape& shape) {
    if (!shape.is_share()) return PodsThatFit(node, shape);
    const std::int64_t gpu = node.free_gpu_milli() / std::max(shape.milli_per_gpu(), 1);
    const std::int64_t cpu = node.free_cpu_milli() / std::max<std::int64_t>(shape.cpu_milli, 1);
    return static_cast<int>(std::max<std::int64_t>(std::min(gpu, cpu), 0));
  }

  static bool PutOn(Transaction& transaction, NodeIndex index, const PodRequest& pod,
                    std::size_t member, GangAttempt& attempt) {
    const Node& node = transaction.now()->node(index);
    if (FirstObjection(node, pod.shape) != Reason::kFits) return false;
    Placement placement = PlacementFor(
        node, pod.shape, DeviceChoices(node, pod.shape, DeviceRule::kTightest).front());
    if (!transaction.Put(pod, placement)) return false;
    attempt.places.push_back({member, std::move(placement)});
    return true;
  }

  // Pods that are missing go wherever there is room by now: kinder than to wait for their node.
  static GangAttempt TryRest(const Snapshots& snapshot, const std::vector<PodRequest>& pods,
                             const std::vector<char>& has_node) {
    Transaction transaction(snapshot);
    GangAttempt attempt;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      if (has_node[i] != 0) continue;
      for (NodeIndex node = 0; node < snapshot->size(); ++node) {
        if (PutOn(transaction, node, pods[i], i, attempt)) break;
      }
    }
    Hold(attempt, 0);
    return attempt;
  }
};

}  // namespace

std::vector<std::string_view> GangRuleNames() {
  return {"berth", "berth-packing", "greedy", "volcano-like", "kueue-tas-like"};
}

Result<std::unique_ptr<GangRule>> MakeGangRule(const std::string& name, const Snapshot& fleet) {
  if (name == "berth") return Berth::Create(fleet, false);
  if (name == "berth-packing") return Berth::Create(fleet, true);
  if (name == "greedy") return std::unique_ptr<GangRule>(std::make_unique<Greedy>());
  if (name == "volcano-like") return std::unique_ptr<GangRule>(std::make_unique<VolcanoLike>());
  if (name == "kueue-tas-like") return std::unique_ptr<GangRule>(std::make_unique<KueueTasLike>());
  std::string known;
  for (const std::string_view rule : GangRuleNames()) known += " " + std::string(rule);
  return Invalid("rules: want some of" + known + ", got \"" + name + "\"");
}

}  // namespace berth::replay
