// SPDX-License-Identifier: Apache-2.0
//
// Whom kube-scheduler would evict, against its rule as it is written down in Kubernetes 1.37
// (pkg/scheduler/framework/plugins/defaultpreemption: SelectVictimsOnNode;
// pkg/scheduler/framework/preemption: FilterVictimsWithPDBViolation, pickOneNodeForPreemption),
// word for word on a model of its NodeInfo, which knows amounts and nothing of GPUs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/replay/time/sim_clock.h"
#include "scoring/victims.h"
#include "test/support/drawn.h"
#include "test/support/random_world.h"
#include "test/support/worlds.h"

namespace berth::test::scheduler_victims_property_test {
namespace {

constexpr std::uint64_t kSeeds = Drawn(4000);
const WallTime kEpoch = SimClock().Wall();

struct ModelPod {
  std::string uid;
  int priority = 0;
  std::array<std::int64_t, 4> requests{};  // milliCPU, memory, ephemeral storage, nvidia.com/gpu
  std::optional<WallTime> start = {};
  std::map<std::string, std::int64_t> others = {};  // devices of other plugins, huge pages
  std::vector<std::size_t> covered_by = {};         // budgets, by index; ascending
};

struct ModelNode {
  std::array<std::int64_t, 4> allocatable{};
  std::vector<ModelPod> pods;
  bool open = true;  // to the pod, by taints, selector and affinity
  std::int64_t most_pods = 1000;
  std::map<std::string, std::int64_t> others = {};

  // noderesources.Fits.
  [[nodiscard]] bool Fits(const ModelPod& pod) const {
    if (std::ssize(pods) + 1 > most_pods) return false;
    std::array<std::int64_t, 4> requested{};
    std::map<std::string, std::int64_t> left = others;
    for (const ModelPod& held : pods) {
      for (std::size_t i = 0; i < requested.size(); ++i) requested[i] += held.requests[i];
      for (const auto& [name, amount] : held.others) left[name] -= amount;
    }
    for (const auto& [name, amount] : pod.others) {
      if (amount > left[name]) return false;
    }
    for (std::size_t i = 0; i < requested.size(); ++i) {
      if (pod.requests[i] > 0 && pod.requests[i] > allocatable[i] - requested[i]) return false;
    }
    return true;
  }
  void RemovePod(const ModelPod& pod) {
    std::erase_if(pods, [&pod](const ModelPod& held) { return held.uid == pod.uid; });
  }
};

bool MoreImportant(const ModelPod& a, const ModelPod& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  const WallTime now = WallTime::max();  // GetPodStartTime of a pod that has not started
  return a.start.value_or(now) < b.start.value_or(now);
}

struct Victims {
  std::vector<ModelPod> pods;  // the most important first
  int violations = 0;
};

// allowed: of each budget.
std::optional<Victims> SelectVictimsOnNode(ModelNode node, const ModelPod& preemptor,
                                           std::vector<int> allowed) {
  std::vector<ModelPod> potential;
  for (const ModelPod& pod : node.pods) {
    if (pod.priority < preemptor.priority) potential.push_back(pod);
  }
  if (potential.empty() || !node.open) return std::nullopt;
  for (const ModelPod& pod : potential) node.RemovePod(pod);
  if (!node.Fits(preemptor)) return std::nullopt;
  std::ranges::stable_sort(potential, MoreImportant);
  std::vector<ModelPod> violating, others;
  for (const ModelPod& pod : potential) {
    bool violates = false;
    for (const std::size_t budget : pod.covered_by) {
      if (--allowed[budget] < 0) {
        violates = true;
        break;
      }
    }
    (violates ? violating : others).push_back(pod);
  }
  Victims victims;
  const auto reprieve = [&](const ModelPod& pod) {
    node.pods.push_back(pod);
    if (node.Fits(preemptor)) return true;
    node.RemovePod(pod);
    victims.pods.push_back(pod);
    return false;
  };
  for (const ModelPod& pod : violating) victims.violations += reprieve(pod) ? 0 : 1;
  for (const ModelPod& pod : others) (void)reprieve(pod);
  std::ranges::stable_sort(victims.pods, MoreImportant);
  if (victims.pods.empty()) return std::nullopt;  // "expected at least one victim pod"
  return victims;
}

// The nodes that are left after the last criterion; it takes any of them.
std::set<std::size_t> PickNodes(const std::map<std::size_t, Victims>& candidates) {
  using Score = std::int64_t (*)(const Victims&);
  constexpr std::array<Score, 5> kScores = {
      [](const Victims& v) { return -std::int64_t{v.violations}; },
      [](const Victims& v) { return -std::int64_t{v.pods.front().priority}; },
      [](const Victims& v) {
        std::int64_t sum = 0;
        for (const ModelPod& pod : v.pods) {
          sum += pod.priority + std::int64_t{std::numeric_limits<std::int32_t>::max()} + 1;
        }
        return -sum;
      },
      [](const Victims& v) { return -std::ssize(v.pods); },
      [](const Victims& v) {
        WallTime earliest = WallTime::max();
        for (const ModelPod& pod : v.pods) {
          if (pod.priority != v.pods.front().priority) continue;
          earliest = std::min(earliest, pod.start.value_or(WallTime::max()));
        }
        return std::int64_t{earliest.time_since_epoch().count()};
      }};
  std::set<std::size_t> left;
  for (const auto& [node, victims] : candidates) left.insert(node);
  for (const Score score : kScores) {
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    for (const std::size_t node : left) most = std::max(most, score(candidates.at(node)));
    std::erase_if(left, [&](std::size_t node) { return score(candidates.at(node)) < most; });
  }
  return left;
}

// The same nodes in both forms.
struct World {
  explicit World(std::uint64_t seed) : random(seed) {
    seed % 3 == 0 ? AsPeopleHaveThem(seed) : Drawn();
  }

