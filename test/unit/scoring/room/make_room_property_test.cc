// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scoring/room/make_room.h"
#include "test/support/builders.h"
#include "test/support/random_world.h"
#include "test/unit/scoring/room/every_plan.h"

namespace berth::test::make_room_property_test {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kNow = WallTime(std::chrono::hours(24 * 365 * 50));

enum class Kind {
  kOpen,       // every pod may use every node that has its model
  kSelective,  // a third of the nodes is tainted, half of the pods select nodes
};

// A small cluster, nearly full, and what is wanted of it.
class SmallCluster {
 public:
  explicit SmallCluster(std::uint64_t seed, Kind kind)
      : world_(seed), selective_(kind == Kind::kSelective) {
    const int nodes = world_.OneOf<int>({2, 3, 3, 4});
    const int gpus = world_.OneOf<int>({2, 3, 4});
    shares_ = world_.Chance(30);
    models_ = world_.Chance(selective_ ? 60 : 30);
    cpus_ = world_.Chance(40);
    ask_.rules.keep_model = selective_ && world_.Chance(70);
    std::vector<Node> built;
    for (int i = 0; i < nodes; ++i) built.push_back(Filled(i, gpus));
    std::vector<std::shared_ptr<const Node>> shared;
    for (Node& node : built) shared.push_back(std::make_shared<const Node>(std::move(node)));
    ask_.snapshot = std::make_shared<const Snapshot>(shared);
    ask_.rules.now = kNow;
    if (world_.Chance(25)) {
      ask_.goal.idle_nodes = 1;
      if (models_) ask_.goal.model = "A100";
    }
    const int pods = world_.Between(ask_.goal.idle_nodes > 0 ? 0 : 1, 2);
    for (int i = 0; i < pods; ++i) {
      ask_.goal.pods.push_back(Drawn("goal" + std::to_string(i), gpus, false).Request());
      if (i > 0 && world_.Chance(40)) {
        ask_.goal.pods[1].shape = ask_.goal.pods[0].shape;
      }
    }
  }

  [[nodiscard]] const RoomAsk& ask() const { return ask_; }

 private:
  APod Drawn(const std::string& name, int gpus, bool small) {
    APod pod(name);
    if (shares_ && world_.Chance(50)) {
      pod.Share(world_.OneOf<int>({300, 500, 700}));
    } else {
      pod.Whole(small ? 1 : world_.Between(1, std::min(gpus, 4)));
    }
    pod.Cpu(cpus_ ? world_.Between(1, 6) : 1);
    if (models_ && world_.Chance(40)) {
      pod.Models({world_.OneOf<std::string>({"A100", "T4"})});
    }
    if (selective_) Constrain(pod, name);
    return pod;
  }

  // As people do: a toleration of what GPU nodes have, a zone, a list of nodes, a hostname.
  void Constrain(APod& pod, const std::string& name) {
    NodeConstraints constraints;
    if (world_.Chance(60)) {
      constraints.tolerations.push_back({kTaint, TolerationOperator::kExists, "", {}});
    }
    if (world_.Chance(50)) {
      const int how = world_.Between(0, 3);
      const std::string node = "n" + std::to_string(world_.Between(0, 3));
      const std::string zone = world_.Chance(50) ? "a" : "b";
      if (how < 2) constraints.selector = {{"zone", LabelOperator::kIn, {zone}}};
      if (how == 2) {
        constraints.either.emplace(1).front().labels = {{"zone", LabelOperator::kNotIn, {zone}}};
      }
      if (how == 3) {
        const bool stays = name.starts_with('p') && world_.Chance(50);  // as Kueue pins pods
        const std::string to = stays ? "n" + name.substr(1, 1) : node;
        constraints.either.emplace(1).front().fields = {
            {"metadata.name", LabelOperator::kIn, {to}}};
      }
    }
    pod.Constrained(constraints);
  }

