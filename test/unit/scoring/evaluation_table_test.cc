// SPDX-License-Identifier: Apache-2.0
#include "scoring/engine/evaluation_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "scoring/registry.h"
#include "test/support/builders.h"
#include "test/support/fake_scorers.h"

namespace berth::test::evaluation_table_test {
namespace {

std::vector<Profile::Weighted> Scorers(Profile::Weighted a, Profile::Weighted b) {
  std::vector<Profile::Weighted> scorers;
  scorers.push_back(std::move(a));
  scorers.push_back(std::move(b));
  return scorers;
}

std::vector<NodeIndex> AllOf(const Snapshot& snapshot) {
  std::vector<NodeIndex> indices(snapshot.size());
  std::iota(indices.begin(), indices.end(), NodeIndex{0});
  return indices;
}

TEST(EvaluationTable, TotalsTheWeightedMeanInHundredths) {
  const auto snapshot = SnapshotOf({ANode("a").Cpu(50), ANode("b").Cpu(0), ANode("c").Cpu(100)});
  const auto hundred = [](const Node&, const DeviceChoice&) { return 100; };
  const Profile profile = ProfileOf(Scorers(Weighted(CoresOf, 1), Weighted(hundred, 3)));
  EvaluationTable table(profile, APod("p").Shape());
  table.Refresh(snapshot);
  EXPECT_EQ(table.Totals(AllOf(*snapshot)), (std::vector<int>{8750, 7500, 10'000}));
  const std::vector<NodeIndex> some = {2, 0};
  EXPECT_EQ(table.Totals(some), (std::vector<int>{10'000, 8750})) << "in the order asked";
  EXPECT_TRUE(table.Totals({}).empty());
}

TEST(EvaluationTable, PutsPartsOfGpusLastForPodsThatDoNotSayWhatTheyNeed) {
  const std::vector<ANode> nodes = {ANode("a").Cpu(90).Places(4), ANode("b").Cpu(0).Gpus(1),
                                    ANode("c").Cpu(70).Gpus(1)};
  const Profile profile = ProfileOf(Scorers(Weighted(CoresOf, 1), Weighted(CoresOf, 1)));
  const auto totals = [&](const APod& pod, const std::vector<NodeIndex>& candidates) {
    EvaluationTable table(profile, pod.Shape());
    table.Refresh(SnapshotOf(nodes));
    return table.Totals(candidates);
  };
  const APod plain = APod("p").Whole(1), content = APod("p").Whole(1).Isolated(Isolation::kNone);
  EXPECT_EQ(totals(plain, {0, 1, 2}), (std::vector<int>{0, 1, 7000}));
  EXPECT_EQ(totals(plain, {0}), std::vector<int>{9000}) << "nothing to compare it with";
  EXPECT_EQ(totals(plain, {1, 2}), (std::vector<int>{0, 7000}));
  EXPECT_EQ(totals(content, {0, 1, 2}), (std::vector<int>{9000, 0, 7000}));
}

TEST(EvaluationTable, SeesNodesBecomeShared) {
  const Profile profile = ProfileOf(Scorers(Weighted(CoresOf, 1), Weighted(CoresOf, 1)));
  EvaluationTable table(profile, APod("p").Whole(1).Shape());
  const ANode other = ANode("b").Cpu(10).Gpus(1);
  const auto with = [&](const ANode& node) {
    table.Refresh(SnapshotOf({node, other}));
    return table.Totals(std::vector<NodeIndex>{0, 1});
  };
  EXPECT_EQ(with(ANode("a").Cpu(60).Gpus(1)), (std::vector<int>{6000, 1000}));
  EXPECT_EQ(with(ANode("a").Cpu(60).Places(2)), (std::vector<int>{0, 1000}));
  EXPECT_EQ(with(ANode("a").Cpu(60).Gpus(1)), (std::vector<int>{6000, 1000}));
}

TEST(EvaluationTable, KeepsTheLargestWeightsInRange) {
  const auto snapshot = SnapshotOf({ANode("a").Cpu(100)});
  const Profile profile =
      ProfileOf(Scorers(Weighted(CoresOf, kMaxScorerWeight), Weighted(CoresOf, kMaxScorerWeight)));
  EvaluationTable table(profile, APod("p").Shape());
  table.Refresh(snapshot);
  EXPECT_EQ(table.Totals(AllOf(*snapshot)), std::vector<int>{10'000});
}

TEST(EvaluationTable, TotalsNothingWithoutScorers) {
  const auto snapshot = SnapshotOf({ANode("a"), ANode("b")});
  const Profile profile = ProfileOf(std::vector<Profile::Weighted>{});
  EvaluationTable table(profile, APod("p").Shape());
  table.Refresh(snapshot);
  EXPECT_EQ(table.Totals(AllOf(*snapshot)), (std::vector<int>{0, 0}));
}

TEST(EvaluationTable, SpreadsAMinMaxScorerOverTheCandidates) {
  const auto negative = [](const Node& node, const DeviceChoice& choice) {
    return -CoresOf(node, choice);
  };
  std::vector<Profile::Weighted> scorers;
  scorers.push_back(Weighted(negative, 1, Normalization::kMinMax));
  const Profile profile = ProfileOf(std::move(scorers));
  const auto snapshot = SnapshotOf(
      {ANode("a").Cpu(400), ANode("b").Cpu(200), ANode("c").Cpu(100), ANode("d").Cpu(100)});
  EvaluationTable table(profile, APod("p").Shape());
  table.Refresh(snapshot);
  EXPECT_EQ(table.Totals(AllOf(*snapshot)), (std::vector<int>{0, 6600, 10'000, 10'000}))
      << "200 / 300 is truncated to 66";
  const std::vector<NodeIndex> two = {0, 1}, equal = {2, 3}, one = {0};
  EXPECT_EQ(table.Totals(two), (std::vector<int>{0, 10'000}));
  EXPECT_EQ(table.Totals(equal), (std::vector<int>{0, 0})) << "0 where all are equal";
  EXPECT_EQ(table.Totals(one), std::vector<int>{0});
}

TEST(EvaluationTable, RemembersTheReasonAndTheChoiceOfEveryNode) {
  const auto snapshot = SnapshotOf({ANode("a").Gpus(2).Holding(APod("x").Share(600), {1}),
                                    ANode("b").Gpus(1).NotReady(),
                                    ANode("c").Gpus(1).Holding(APod("y").Whole(1), {0})});
  const Profile profile = ProfileOf(CoresOf);
  EvaluationTable table(profile, APod("p").Share(300).Shape());
  table.Refresh(snapshot);
  EXPECT_EQ(table.Fitting(), std::vector<NodeIndex>{0});
  EXPECT_EQ(table.reason(0), Reason::kFits);
  EXPECT_EQ(table.reason(1), Reason::kNodeNotReady);
  EXPECT_EQ(table.reason(2), Reason::kShareBusy);
  EXPECT_EQ(table.choice(0), (DeviceChoice{0b10, 300, 4800}));
}

TEST(EvaluationTable, OffersEveryGpuToTheScorersAndKeepsTheLowestOfTheBest) {
  const auto snapshot = SnapshotOf({ANode("a")
                                        .Gpus(4)
                                        .Holding(APod("x").Share(100), {0})
                                        .Holding(APod("y").Share(200), {1})
                                        .Holding(APod("z").Share(300), {2})});
  const auto odd_gpus = [](const Node&, const DeviceChoice& choice) {
    return (choice.gpus & 0b1010) != 0 ? 80 : 20;
  };
  const Profile profile = ProfileOf(odd_gpus, DeviceRule::kBestScore);
  EvaluationTable table(profile, APod("p").Share(300).Shape());
  table.Refresh(snapshot);
  EXPECT_EQ(table.choice(0).gpus, 0b10U);
  EXPECT_EQ(table.Totals(AllOf(*snapshot)), std::vector<int>{8000}) << "of the GPU that it keeps";
}

TEST(EvaluationTable, EvaluatesOnlyNodesThatChanged) {
  std::vector<std::string> evaluated;
  const auto record = [&evaluated](const Node& node, const DeviceChoice&) {
    evaluated.push_back(node.spec().name);
    return 1;
  };
  const Profile profile = ProfileOf(record);
  EvaluationTable table(profile, APod("p").Shape());
  const auto first = SnapshotOf({ANode("a").Cpu(2), ANode("b").Cpu(3), ANode("c").Cpu(4)});
  table.Refresh(first);
  EXPECT_EQ(evaluated, (std::vector<std::string>{"a", "b", "c"}));
  evaluated.clear();
  table.Refresh(first);
  EXPECT_TRUE(evaluated.empty());
  const auto second = std::make_shared<const Snapshot>(
      first->With(1, std::make_shared<const Node>(ANode("b").Cpu(1).Build())));
  table.Refresh(second);
  EXPECT_EQ(evaluated, std::vector<std::string>{"b"});
  evaluated.clear();
  table.Refresh(first);
  EXPECT_EQ(evaluated, std::vector<std::string>{"b"}) << "back to the older snapshot";
}

TEST(EvaluationTable, EvaluatesOneNodeOfThoseThatAreAlike) {
  std::vector<std::string> evaluated;
  const auto record = [&evaluated](const Node& node, const DeviceChoice&) {
    evaluated.push_back(node.spec().name);
    return CoresOf(node, {});
  };
  const Profile profile = ProfileOf(record);
  std::vector<ANode> nodes = {ANode("a").Cpu(2),
                              ANode("b").Cpu(2).Tainted("x"),
                              ANode("c").Cpu(3),
                              ANode("d").Cpu(2),
                              ANode("e").Cpu(2).NotReady(),
                              ANode("f").Cpu(3).Holding(APod("o").Cpu(1), {})};
  for (int i = 10; i < 30; ++i) nodes.push_back(ANode("g" + std::to_string(i)).Cpu(3));
  const auto snapshot = SnapshotOf(nodes);
  EvaluationTable table(profile, APod("p").Shape());
  table.Refresh(snapshot);
  EXPECT_EQ(evaluated, (std::vector<std::string>{"a", "c", "f"}));
  EXPECT_EQ(table.Totals(std::vector<NodeIndex>{0, 1, 2, 3, 5, 25}),
            (std::vector<int>{200, 200, 300, 200, 300, 300}));
  EXPECT_EQ(table.reason(4), Reason::kNodeNotReady);
}

TEST(EvaluationTable, EvaluatesEachNodeWherePodsOnItMatter) {
  std::vector<std::string> evaluated;
  const auto record = [&evaluated](const Node& node, const DeviceChoice&) {
    evaluated.push_back(node.spec().name);
    return 1;
  };
  const Profile profile = ProfileOf(record);
  RequestShape shape = APod("p").Shape();
  shape.spread = Spread::kNode;
  shape.workload = "w";
  EvaluationTable table(profile, shape);
  std::vector<ANode> nodes;
  for (int i = 10; i < 30; ++i) nodes.push_back(ANode("n" + std::to_string(i)));
  table.Refresh(SnapshotOf(nodes));
  EXPECT_EQ(evaluated.size(), nodes.size());
}

TEST(EvaluationTable, ForgetsWhatNoNodeHasAnyMore) {
  const Profile profile = ProfileOf(CoresOf);
  EvaluationTable table(profile, APod("p").Shape());
  const auto at = [](int i) { return ANode("a").Cpu(i % 90); };
  auto snapshot = SnapshotOf({at(0), ANode("b").Cpu(7)});
  for (int i = 0; i < 200; ++i) {
    table.Refresh(snapshot);
    ASSERT_EQ(table.Totals(AllOf(*snapshot)), (std::vector<int>{i % 90 * 100, 700}));
    ASSERT_LE(table.outcomes(), 80u);
    snapshot = std::make_shared<const Snapshot>(
        snapshot->With(0, std::make_shared<const Node>(at(i + 1).Build())));
  }
}

// What a choice takes differs with the model and with how much of the GPU is free.
TEST(EvaluationTable, ForgetsWhatNoChoiceTakesAnyMore) {
  const RequestMix mix = {{APod("a").Share(300).Models({"A"}).Shape(), 0.3},
                          {APod("b").Share(300).Models({"B"}).Shape(), 0.3},
                          {APod("c").Share(700).Shape(), 0.4}};
  const Profile profile = BuildProfile(*FindBuiltinProfile("expected-waste"), mix, {}, {}).value();
  EvaluationTable table(profile, APod("p").Share(10).Shape());
  const auto at = [](int i) {
    return ANode("n")
        .Gpus(1)
        .Model(std::string(1, static_cast<char>('A' + i / 90)))
        .Holding(APod("x").Share(10 * (i % 90 + 1)), {0});
  };
  auto snapshot = SnapshotOf({at(0)});
  std::size_t most = 0;
  for (int i = 1; i < 270; ++i) {
    table.Refresh(snapshot);
    most = std::max(most, table.bundles());
    EXPECT_EQ(table.choice(0, std::vector<double>(200, 1.0)).gpus, 1U);
    snapshot = std::make_shared<const Snapshot>(
        snapshot->With(0, std::make_shared<const Node>(at(i).Build())));
  }
  EXPECT_GT(most, 30U) << "they differ";
  EXPECT_LE(most, 80U);
}

// Computes a state for every node it scores.
class CostlyScorer final : public Scorer {
 public:
  void Score(const Node& node, const RequestShape&, std::span<const DeviceChoice> choices,
             std::span<int> scores) const override {
    ++computed_;
    for (std::size_t i = 0; i < choices.size(); ++i) scores[i] = CoresOf(node, choices[i]);
  }
  [[nodiscard]] std::uint64_t computed() const override { return computed_; }

 private:
  mutable std::uint64_t computed_ = 0;
};

TEST(EvaluationTable, ScoresABoundedNumberOfStatesPerRefresh) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 100; ++i) {
    nodes.push_back(ANode("n" + std::to_string(100 + i)).Cpu(50).MemoryGib(100 + i));
  }
  nodes[99].Cpu(100);
  std::vector<Profile::Weighted> scorers;
  scorers.push_back({std::make_unique<CostlyScorer>(), 1});
  const Profile profile = ProfileOf(std::move(scorers));
  const Scorer& scorer = *profile.scorers.front().scorer;
  EvaluationTable table(profile, APod("p").Shape());
  auto snapshot = SnapshotOf(nodes);
  table.Refresh(snapshot);
  EXPECT_EQ(scorer.computed(), EvaluationTable::kStatesPerRefresh);
  EXPECT_EQ(table.Fitting().size(), 100u) << "all are known to fit";
  std::vector<int> totals = table.Totals(AllOf(*snapshot));
  EXPECT_EQ(totals[39], 5000);
  EXPECT_EQ(totals[40], 0) << "not scored yet";
  const std::vector<NodeIndex> waiting = {98, 99};
  EXPECT_EQ(table.Totals(waiting), (std::vector<int>{5000, 0})) << "never nobody";
  table.Refresh(snapshot);
  EXPECT_EQ(table.Totals(AllOf(*snapshot))[40], 0) << "the same question, the same answer";
  for (int i = 0; i < 2; ++i) {
    snapshot = std::make_shared<const Snapshot>(
        snapshot->With(0, std::make_shared<const Node>(ANode("n100").Cpu(50 + i).Build())));
    table.Refresh(snapshot);
  }
  totals = table.Totals(AllOf(*snapshot));
  EXPECT_EQ(totals[0], 5100);
  EXPECT_EQ(totals[99], 10'000);
}

TEST(EvaluationTable, ScoresAllNodesOfASmallClusterAtOnce) {
  std::vector<ANode> nodes;
  for (int i = 0; i < 8; ++i) nodes.push_back(ANode("n" + std::to_string(i)).Cpu(10 + i));
  std::vector<Profile::Weighted> scorers;
  scorers.push_back({std::make_unique<CostlyScorer>(), 1});
  const Profile profile = ProfileOf(std::move(scorers));
  EvaluationTable table(profile, APod("p").Shape());
  const auto snapshot = SnapshotOf(nodes);
  table.Refresh(snapshot, {.states = 2, .nodes = 150});
  EXPECT_FALSE(table.waits());
  EXPECT_EQ(table.Totals(AllOf(*snapshot)).back(), 1700);
}

TEST(EvaluationTable, FollowsNodesThatComeAndGo) {
  const Profile profile = ProfileOf(CoresOf);
  EvaluationTable table(profile, APod("p").Shape());
  for (const auto& snapshot :
       {SnapshotOf({ANode("a").Cpu(10), ANode("b").Cpu(20)}),
        SnapshotOf({ANode("a").Cpu(10), ANode("aa").Cpu(30), ANode("b").Cpu(20)}),
        SnapshotOf({ANode("b").Cpu(20)}), SnapshotOf({}), SnapshotOf({ANode("c").Cpu(5)})}) {
    table.Refresh(snapshot);
    std::vector<int> want;
    for (NodeIndex i = 0; i < snapshot->size(); ++i) {
      want.push_back(CoresOf(snapshot->node(i), {}) * 100);
    }
    EXPECT_EQ(table.Totals(AllOf(*snapshot)), want);
    EXPECT_EQ(table.Fitting().size(), snapshot->size());
  }
}

TEST(EvaluationTableDeathTest, DoesNotAcceptAScoreOutOfRange) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const Profile profile = ProfileOf(CoresOf);
  EvaluationTable table(profile, APod("p").Shape());
  EXPECT_DEATH(table.Refresh(SnapshotOf({ANode("a").Cpu(101)})), "invariant broken");
}

}  // namespace
}  // namespace berth::test::evaluation_table_test
