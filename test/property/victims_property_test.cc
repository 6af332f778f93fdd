// SPDX-License-Identifier: Apache-2.0
//
// The victims that are chosen against all sets that could have been.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "bench/replay/time/sim_clock.h"
#include "scoring/registry.h"
#include "scoring/victims.h"
#include "test/support/drawn.h"
#include "test/support/random_world.h"
#include "test/support/worlds.h"

namespace berth::test::victims_property_test {
namespace {

constexpr std::uint64_t kSeeds = Drawn(3000);
constexpr int kPreemptor = 3;  // its priority

const WallTime kNow = SimClock().Wall();

// Whether a gang is among them, highest priority, pods, sum of priorities, work lost, GPU compute
// set free.
using Cost = std::tuple<bool, int, int, std::int64_t, std::int64_t, std::int64_t>;

LinkMatrix TwoPairs() {
  return *ParseTopoText(
      "      GPU0  GPU1  GPU2  GPU3  NUMA\n"
      "GPU0   X    NODE  SYS   SYS   0\n"
      "GPU1  NODE   X    SYS   SYS   0\n"
      "GPU2  SYS   SYS    X    NODE  1\n"
      "GPU3  SYS   SYS   NODE   X    1\n");
}

struct World {
  explicit World(std::uint64_t seed) : random(seed) {
    seed % 3 == 0 ? AsPeopleHaveIt(seed) : Drawn();
  }

  // One node. Whether the pod may go there at all is not asked here.
  void AsPeopleHaveIt(std::uint64_t seed) {
    test::World people(seed, {.nodes = 1,
                              .cpu_nodes = 0,
                              .gpus = 4,
                              .held_percent = 100,
                              .most_held = 5,
                              .shares = seed % 2 == 0});
    node.emplace(people.NodeOf(people.nodes()[0]));
    asked = people.APod();
    asked.priority = random.OneOf<int>({50, 100, 1000});
    budgets = people.budgets();
    unattributed = node->unattributed() > 0;
    scarce = node->free_cpu_milli() < asked.shape.cpu_milli ||
             node->free_memory_bytes() < asked.shape.memory_bytes;
  }

  void Drawn() {
    ANode a_node = ANode("n").Gpus(random.Between(1, 4)).Cpu(scarce ? 16 : 1000);
    if (scarce) a_node.DiskGib(16);
    const int gpus = static_cast<int>(a_node.Spec().gpus.size());
    if (gpus == 4 && random.Chance(40)) {  // two GPUs on each of two NUMA nodes
      a_node.Linked(LinksOf(TwoPairs()));
      a_node.Kubelet(static_cast<TopologyPolicy>(random.Between(1, 3)));
    }
    const int count = random.Between(1, 7);
    for (int i = 0; i < count; ++i) {
      APod pod("v" + std::to_string(i));
      pod.Priority(random.Between(0, 4));
      pod.Cpu(random.Between(0, 4));
      pod.DiskGib(random.Between(0, 4));
      if (random.Chance(40)) pod.Labelled({{"app", "web"}});
      if (random.Chance(60)) pod.Checkpointed(kNow - std::chrono::minutes(random.Between(-5, 90)));
      const int gpu = random.Between(0, gpus - 1);
      if (random.Chance(60)) {
        a_node.Holding(pod.Share(random.Between(1, 4) * 100), {gpu});
      } else if (gpu + 1 < gpus && random.Chance(50)) {
        a_node.Holding(pod.Whole(2), {gpu, gpu + 1});
      } else {
        a_node.Holding(pod.Whole(1), unattributed ? std::vector<int>{} : std::vector<int>{gpu});
      }
    }
    node.emplace(a_node.Build());
    APod preemptor("p");
    preemptor.Priority(kPreemptor).Cpu(random.Between(0, 8));
    preemptor.DiskGib(random.Between(0, 8));
    random.Chance(50) ? preemptor.Whole(random.Between(1, gpus))
                      : preemptor.Share(random.Between(1, 10) * 100);
    asked = preemptor.Request();
    budgets = {{"default", "b", LabelSelector{{"app", LabelOperator::kIn, {"web"}}},
                random.Between(0, 2)}};
    if (random.Chance(30)) budgets.clear();
  }