  Node Filled(int index, int gpus) {
    ANode empty("n" + std::to_string(index));
    empty.Gpus(gpus).Named().Cpu(cpus_ ? 8 : 64);
    empty.Model(models_ ? world_.OneOf<std::string>({"A100", "T4"}) : "A100");
    if (selective_) {
      empty.Labelled({{"zone", world_.Chance(50) ? "a" : "b"}});
      if (world_.Chance(33)) empty.Tainted(kTaint, "present");
    }
    Node node = empty.Build();
    const int pods = world_.Between(gpus > 2 ? 1 : 0, 2);
    for (int i = 0; i < pods && total_ < 6; ++i) {
      PodRequest pod =
          Drawn("p" + std::to_string(index) + "-" + std::to_string(i), gpus, world_.Chance(60))
              .Request();
      pod.mobility = world_.Chance(85) ? Mobility::kMoves : Mobility::kNoController;
      pod.checkpointed = kNow - std::chrono::minutes(world_.Between(0, 300));
      pod.deletion_cost = world_.Chance(20) ? 1 << 27 : 0;
      const auto placement = AnyPlace(node, pod);
      if (!placement) continue;
      ++total_;
      node.Put(std::make_shared<const PodRecord>(PodRecord{pod, *placement, PodState::kBound, {}}));
    }
    return node;
  }

  // Not where it would be best: on GPUs from the end as often as from the beginning.
  std::optional<Placement> AnyPlace(const Node& node, const PodRequest& pod) {
    auto placement = PlaceOnNode(node, pod);
    if (!placement || !world_.Chance(50)) return placement;
    Placement other = *placement;
    const int last = static_cast<int>(node.spec().gpus.size()) - 1;
    for (DeviceGrant& grant : other.grants) grant.gpu = last - grant.gpu;
    std::ranges::sort(other.grants, {}, &DeviceGrant::gpu);
    return node.CanTake(other) ? other : placement;
  }

  static constexpr const char* kTaint = "nvidia.com/gpu";

  RandomWorld world_;
  const bool selective_;
  bool shares_ = false, models_ = false, cpus_ = false;
  int total_ = 0;
  RoomAsk ask_;
};

struct Worth {
  int reached = 0, with_moves = 0, tight = 0, impossible = 0;
};

Worth CompareWithEveryPlan(Kind kind, std::uint64_t cases) {
  Worth worth;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SmallCluster cluster(seed, kind);
    const RoomPlan plan = MakeRoom(cluster.ask());
    EveryPlan every(cluster.ask());
    const auto least_cost = every.Least(Prices::kCosts);
    EXPECT_EQ(plan.found, least_cost.has_value());
    EXPECT_TRUE(plan.optimal);
    if (testing::Test::HasFailure()) return worth;
    if (!plan.found) {
      ++worth.impossible;
      continue;
    }
    EXPECT_EQ(plan.cost, *least_cost);
    EXPECT_LE(plan.least_cost.price, *least_cost);
    const auto least_moves = every.Least(Prices::kMoves);
    EXPECT_LE(plan.least_moves.price, *least_moves);
    EXPECT_EQ(CarriedOut(cluster.ask(), plan), "");
    if (testing::Test::HasFailure()) return worth;
    ++worth.reached;
    worth.with_moves += plan.moves.empty() ? 0 : 1;
    worth.tight += !plan.moves.empty() && plan.least_cost.price == plan.cost ? 1 : 0;
  }
  testing::Test::RecordProperty("reached", worth.reached);
  testing::Test::RecordProperty("with_moves", worth.with_moves);
  testing::Test::RecordProperty("tight", worth.tight);
  return worth;
}

TEST(MakeRoomProperty, FindsTheCheapestOfAllPlansAndNoBoundIsAboveIt) {
  const Worth worth = CompareWithEveryPlan(Kind::kOpen, 5000);
  // The cases have to be worth something.
  EXPECT_GT(worth.with_moves, 500);
  EXPECT_GT(worth.impossible, 100);
}

// BERTH_ROOM_CASES: more of them.
TEST(MakeRoomProperty, MovesEachPodOnlyToNodesThatItMayUseAndFindsAllSuchPlans) {
  const char* const wanted = std::getenv("BERTH_ROOM_CASES");
  const std::uint64_t cases = wanted == nullptr ? 1500 : std::stoull(wanted);
  const Worth worth = CompareWithEveryPlan(Kind::kSelective, cases);
  EXPECT_GT(worth.with_moves * 20, static_cast<int>(cases));
  EXPECT_GT(worth.impossible * 20, static_cast<int>(cases));
}

}  // namespace
}  // namespace berth::test::make_room_property_test
