// SPDX-License-Identifier: Apache-2.0
//
// Wishes that come with the question to a table that several workload classes share, beside tables
// of their own: the same totals, whatever happens to the nodes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/state/cluster_state.h"
#include "scoring/devices/device_picker.h"
#include "scoring/engine/evaluation_table.h"
#include "scoring/engine/profile_tables.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::wishes_apart_test {
namespace {

const std::vector<std::string> kTraitNames = {"nvme", "rdma", "spot"};

Profile ProfileWithMarket(const char* name = "expected-waste") {
  const RequestMix mix = {{APod("a").Whole(1).Cpu(8).Shape(), 0.5},
                          {APod("b").Whole(4).Cpu(32).Shape(), 0.3},
                          {APod("c").Share(300).Cpu(2).Shape(), 0.2}};
  return BuildProfile(*FindBuiltinProfile(name), mix).value();
}

NodeSpec RandomSpec(Random& random, int number) {
  std::vector<std::string> traits;
  for (const std::string& trait : kTraitNames) {
    if (random.Below(2) > 0) traits.push_back(trait);
  }
  NodeSpec spec = ANode("n" + std::to_string(100 + number)).Gpus(8).Cpu(96).Traits(traits).Spec();
  spec.gpu_price = static_cast<double>(random.Below(5));
  return spec;
}

std::vector<TraitWish> RandomWishes(Random& random) {
  std::vector<TraitWish> wishes;
  for (const std::string& trait : kTraitNames) {
    const int weight = static_cast<int>(random.Below(5)) * 50 - 100;
    if (weight != 0) wishes.push_back({trait, weight});
  }
  if (random.Below(2) > 0) wishes.push_back({std::string(kPriceWish), 10});
  std::ranges::sort(wishes);
  return wishes;
}

// Nodes that come, change and are filled, and what tables say of them at each step.
class Comparison {
 public:
  Comparison(std::uint64_t seed, const char* profile)
      : random_(seed), profile_(ProfileWithMarket(profile)) {
    for (int i = 0; i < 12; ++i) Apply(NodeUpserted{RandomSpec(random_, i)});
  }

  void Step(int step) {
    if (random_.Below(4) == 0) {
      Apply(NodeUpserted{RandomSpec(random_, static_cast<int>(random_.Below(14)))});
    }
    const auto snapshot = state_.Current();
    RequestShape shape = random_.Below(2) > 0 ? APod("p").Whole(1 + Draw(4)).Cpu(4).Shape()
                                              : APod("p").Share(300).Cpu(1).Shape();
    EvaluationTable& shared = shared_.try_emplace(shape, profile_, shape).first->second;
    ASSERT_TRUE(shared.takes_wishes());
    shared.Refresh(snapshot, kAll);
    shape.nodes.wishes = RandomWishes(random_);
    EvaluationTable own(profile_, shape);
    EXPECT_EQ(own.takes_wishes(), shape.nodes.wishes.empty());
    own.Refresh(snapshot, kAll);
    const std::vector<NodeIndex> fitting = own.Fitting();
    ASSERT_EQ(shared.Fitting(), fitting);
    EXPECT_EQ(shared.Totals(fitting, {}, shape.nodes.wishes), own.Totals(fitting)) << step;
    EXPECT_EQ(shared.weights(shape.nodes.wishes), own.weights());
    if (fitting.empty()) return;
    Place(shape, *snapshot, fitting[random_.Below(fitting.size())], own, step);
  }

 private:
  static constexpr RefreshEffort kAll{1'000'000};

  int Draw(int below) { return static_cast<int>(random_.Below(static_cast<std::uint64_t>(below))); }
  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void Place(const RequestShape& shape, const Snapshot& snapshot, NodeIndex node,
             EvaluationTable& table, int step) {
    PodRequest pod = APod("p" + std::to_string(step)).Request();
    pod.shape = shape;
    const Placement placement = PlacementFor(snapshot.node(node), shape, table.choice(node));
    ASSERT_TRUE(state_.Reserve(pod, placement, Instant::max()));
  }

  Random random_;
  ClusterState state_;
  const Profile profile_;
  std::map<RequestShape, EvaluationTable> shared_;
};

TEST(WishesApart, AreTotalledAsInATableOfTheirOwn) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    // Of the second the scorers have unequal weights.
    Comparison comparison(seed, seed % 2 == 0 ? "expected-waste" : "power-saving");
    for (int step = 0; step < 40 && !testing::Test::HasFailure(); ++step) comparison.Step(step);
  }
}

TEST(WishesApart, AreNotTakenWhereTheScorersDoNotCountAlike) {
  const RequestShape whole = APod("p").Whole(1).Shape();
  for (const char* name : {"best-fit", "workload-class"}) {
    const Profile profile = BuildProfile(*FindBuiltinProfile(name), {}).value();
    EXPECT_FALSE(EvaluationTable(profile, whole).takes_wishes()) << name;
  }
  const Profile profile = ProfileWithMarket();
  EXPECT_TRUE(EvaluationTable(profile, whole).takes_wishes());
  EXPECT_FALSE(EvaluationTable(profile, APod("p").ShareByMemory(4000).Shape()).takes_wishes())
      << "how much of a GPU that is depends on the GPU";
  EXPECT_FALSE(EvaluationTable(profile, APod("p").Mig("1g.10gb").Shape()).takes_wishes());
  EXPECT_FALSE(EvaluationTable(profile, APod("p").Shape()).takes_wishes());
}

// What a node is worth to a class follows the node at once, and conditions stay conditions.
TEST(WishesApart, FollowNodesThatChange) {
  ClusterState state;
  const auto put = [&state](const char* name, std::vector<std::string> traits) {
    const ClusterEvent event = NodeUpserted{ANode(name).Gpus(8).Traits(std::move(traits)).Spec()};
    ASSERT_TRUE(state.Apply(std::span(&event, 1)));
  };
  put("a", {});
  put("b", {"rdma"});
  ProfileTables tables(ProfileWithMarket());
  const RequestShape wishes = APod("p").Whole(1).Wishes({"rdma", 100}).Shape();
  const RequestShape avoids = APod("p").Whole(1).Wishes({"rdma", -100}).Shape();
  const auto best = [&](const RequestShape& shape) { return tables.Best(state.Current(), shape); };
  EXPECT_EQ(best(wishes), std::vector<NodeIndex>{1});
  EXPECT_EQ(best(avoids), std::vector<NodeIndex>{0});
  put("a", {"rdma"});
  put("b", {});
  EXPECT_EQ(best(wishes), std::vector<NodeIndex>{0});
  EXPECT_EQ(best(avoids), std::vector<NodeIndex>{1});
  put("c", {"rdma"});
  RequestShape forbids = wishes;
  forbids.nodes.forbidden = {"rdma"};
  EXPECT_EQ(best(forbids), std::vector<NodeIndex>{1});
}

}  // namespace
}  // namespace berth::test::wishes_apart_test