  void AsPeopleHaveThem(std::uint64_t seed) {
    test::World people(seed, {.nodes = 4, .gpus = 4, .gangs = seed % 2 == 0});
    asked = people.APod();
    asked.priority = 60;
    pod = ModelOf(asked, std::nullopt);
    pod.priority = 60;
    list = people.budgets();
    for (const PodDisruptionBudget& budget : list) allowed.push_back(budget.disruptions_allowed);
    for (const NodeSpec& spec : people.nodes()) {
      if (spec.has_gpus() && std::ranges::all_of(spec.gpus, &GpuSpec::healthy)) {
        AddNode(people.NodeOf(spec));
      }
    }
  }

  static std::array<std::int64_t, 4> AmountsOf(const RequestShape& shape) {
    return {shape.cpu_milli, shape.memory_bytes, shape.ephemeral_bytes, shape.gpu_count()};
  }

  static ModelPod ModelOf(const PodRequest& pod, std::optional<WallTime> start) {
    ModelPod model{pod.id.uid, pod.priority, AmountsOf(pod.shape), start};
    for (const OtherResource& other : pod.others == nullptr ? OtherResources() : *pod.others) {
      model.others[other.name] = other.amount;
    }
    return model;
  }

  void AddNode(const Node& node) {
    const NodeSpec& spec = node.spec();
    ModelNode model{
        {spec.cpu_milli, spec.memory_bytes, std::int64_t{1} << 50, std::ssize(spec.gpus)}, {}};
    model.most_pods = spec.most_pods;
    for (const OtherResource& other : spec.others) model.others[other.name] = other.amount;
    const NodeConstraints any, &needs = asked.constraints == nullptr ? any : *asked.constraints;
    model.open = spec.ready && SelectsNode(needs, spec.name, spec.labels) &&
                 std::ranges::all_of(spec.taints, [&needs](const Taint& taint) {
                   return Tolerates(needs.tolerations, taint);
                 });
    for (const auto& held : node.pods()) {
      ModelPod one = ModelOf(held->pod, held->life.started);
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].Covers(held->pod)) one.covered_by.push_back(i);
      }
      model.pods.push_back(one);
    }
    nodes.push_back(node);
    models.push_back(model);
  }

  void Drawn() {
    const int count = random.Between(1, 4);
    for (int i = 0; i < count; ++i) AddNode("n" + std::to_string(i));
    const int gpus = random.Between(0, 4), cpu = random.Between(0, 12), disk = random.Between(0, 8);
    asked = APod("p").Priority(3).Cpu(cpu).DiskGib(disk).Whole(std::max(gpus, 1)).Request();
    pod = {"p", 3, {cpu * 1000, 0, std::int64_t{disk} << 30, std::max(gpus, 1)}};
    const int budgets = random.Between(0, 2);
    for (int i = 0; i < budgets; ++i) {
      allowed.push_back(random.Between(0, 2));
      list.push_back({"default", "b" + std::to_string(i),
                      LabelSelector{{"app", LabelOperator::kIn, {"web"}}}, allowed.back()});
    }
    for (ModelNode& node : models) {
      for (ModelPod& held : node.pods) {
        std::erase_if(held.covered_by, [this](std::size_t i) { return i >= allowed.size(); });
      }
    }
    list.push_back({"default", "of all", LabelSelector{}, 0});  // which kube-scheduler passes over
  }

  void AddNode(const std::string& name) {
    const int gpus = random.Between(1, 4), cpu = random.Between(8, 24),
              disk = random.Between(8, 24);
    ANode node(name);
    node.Gpus(gpus).Cpu(cpu).DiskGib(disk);
    ModelNode model{{cpu * 1000, std::int64_t{1} << 50, std::int64_t{disk} << 30, gpus}, {}};
    const int count = random.Between(1, 6);
    for (int i = 0, gpu = 0; i < count; ++i) {
      ModelPod one;
      one.uid = "uid-" + name + "-" + std::to_string(i);
      APod a_pod(name + "-" + std::to_string(i));
      one.priority = random.Between(0, 4);
      const int asks = random.Between(0, 6), takes = random.Between(0, 6);
      one.requests = {asks * 1000, 0, std::int64_t{takes} << 30, 0};
      a_pod.Priority(one.priority).Cpu(asks).DiskGib(takes);
      if (random.Chance(40)) {
        a_pod.Labelled({{"app", "web"}});
        one.covered_by = {0, 1};
      }
      // Every pod has a start of its own: between equal ones kube-scheduler's order is by chance.
      if (random.Chance(90)) one.start = kEpoch + std::chrono::seconds(100 * next_start++);
      PodLife life{.started = one.start};
      std::vector<int> held;
      const int wanted = random.Between(0, 2);
      while (static_cast<int>(held.size()) < wanted && gpu < gpus) held.push_back(gpu++);
      if (!held.empty()) a_pod.Whole(static_cast<int>(held.size()));
      one.requests[3] = std::ssize(held);
      node.Holding(a_pod, held, life);
      model.pods.push_back(one);
    }
    nodes.push_back(node.Build());
    models.push_back(model);
  }

  RandomWorld random;
  std::vector<Node> nodes;
  std::vector<ModelNode> models;
  PodRequest asked;
  ModelPod pod;
  std::vector<int> allowed;
  std::vector<PodDisruptionBudget> list;
  int next_start = 0;
};

