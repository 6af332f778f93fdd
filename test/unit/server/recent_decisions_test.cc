// SPDX-License-Identifier: Apache-2.0
#include "server/extender/waiting/pending_pods.h"

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/builders.h"
#include "test/support/fake_scorers.h"

namespace berth::test::recent_decisions_test {
namespace {

constexpr std::size_t kCapacity = RecentDecisions::kCapacity;

// The snapshot after one more core is taken on its first node: the same nodes.
std::shared_ptr<const Snapshot> Descendant(const Snapshot& snapshot) {
  Node node = snapshot.node(0);
  const APod pod = APod("x" + std::to_string(node.pods().size())).Cpu(1);
  node.Put(std::make_shared<const PodRecord>(
      PodRecord{pod.Request(), pod.On(node.spec().name), PodState::kBound}));
  return std::make_shared<const Snapshot>(
      snapshot.With(0, std::make_shared<const Node>(std::move(node))));
}

TEST(RecentDecisions, TheLastOnesAreKeptOldestFirst) {
  RecentDecisions recent;
  EXPECT_TRUE(recent.All().empty());
  std::vector<std::shared_ptr<const Snapshot>> snapshots = {SnapshotOf({ANode("a"), ANode("b")})};
  for (std::size_t i = 0; i < kCapacity + 10; ++i) {
    snapshots.push_back(Descendant(*snapshots.back()));
    const std::vector<NodeIndex> candidates = {1, 0};
    recent.Remember(snapshots.back(), APod("p").CpuMilli(static_cast<int>(i)).Shape(), candidates);
  }
  const RecentDecisions::List all = recent.All();
  ASSERT_EQ(all.size(), kCapacity);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]->shape.cpu_milli, static_cast<int>(i + 10));
    EXPECT_EQ(all[i]->snapshot, snapshots[i + 11]);
    EXPECT_EQ(all[i]->candidates, (std::vector<NodeIndex>{1, 0}));
  }
  EXPECT_EQ(snapshots[10].use_count(), 1);  // what was pushed out is let go
}

TEST(RecentDecisions, AnotherSetOfNodesPushesOutWhatWasThereBefore) {
  RecentDecisions recent;
  const auto before = SnapshotOf({ANode("a")});
  const std::vector<NodeIndex> candidates = {0};
  for (int i = 0; i < 3; ++i) recent.Remember(before, APod("p").Shape(), candidates);
  EXPECT_EQ(recent.All().size(), 3u);
  const auto after = SnapshotOf({ANode("a"), ANode("b")});
  recent.Remember(after, APod("p").Shape(), candidates);
  recent.Remember(Descendant(*after), APod("p").Shape(), candidates);
  const RecentDecisions::List all = recent.All();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]->snapshot, after);
  EXPECT_EQ(before.use_count(), 1);
}

TEST(RecentDecisions, ManyThreadsRememberWhileOneLooks) {
  RecentDecisions recent;
  const auto snapshot = SnapshotOf({ANode("a"), ANode("b")});
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&recent, snapshot] {
      const std::vector<NodeIndex> candidates = {0, 1};
      auto newest = snapshot;
      for (int i = 0; i < 200; ++i) {
        newest = Descendant(*newest);
        recent.Remember(newest, APod("p").Shape(), candidates);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    for (const auto& decision : recent.All()) EXPECT_EQ(decision->candidates.size(), 2u);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(recent.All().size(), kCapacity);
}

class Comparing : public testing::Test {
 protected:
  void Remember(const APod& pod, const std::vector<NodeIndex>& candidates) {
    recent_.Remember(snapshot_, pod.Shape(), candidates);
  }
  [[nodiscard]] DecisionChanges Compare(Engine& before, Engine& after) const {
    return CompareDecisions(recent_.All(), before, after);
  }

  // By cores b is the best; a and c are equal.
  const std::shared_ptr<const Snapshot> snapshot_ =
      SnapshotOf({ANode("a").Cpu(8).Gpus(1), ANode("b").Cpu(64), ANode("c").Cpu(8)});
  RecentDecisions recent_;
  Engine most_cores_{ProfileOf(CoresOf)};
  Engine fewest_cores_{
      ProfileOf([](const Node& node, const DeviceChoice& c) { return 100 - CoresOf(node, c); })};
};

TEST_F(Comparing, CountsTheDecisionsWhoseBestNodeIsAnotherOne) {
  Remember(APod("p"), {0, 1, 2});           // b, then a
  Remember(APod("p"), {2, 0});              // equal: a is first by name in both
  Remember(APod("p").Whole(1), {0, 1, 2});  // a alone fits
  Remember(APod("p").Cpu(100), {0, 1, 2});  // nothing fits
  const DecisionChanges changes = Compare(most_cores_, fewest_cores_);
  EXPECT_EQ(changes.compared, 4u);
  EXPECT_EQ(changes.changed, 1u);
  EXPECT_DOUBLE_EQ(changes.ratio(), 0.25);
}

TEST_F(Comparing, AmongEqualsTheFirstByNameIsTheBest) {
  Remember(APod("p"), {0, 2});
  Remember(APod("p"), {2, 0});
  Engine first_by_name(ProfileOf(CoresOf, DeviceRule::kTightest, TieRule::kFirst));
  EXPECT_EQ(Compare(most_cores_, first_by_name).changed, 0u);
}

TEST_F(Comparing, OnlyTheCandidatesCount) {
  Remember(APod("p"), {1, 2});  // b, then c
  Remember(APod("p"), {1});
  EXPECT_EQ(Compare(most_cores_, fewest_cores_).changed, 1u);
}

TEST_F(Comparing, ComparingAProfileWithItselfIsNeutral) {
  EXPECT_EQ(Compare(most_cores_, fewest_cores_).ratio(), 0);
  Remember(APod("p"), {0, 1, 2});
  Engine same(ProfileOf(CoresOf));
  EXPECT_EQ(Compare(most_cores_, same).changed, 0u);
}

TEST_F(Comparing, IsTheSameHoweverOftenItIsDone) {
  for (int i = 0; i < 10; ++i) {
    Remember(APod("p").Cpu(i), {0, 1, 2});
    Remember(APod("p").Cpu(i), {0, 2});
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Compare(most_cores_, fewest_cores_).changed, 9u);
}

}  // namespace
}  // namespace berth::test::recent_decisions_test
