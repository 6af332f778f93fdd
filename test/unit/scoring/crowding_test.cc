// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/neighbours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scoring/devices/device_picker.h"
#include "scoring/engine/engine.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::crowding_test {
namespace {

APod Replica(const std::string& name, Spread spread = Spread::kCard) {
  return APod(name).Share(250).CpuMilli(100).Spreads(spread, "web");
}

int GpuOf(const std::vector<DeviceChoice>& choices) {
  return choices.empty() ? -1 : std::countr_zero(choices.front().gpus);
}

TEST(Crowding, CountsThePodsOfTheWorkloadOnAGpuAndOnTheNode) {
  const ANode built = ANode("n").Gpus(2).Holding(Replica("a"), {0}).Holding(Replica("b"), {0});
  const auto snapshot = SnapshotOf({ANode(built).Holding(APod("other").Share(100), {1})});
  const Node& node = snapshot->node(0);
  EXPECT_EQ(CrowdOnGpu(node, 0, Replica("c").Shape()), 2);
  EXPECT_EQ(CrowdOnGpu(node, 1, Replica("c").Shape()), 0);
  EXPECT_EQ(CrowdOn(node, Replica("c").Shape()), 0) << "GPU 1 has none of them";
  EXPECT_EQ(CrowdOn(node, Replica("c", Spread::kNode).Shape()), 2);
  EXPECT_EQ(CrowdOn(node, APod("c").Share(250).Shape()), 0);
  const RequestShape whole = APod("c").Whole(1).Spreads(Spread::kCard, "web").Shape();
  EXPECT_EQ(CrowdOn(node, whole), 0) << "a whole GPU has no other user";
}

TEST(Crowding, OfReplicasIsThatOfTheNode) {
  const APod bound = APod("a").Whole(1).Spreads(Spread::kCard, "web");
  const auto snapshot = SnapshotOf({ANode("n").Places(4).Holding(bound, {})});
  const RequestShape next = APod("b").Whole(1).Spreads(Spread::kCard, "web").Shape();
  EXPECT_EQ(CrowdOn(snapshot->node(0), next), 1);
}

TEST(Crowding, AShareGoesToTheGpuWithTheFewestWhateverTheRule) {
  const auto snapshot = SnapshotOf({ANode("n").Gpus(3).Holding(Replica("a"), {0})});
  for (const DeviceRule rule :
       {DeviceRule::kFirst, DeviceRule::kTightest, DeviceRule::kBestScore, DeviceRule::kRandom}) {
    const auto choices = DeviceChoices(snapshot->node(0), Replica("b").Shape(), rule);
    EXPECT_GT(GpuOf(choices), 0);
    const auto of_another = DeviceChoices(
        snapshot->node(0), APod("c").Share(250).Spreads(Spread::kCard, "db").Shape(), rule);
    EXPECT_GE(GpuOf(of_another), 0);
  }
  EXPECT_EQ(
      GpuOf(DeviceChoices(snapshot->node(0), APod("c").Share(250).Shape(), DeviceRule::kTightest)),
      0)
      << "everybody else is packed";
}

TEST(Crowding, IsNoCondition) {
  const auto snapshot = SnapshotOf({ANode("n").Gpus(1).Holding(Replica("a"), {0})});
  EXPECT_EQ(GpuOf(DeviceChoices(snapshot->node(0), Replica("b").Shape(), DeviceRule::kTightest)),
            0);
}

// Replicas of GPUs (time slicing): on the GPU with the fewest users, of one workload apart.
TEST(Crowding, SpreadsUsersOverTheGpusThatTheyShare) {
  NodeSpec spec = ANode("n").Places(6).CarriesOut().Spec();
  spec.places.gpus = 3;
  spec.places.uuids = {"GPU-0", "GPU-1", "GPU-2"};
  const auto shared = std::make_shared<const NodeSpec>(spec);
  PodRecords pods;
  const auto put = [&](const APod& pod) {
    Placement placement = PlacementFor(Node(shared, pods), pod.Shape(), DeviceChoice{});
    const std::vector<int> on = placement.places_on;
    auto record = std::make_shared<PodRecord>(*pod.BoundOn("n"));
    record->placement = std::move(placement);
    const auto at = PositionOf(pods, record->pod.id.uid);
    pods.insert(at, std::move(record));
    return on;
  };
  EXPECT_EQ(put(APod("a").Whole(1)), std::vector{0});
  EXPECT_EQ(put(APod("b").Whole(2)), (std::vector{1, 2})) << "of two containers";
  EXPECT_EQ(put(APod("c").Whole(1)), std::vector{0});
  EXPECT_EQ(put(APod("d").Whole(3)), std::vector<int>{}) << "two are left; the node refuses it";
  pods.pop_back();
  EXPECT_EQ(put(APod("e").Whole(1)), std::vector{1});
  spec.carries_out = false;
  EXPECT_EQ(PlacementFor(Node(std::make_shared<const NodeSpec>(spec), {}),
                         APod("x").Whole(1).Shape(), DeviceChoice{})
                .places_on,
            std::vector<int>{})
      << "the kubelet picks";
}

// Places so many replicas, one after the other, with the default policy. Returns where each is.
std::vector<std::pair<std::string, int>> Deploy(std::vector<ANode> nodes, int replicas,
                                                Spread spread) {
  std::vector<std::pair<std::string, int>> places;
  const RequestMix mix = {{APod("p").Share(250).CpuMilli(100).Shape(), 0.5},
                          {APod("q").Whole(1).Cpu(8).Shape(), 0.5}};
  Engine engine(BuildProfile(*FindBuiltinProfile("expected-waste"), mix).value());
  for (int i = 0; i < replicas; ++i) {
    const auto snapshot = SnapshotOf(nodes);
    const APod pod = Replica("web-" + std::to_string(i), spread);
    const auto best = engine.Best(snapshot, pod.Shape());
    if (best.empty()) break;
    const auto placement = engine.PlaceOn(snapshot, pod.Shape(), best.front());
    const int gpu = placement->grants.front().gpu;
    places.emplace_back(placement->node, gpu);
    nodes[best.front()].Holding(pod, {gpu});
  }
  return places;
}

// The operator of two nodes of four GPUs rolls out eight replicas that take a quarter of a GPU.
TEST(Crowding, SpreadsADeploymentOverCardsOrNodesAndPacksItOtherwise) {
  const std::vector<ANode> nodes = {ANode("a").Gpus(4), ANode("b").Gpus(4)};
  const auto cards = [](const auto& places) {
    return std::set<std::pair<std::string, int>>(places.begin(), places.end()).size();
  };
  EXPECT_EQ(cards(Deploy(nodes, 8, Spread::kNone)), 2U) << "packed";
  EXPECT_EQ(cards(Deploy(nodes, 8, Spread::kCard)), 8U) << "one to a card";
  const auto by_node = Deploy(nodes, 8, Spread::kNode);
  EXPECT_EQ(std::ranges::count(by_node, "a", &std::pair<std::string, int>::first), 4);
  EXPECT_EQ(cards(by_node), 2U) << "packed within each node";
  const auto beyond = Deploy(nodes, 10, Spread::kCard);
  ASSERT_EQ(beyond.size(), 10U) << "more replicas than cards share them";
  EXPECT_EQ(cards(beyond), 8U);
}

}  // namespace
}  // namespace berth::test::crowding_test
