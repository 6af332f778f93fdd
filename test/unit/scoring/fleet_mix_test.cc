// SPDX-License-Identifier: Apache-2.0
#include "scoring/waste/fleet.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/cluster_state.h"
#include "scoring/engine/engine.h"
#include "scoring/registry.h"
#include "scoring/waste/market.h"
#include "test/support/builders.h"

namespace berth::test::fleet_mix_test {
namespace {

RequestClass Class(std::vector<std::string> models, double weight, int gpus = 1) {
  RequestClass entry{APod("p").Whole(gpus).Shape(), weight};
  entry.shape.models = std::move(models);
  return entry;
}

TEST(FleetMix, AMixOfModelsThatAreThereStaysAsItIs) {
  const RequestMix mix = {Class({}, 0.5), Class({"A100", "T4"}, 0.3), Class({"T4"}, 0.2)};
  const RequestMix on = OnFleet(mix, {"A100", "H100", "T4"});
  ASSERT_EQ(on.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(on[i].shape, mix[i].shape);
    EXPECT_EQ(on[i].weight, mix[i].weight);
  }
}

TEST(FleetMix, ModelsThatNoNodeHasMeanNothing) {
  const RequestMix on =
      OnFleet({Class({"B200"}, 0.5), Class({"A100", "B200"}, 0.2), Class({"A100", "X"}, 0.2),
               Class({"A100"}, 0.05, 2), Class({}, 0.05)},
              {"A100"});
  ASSERT_EQ(on.size(), 3U) << "two are alike now, one has nowhere to go";
  EXPECT_EQ(on[0].shape.models, std::vector<std::string>{"A100"});
  EXPECT_DOUBLE_EQ(on[0].weight, 0.8);
  EXPECT_EQ(on[1].shape.gpu_count(), 2);
  EXPECT_DOUBLE_EQ(on[1].weight, 0.1);
  EXPECT_TRUE(on[2].shape.models.empty());
  EXPECT_TRUE(OnFleet({Class({"B200"}, 1)}, {}).empty());
}

// Nodes of so many models, `alike` of each model with CPUs of their own.
std::shared_ptr<const Snapshot> NodesOf(int models, int alike) {
  ClusterState state;
  std::vector<ClusterEvent> events;
  for (int m = 0; m < models; ++m) {
    for (int i = 0; i < alike + (m == 7 ? 1 : 0); ++i) {
      const std::string name = "m" + std::to_string(m);
      events.emplace_back(NodeUpserted{
          ANode(name + "-" + std::to_string(i)).Gpus(8).Cpu(32 + i).Model(name).Spec()});
    }
  }
  EXPECT_TRUE(state.Apply(events).has_value());
  return state.Current();
}

TEST(FleetMix, AFleetHasTheModelsOfMostNodes) {
  const FleetModels models = ModelsOf(FleetOf(*NodesOf(2000, 1)));
  EXPECT_EQ(models.size(), kMostFleetModels);
  EXPECT_TRUE(models.contains("m7"));
}

TEST(FleetMix, ManyDifferentNodesBecomeAFewKinds) {
  const auto snapshot = NodesOf(10, 300);
  const Fleet fleet = FleetOf(*snapshot);
  EXPECT_LE(fleet.size(), kMostKinds);
  EXPECT_EQ(ModelsOf(fleet).size(), 10U);
  std::size_t nodes = 0;
  for (const NodeKind& kind : fleet) nodes += static_cast<std::size_t>(kind.nodes);
  EXPECT_EQ(nodes, snapshot->size());
}

// Goods are what every node is asked for, and what every choice is priced by.
std::size_t GoodsOf(const Engine& engine) {
  std::size_t goods = 0;
  for (const Profile::Weighted& weighted : engine.profile()->scorers) {
    if (const Market* market = weighted.scorer->market()) goods += market->goods();
  }
  return goods;
}

TEST(FleetMix, PodsThatNameModelsOfTheirOwnMakeNothingLarger) {
  const auto snapshot = SnapshotOf(
      {ANode("a").Gpus(8).Cpu(96).Model("A100"), ANode("t").Gpus(8).Cpu(96).Model("T4")});
  const auto mix = std::make_shared<LearnedMix>(LearningParameters{});
  const auto engine =
      Engine::Create({*FindBuiltinProfile("expected-waste"), {}, mix}, *snapshot).value();
  for (int pod = 0; pod < 400; ++pod) {
    RequestShape shape = APod("p").Whole(1).Cpu(1 + pod % 8).Shape();
    for (int m = 0; m < 60; ++m) shape.models.push_back(std::to_string(100'000 + pod * 60 + m));
    shape.models.push_back("A100");
    std::ranges::sort(shape.models);
    mix->Observe(shape);
    engine->Follow(snapshot);
  }
  EXPECT_LE(GoodsOf(*engine), 2U + 9U) << "A100, the others, and the slots";
}

TEST(FleetMix, AModelThatJoinsIsToldApartAtOnce) {
  const auto before = SnapshotOf({ANode("a").Gpus(8).Cpu(96).Model("A100")});
  const auto after = SnapshotOf(
      {ANode("a").Gpus(8).Cpu(96).Model("A100"), ANode("t").Gpus(8).Cpu(96).Model("T4")});
  const auto mix = std::make_shared<LearnedMix>(LearningParameters{});
  mix->Restore({1000, {Class({"T4"}, 500), Class({"A100"}, 500)}});
  const auto engine =
      Engine::Create({*FindBuiltinProfile("expected-waste"), {}, mix}, *before).value();
  const auto profile = engine->profile();
  engine->Follow(before);
  EXPECT_EQ(engine->profile(), profile) << "nothing is new";
  for (int i = 0; i < 5; ++i) engine->Follow(after);
  EXPECT_NE(engine->profile(), profile);
}

}  // namespace
}  // namespace berth::test::fleet_mix_test