  [[nodiscard]] EvictionLimits limits() const {
    return {budgets, [this](const GangId& gang) { return MembersOf(gang); }, kNow};
  }
  // In all of the world.
  [[nodiscard]] std::size_t MembersOf(const GangId& gang) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        node->pods(), [&gang](const auto& held) { return held->pod.gang.id == gang; }));
  }
  // How many of the pods are beyond budgets.
  [[nodiscard]] std::int64_t Beyond(const std::vector<const PodRecord*>& set) const {
    std::int64_t beyond = 0;
    for (const PodDisruptionBudget& budget : budgets) {
      const auto covered = std::ranges::count_if(
          set, [&budget](const PodRecord* pod) { return budget.Covers(pod->pod); });
      beyond += std::max<std::int64_t>(covered - budget.disruptions_allowed, 0);
    }
    return beyond;
  }

  // What it costs to evict these pods; none if that is not allowed or not enough.
  [[nodiscard]] std::optional<Cost> CostOf(const std::vector<const PodRecord*>& set) const {
    Cost cost{false, std::numeric_limits<int>::min(), 0, 0, 0, 0};
    std::map<GangId, std::size_t> members;
    for (const PodRecord* held : set) {
      if (held->pod.priority >= asked.priority || !held->pod.shape.wants_gpu()) return std::nullopt;
      if (!held->pod.gang.empty()) ++members[held->pod.gang.id];
      std::get<1>(cost) = std::max(std::get<1>(cost), held->pod.priority);
      std::get<2>(cost) += 1;
      std::get<3>(cost) += held->pod.priority;
      for (const DeviceGrant& grant : held->placement.grants) {
        std::get<4>(cost) += grant.milli * MinutesLost(held->pod);
        std::get<5>(cost) += grant.milli;
      }
    }
    std::get<0>(cost) = !members.empty();
    for (const auto& [gang, count] : members) {
      if (count != MembersOf(gang)) return std::nullopt;
    }
    if (Beyond(set) > 0) return std::nullopt;
    const Node left = node->Without(
        [&set](const PodRecord& pod) { return std::ranges::find(set, &pod) != set.end(); });
    if (FirstObjection(left, asked.shape) != Reason::kFits) return std::nullopt;
    return cost;
  }

  static std::int64_t MinutesLost(const PodRequest& pod) {
    if (!pod.checkpointed) return kMostLost.count();
    return std::max<std::int64_t>(
        std::chrono::floor<std::chrono::minutes>(kNow - *pod.checkpointed).count(), 0);
  }

  [[nodiscard]] std::optional<Cost> Cheapest() const {
    std::optional<Cost> best;
    for (unsigned mask = 0; mask < 1U << node->pods().size(); ++mask) {
      std::vector<const PodRecord*> set;
      for (std::size_t i = 0; i < node->pods().size(); ++i) {
        if ((mask >> i & 1U) != 0) set.push_back(node->pods()[i].get());
      }
      const auto cost = CostOf(set);
      if (cost && (!best || *cost < *best)) best = cost;
    }
    return best;
  }

  RandomWorld random;
  bool scarce = random.Chance(30);  // CPU and disk may be short
  bool unattributed = random.Chance(20);
  std::optional<Node> node;
  PodRequest asked;  // for which others are evicted
  std::vector<PodDisruptionBudget> budgets;
};

TEST(VictimsProperty, AreAllowedSufficientAndBestWhereOnlyGpusAreShort) {
  int chosen = 0, vetoed = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const World world(seed);
    const EvictionLimits limits = world.limits();
    const auto added = AddedVictims(*world.node, world.asked, {}, limits);
    const auto best = world.Cheapest();
    (added ? chosen : vetoed) += 1;
    if (added) {
      std::vector<const PodRecord*> set;
      for (const std::string& uid : *added) set.push_back(world.node->FindPod(uid));
      ASSERT_EQ(std::ranges::count(set, nullptr), 0);
      const auto cost = world.CostOf(set);
      ASSERT_TRUE(cost) << "not allowed, or not enough";
      if (!world.scarce && !world.unattributed) {
        ASSERT_EQ(*cost, *best);
      }
    } else if (!world.scarce && !world.unattributed) {
      ASSERT_FALSE(best) << "there was a set";
    }
  }
  EXPECT_GT(chosen, Drawn(500));
  EXPECT_GT(vetoed, Drawn(500));
}

using Set = std::vector<const PodRecord*>;

bool FitsWithout(const World& world, const Set& set) {
  const Node left = world.node->Without(
      [&set](const PodRecord& pod) { return std::ranges::find(set, &pod) != set.end(); });
  return FirstObjection(left, world.asked.shape) == Reason::kFits;
}

// Those that may be evicted, the most important first: of equal ones the first by UID has started
// first.
Set Lower(const World& world) {
  Set lower;
  for (const auto& pod : world.node->pods()) {
    if (pod->pod.priority < world.asked.priority) lower.push_back(pod.get());
  }
  std::ranges::stable_sort(lower, std::greater<>(),
                           [](const PodRecord* pod) { return pod->pod.priority; });
  return lower;
}

