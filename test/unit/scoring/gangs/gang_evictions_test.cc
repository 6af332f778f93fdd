// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_checked.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/snapshot.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::gang_evictions_test {
namespace {

const TopologyLevels kRacks = {{"rack", {"rack"}}};

ANode InRack(const std::string& name, const std::string& rack) {
  return ANode(name).Gpus(2).Labelled({{"rack", rack}});
}

// Both of its GPUs are taken.
ANode Full(ANode node, int priority, int pods = 1) {
  const std::string& name = node.Spec().name;
  for (int pod = 0; pod < pods; ++pod) {
    const std::vector<int> gpus = pods == 1 ? std::vector{0, 1} : std::vector{pod};
    node.Holding(APod(name + std::to_string(pod)).Whole(2 / pods).Priority(priority), gpus);
  }
  return node;
}

// The nodes of so many pods of priority 10 with two GPUs each, in order; "none".
std::string NodesFor(const std::vector<ANode>& nodes, int members,
                     std::vector<PodDisruptionBudget> budgets = {}, bool in_one_rack = false,
                     int disk_gib = 0) {
  const auto snapshot = SnapshotOf(nodes);
  const DomainTree tree = DomainsOf(*snapshot, kRacks);
  Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  GangRoom room;
  GangAsk ask;
  for (int i = 0; i < members; ++i) {
    APod pod = APod("m" + std::to_string(i)).Whole(2).Priority(10).Gang("default/gang");
    pod.DiskGib(disk_gib);
    ask.members.push_back({pod.Request(), i});
  }
  ask.minimum = members;
  if (in_one_rack) ask.domain.required = 0;
  const EvictionLimits limits{budgets, [](const GangId&) { return std::size_t{0}; }};
  const auto plan = PlanAfterEvictions({snapshot, tree, engine, room}, ask, limits);
  if (!plan) return "none";
  std::vector<std::string> names;
  for (const auto& place : plan->places) names.push_back(place.placement.node);
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

TEST(PlanAfterEvictions, TakesIdleNodesAndThenThoseWhosePodsMatterLeast) {
  EXPECT_EQ(NodesFor({Full(InRack("a", "r"), 9), InRack("b", "r"), Full(InRack("c", "r"), 2),
                      Full(InRack("d", "r"), 1, 2), Full(InRack("e", "r"), 1)},
                     3),
            "b d e");
}

TEST(PlanAfterEvictions, OfEqualPriorityTheNodeWithFewerPodsGoesFirst) {
  EXPECT_EQ(NodesFor({Full(InRack("a", "r"), 1, 2), Full(InRack("b", "r"), 1)}, 1), "b");
}

TEST(PlanAfterEvictions, FindsNoneWhereHigherPodsOrBudgetsLeaveTooLittle) {
  const std::vector<ANode> nodes = {Full(InRack("a", "r"), 1), Full(InRack("b", "r"), 10)};
  EXPECT_EQ(NodesFor(nodes, 2), "none");
  EXPECT_EQ(NodesFor(nodes, 1), "a");
  PodDisruptionBudget budget;
  budget.namespace_name = "default";
  budget.selector = LabelSelector();
  EXPECT_EQ(NodesFor(nodes, 1, {budget}), "none");
}

TEST(PlanAfterEvictions, EvictsWhereTheDiskSufficesAfterwards) {
  const auto with_logs = [](ANode node, int gib) {
    return node.DiskGib(500).Holding(APod(node.Spec().name + "-logs").Priority(20).DiskGib(gib));
  };
  const std::vector<ANode> nodes = {Full(with_logs(InRack("a", "r"), 400), 1),
                                    Full(with_logs(InRack("b", "r"), 100), 5)};
  EXPECT_EQ(NodesFor(nodes, 1, {}, false, 50), "a");
  EXPECT_EQ(NodesFor(nodes, 1, {}, false, 200), "b");
  EXPECT_EQ(NodesFor(nodes, 2, {}, false, 200), "none");
}

TEST(PlanAfterEvictions, EmptiesTheRackThatCostsLeast) {
  EXPECT_EQ(NodesFor({Full(InRack("a", "r"), 1), Full(InRack("b", "r"), 5),
                      Full(InRack("c", "s"), 2), Full(InRack("d", "s"), 3)},
                     2, {}, true),
            "c d");
}

TEST(PlanAfterEvictions, EmptiesNoMoreThanIsNeededOfManyNodes) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 40; ++i) {
    nodes.push_back(Full(InRack("n" + std::to_string(10 + i), "r"), 1 + (i * 7) % 9));
  }
  std::string cheapest;
  for (int i = 0; i < 40; ++i) {
    if ((i * 7) % 9 == 0) cheapest += (cheapest.empty() ? "n" : " n") + std::to_string(10 + i);
  }
  EXPECT_EQ(NodesFor(nodes, 5), cheapest);
}

}  // namespace
}  // namespace berth::test::gang_evictions_test