// Between these its order is by chance.
bool HasEqualOnes(const ModelNode& node, int below) {
  std::set<std::pair<int, std::optional<WallTime>>> seen;
  return std::ranges::any_of(node.pods, [&](const ModelPod& pod) {
    return pod.priority < below && !seen.emplace(pod.start ? pod.priority : -1, pod.start).second;
  });
}

TEST(SchedulerVictimsProperty, AreThoseOfKubeSchedulersOwnRule) {
  int with = 0, without = 0, violating = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const World world(seed);
    std::map<std::size_t, Victims> candidates;
    std::map<std::size_t, EvictionRank> ranks;
    for (std::size_t i = 0; i < world.nodes.size(); ++i) {
      if (HasEqualOnes(world.models[i], world.pod.priority) || world.models[i].Fits(world.pod))
        continue;
      const auto right = SelectVictimsOnNode(world.models[i], world.pod, world.allowed);
      const auto told = SchedulerVictims(world.nodes[i], world.asked, world.list);
      ASSERT_EQ(told.has_value(), right.has_value());
      if (!right) {
        ++without;
        continue;
      }
      std::vector<std::string> uids;
      for (const ModelPod& pod : right->pods) uids.push_back(pod.uid);
      std::ranges::sort(uids);
      ASSERT_EQ(told->uids, uids);
      ASSERT_EQ(told->pdb_violations, right->violations);
      ++with;
      violating += right->violations > 0 ? 1 : 0;
      candidates.emplace(i, *right);
      ranks.emplace(i, RankOf(world.nodes[i], *told));
    }
    if (candidates.empty()) continue;
    const std::set<std::size_t> picked = PickNodes(candidates);
    const auto best = std::ranges::min_element(
        ranks, {}, [](const auto& rank) -> const EvictionRank& { return rank.second; });
    ASSERT_TRUE(picked.contains(best->first));
    const auto equal =
        std::ranges::count_if(ranks, [&](const auto& rank) { return rank.second == best->second; });
    ASSERT_EQ(static_cast<std::size_t>(equal), picked.size());
  }
  EXPECT_GT(with, Drawn(1000));
  EXPECT_GT(without, Drawn(500));
  EXPECT_GT(violating, Drawn(100));
}

TEST(SchedulerVictimsProperty, NobodyGoesWhereThereIsRoomByItsCount) {
  const ANode node = ANode("n").Gpus(2).Holding(APod("share").Share(500).Priority(1), {0});
  EXPECT_FALSE(SchedulerVictims(node.Build(), APod("p").Whole(2).Priority(9).Request(), {}))
      << "it does not know that a share is of one of the GPUs";
}

}  // namespace
}  // namespace berth::test::scheduler_victims_property_test