// As kube-scheduler proposes (selectVictimsOnNode): all lower ones go, then one after the other
// stays if there is room, those that exceed a budget first.
Set Proposal(const World& world) {
  Set going = Lower(world);
  if (!FitsWithout(world, going) || FitsWithout(world, {})) return {};
  Set exceeding, others;
  std::map<const PodDisruptionBudget*, int> spent;
  for (const PodRecord* pod : going) {
    const bool exceeds = std::ranges::any_of(world.budgets, [&](const auto& budget) {
      return budget.Covers(pod->pod) && ++spent[&budget] > budget.disruptions_allowed;
    });
    (exceeds ? exceeding : others).push_back(pod);
  }
  for (const Set& group : {exceeding, others}) {
    for (const PodRecord* pod : group) {
      Set fewer = going;
      std::erase(fewer, pod);
      if (FitsWithout(world, fewer)) going = fewer;
    }
  }
  return going;
}

std::int64_t LostBy(const Set& set) {
  std::int64_t lost = 0;
  for (const PodRecord* pod : set) {
    std::int64_t milli = 0;
    for (const DeviceGrant& grant : pod->placement.grants) milli += grant.milli;
    lost += milli * World::MinutesLost(pod->pod);
  }
  return lost;
}

bool IsNoWorse(const World& world, const Set& set, const Set& proposed) {
  if (set.empty() || set.size() > proposed.size()) return false;
  const auto priorities = [](const Set& pods) {
    std::vector<int> sorted;
    for (const PodRecord* pod : pods) sorted.push_back(pod->pod.priority);
    std::ranges::sort(sorted, std::greater<>());
    return sorted;
  };
  const std::vector<int> theirs = priorities(set), most = priorities(proposed);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    if (theirs[i] > most[i]) return false;
  }
  return world.Beyond(set) <= world.Beyond(proposed) && FitsWithout(world, set);
}

bool Has(const Set& set, const PodRecord* pod) { return std::ranges::find(set, pod) != set.end(); }

// By single pods with GPUs that stay otherwise; and who has what kube-scheduler alone judges goes.
bool DiffersByThoseItMay(const World& world, const Set& set, const Set& proposed) {
  const bool added = std::ranges::all_of(set, [&proposed](const PodRecord* pod) {
    return Has(proposed, pod) ||
           (pod->pod.gang.empty() && pod->pod.shape.wants_gpu() && !pod->leaving);
  });
  return added && std::ranges::all_of(proposed, [&](const PodRecord* pod) {
           return Has(set, pod) ||
                  !(pod->pod.own_to_scheduler.resources && world.asked.own_to_scheduler.resources);
         });
}

std::int64_t LeastLost(const World& world, const Set& proposed) {
  const Set lower = Lower(world);
  std::int64_t least = LostBy(proposed);
  for (unsigned mask = 1; mask < 1U << lower.size(); ++mask) {
    Set set;
    for (std::size_t i = 0; i < lower.size(); ++i) {
      if ((mask >> i & 1U) != 0) set.push_back(lower[i]);
    }
    if (DiffersByThoseItMay(world, set, proposed) && IsNoWorse(world, set, proposed))
      least = std::min(least, LostBy(set));
  }
  return least;
}

TEST(VictimsProperty, ReplacementVictimsLoseTheLeastWork) {
  int lighter = 0, kept = 0;
  for (std::uint64_t seed = 1; seed <= 10 * kSeeds; ++seed) {  // in most nobody is proposed
    SCOPED_TRACE("seed " + std::to_string(seed));
    const World world(seed);
    const Set proposed = Proposal(world);
    if (proposed.empty()) continue;
    VictimSet given{.uids = {}, .pdb_violations = world.Beyond(proposed)};
    for (const PodRecord* pod : proposed) given.uids.push_back(pod->pod.id.uid);
    const EvictionLimits limits = world.limits();
    const auto instead = LighterVictims(*world.node, world.asked, given, limits);
    // kube-scheduler proposes nobody for shares; who has which GPU has to be known; and those that
    // end already need no others in their place.
    const bool ends = std::ranges::any_of(proposed, &PodRecord::leaving);
    if (world.asked.shape.is_share() || world.node->unattributed() > 0 || ends) {
      ASSERT_FALSE(instead);
      continue;
    }
    (instead ? lighter : kept) += 1;
    Set chosen = proposed;
    if (instead) {
      chosen.clear();
      for (const std::string& uid : instead->uids) chosen.push_back(world.node->FindPod(uid));
      ASSERT_EQ(std::ranges::count(chosen, nullptr), 0);
      ASSERT_TRUE(IsNoWorse(world, chosen, proposed));
      ASSERT_LT(LostBy(chosen), LostBy(proposed));
      ASSERT_LE(instead->pdb_violations, given.pdb_violations);
    }
    ASSERT_EQ(LostBy(chosen), LeastLost(world, proposed));
  }
  EXPECT_GT(lighter, Drawn(100));
  EXPECT_GT(kept, Drawn(100));
}

}  // namespace
}  // namespace berth::test::victims_property_test
