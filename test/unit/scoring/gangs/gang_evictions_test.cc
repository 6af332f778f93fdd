// SPDX-License-Identifier: Apache-2.0
#include "scoring/gangs/gang_checked.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
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

ANode OfGang(const std::string& name, const std::string& gang, int priority) {
  const APod pod = APod(name + "-" + gang).Whole(2).Priority(priority).Gang("default/" + gang);
  return InRack(name, "r").Holding(pod, {0, 1});
}

// Which gangs on several nodes end for so many pods of priority 10 with two GPUs each: "low";
// "none": there is no plan.
std::string EndingFor(const std::vector<ANode>& nodes, int members,
                      std::vector<PodDisruptionBudget> budgets = {}, bool may_break = false) {
  const auto snapshot = SnapshotOf(nodes);
  const DomainTree tree = DomainsOf(*snapshot, kRacks);
  Engine engine(BuildProfile(*FindBuiltinProfile("best-fit"), {}).value());
  GangRoom room;
  GangAsk ask;
  for (int i = 0; i < members; ++i) {
    const APod pod = APod("m" + std::to_string(i)).Whole(2).Priority(10).Gang("default/gang");
    ask.members.push_back({pod.Request(), i});
  }
  ask.minimum = members;
  EvictionLimits limits{budgets, [&snapshot](const GangId& gang) {
                          std::size_t pods = 0;
                          for (NodeIndex i = 0; i < snapshot->size(); ++i) {
                            for (const auto& held : snapshot->node(i).pods()) {
                              pods += held->pod.gang.id == gang ? 1U : 0U;
                            }
                          }
                          return pods;
                        }};
  limits.gangs_may_break = may_break;
  const Reservations kept;
  const std::set<std::string, std::less<>> nobody;
  const auto plan = PlanToClear({snapshot, tree, engine, room}, ask, {kept, limits, &nobody});
  if (!plan) return "none";
  std::string text;
  for (const GangId& gang : plan->ending) text += (text.empty() ? "" : " ") + gang.name;
  return text;
}

TEST(PlanToClear, EndsWholeGangsOnSeveralNodesAndAsFewAsWillDo) {
  std::vector<ANode> nodes = {OfGang("a", "dear", 5),  OfGang("b", "low", 1),
                              OfGang("c", "dear", 5),  OfGang("d", "low", 1),
                              OfGang("e", "high", 20), OfGang("f", "high", 20)};
  EXPECT_EQ(EndingFor(nodes, 2), "low");
  EXPECT_EQ(EndingFor(nodes, 4), "dear low");
  EXPECT_EQ(EndingFor(nodes, 5), "none");
  nodes.push_back(InRack("g", "r"));
  EXPECT_EQ(EndingFor(nodes, 3), "low");
  nodes.push_back(Full(InRack("h", "r"), 9));
  EXPECT_EQ(EndingFor(nodes, 2), "") << "no gang where single pods will do, whatever they cost";
}

TEST(PlanToClear, LeavesNoPartOfAGangBehind) {
  std::vector<ANode> nodes = {OfGang("a", "wide", 1), OfGang("b", "wide", 1),
                              OfGang("c", "wide", 1)};
  EXPECT_EQ(EndingFor(nodes, 2), "none") << "nobody would ask for the end of the third";
  EXPECT_EQ(EndingFor(nodes, 3), "wide");
  nodes.push_back(OfGang("d", "small", 2));
  nodes.push_back(OfGang("e", "small", 2));
  EXPECT_EQ(EndingFor(nodes, 2), "small");
  nodes.push_back(ANode("cpu").Holding(APod("launcher").Gang("default/small")));
  EXPECT_EQ(EndingFor(nodes, 2), "small") << "a launcher holds no GPUs";
}

TEST(PlanToClear, BreaksAGangWhereItMayAndNothingElseWillDo) {
  std::vector<ANode> nodes = {OfGang("a", "wide", 1), OfGang("b", "wide", 1),
                              OfGang("c", "wide", 1)};
  EXPECT_EQ(EndingFor(nodes, 2, {}, true), "wide");
  nodes.push_back(OfGang("d", "small", 2));
  nodes.push_back(OfGang("e", "small", 2));
  EXPECT_EQ(EndingFor(nodes, 2, {}, true), "small");
}

TEST(PlanToClear, ABudgetHasToAllowTheEndOfTheWholeGang) {
  const std::vector<ANode> nodes = {OfGang("a", "low", 1), OfGang("b", "low", 1)};
  PodDisruptionBudget budget;
  budget.namespace_name = "default";
  budget.selector = LabelSelector();
  budget.disruptions_allowed = 1;
  EXPECT_EQ(EndingFor(nodes, 2, {budget}), "none");
  budget.disruptions_allowed = 2;
  EXPECT_EQ(EndingFor(nodes, 2, {budget}), "low");
}

TEST(PlanToClear, FindsEnoughOfManyGangs) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 60; ++i) {
    nodes.push_back(
        OfGang("n" + std::to_string(10 + (i * 7) % 60), "g" + std::to_string(i / 2), 1));
  }
  const std::string ending = EndingFor(nodes, 40);
  EXPECT_EQ(std::ranges::count(ending, ' '), 19) << ending;
}

}  // namespace
}  // namespace berth::test::gang_evictions_test
