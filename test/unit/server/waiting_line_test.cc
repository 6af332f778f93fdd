// SPDX-License-Identifier: Apache-2.0
#include "server/extender/inquiry.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/state/waiting_pods.h"
#include "test/support/builders.h"

namespace berth::test::waiting_line_test {
namespace {

WaitingPod Since(const APod& pod, int second) {
  return {.pod = std::make_shared<const PodRequest>(pod.Request()),
          .created = WallTime(std::chrono::seconds(second))};
}

std::string NamesOf(const WaitingLine& line) {
  std::string names;
  for (const PodRequest& pod : line.pods) names += pod.id.name;
  return names;
}

TEST(WaitingLine, IsByPriorityAndThenByAge) {
  WaitingPods waiting;
  waiting.Put(Since(APod("a").Whole(1), 30));
  waiting.Put(Since(APod("b").Whole(1), 10));
  waiting.Put(Since(APod("c").Whole(1).Priority(5), 40));
  waiting.Put({.pod = std::make_shared<const PodRequest>(APod("d").Whole(1).Request())});
  EXPECT_EQ(NamesOf(LineOf(waiting.Everybody(), Snapshot(), nullptr, 100)), "cbad");
}

TEST(WaitingLine, HasNeitherGatedPodsNorThoseWithAPlace) {
  WaitingPods waiting;
  WaitingPod gated = Since(APod("a").Whole(1), 1);
  gated.held_back = "scheduling gates hold it back";
  waiting.Put(gated);
  waiting.Put(Since(APod("b").Whole(1), 1));
  waiting.Put(Since(APod("c").Whole(1), 1));
  waiting.Put(Since(APod("d").Whole(1), 1));
  const auto snapshot = SnapshotOf({ANode("n1")
                                        .Gpus(2)
                                        .HoldingReserved(APod("b").Whole(1), {0})
                                        .HoldingPlanned(APod("d").Whole(1), {1})});
  const WaitingLine line = LineOf(waiting.Everybody(), *snapshot, nullptr, 100);
  EXPECT_EQ(NamesOf(line), "c");
  EXPECT_EQ(line.gated, 1u);
  ASSERT_EQ(line.planned.size(), 1u) << "its bind is still to come";
  EXPECT_EQ(line.planned.front().id.name, "d");
}

TEST(WaitingLine, HasAPodThatIsBoundMeanwhileNeitherTwiceNorNowhere) {
  WaitingPods waiting;
  waiting.Put(Since(APod("a").Whole(1), 1));
  const std::vector<WaitingPod> listed = waiting.Everybody();
  waiting.Remove("uid-a");
  const auto before = SnapshotOf({ANode("n1").Gpus(1)});
  const auto after = SnapshotOf({ANode("n1").Gpus(1).Holding(APod("a").Whole(1), {0})});
  EXPECT_EQ(NamesOf(LineOf(listed, *before, nullptr, 100)), "a");
  EXPECT_EQ(NamesOf(LineOf(listed, *after, nullptr, 100)), "");
  EXPECT_EQ(StillWaiting(listed, *before).size(), 1u);
  EXPECT_TRUE(StillWaiting(listed, *after).empty());
}

TEST(WaitingLine, EndsWhereItIsLongEnough) {
  WaitingPods waiting;
  for (const char* name : {"a", "b", "c"}) waiting.Put(Since(APod(name).Whole(1), 1));
  const WaitingLine line = LineOf(waiting.Everybody(), Snapshot(), nullptr, 2);
  EXPECT_EQ(NamesOf(line), "ab");
  EXPECT_EQ(line.beyond, 1u);
}

TEST(WaitingLine, KnowsWhatAGangNeedsNow) {
  WaitingPods waiting;
  PodRequest pod = APod("a").Whole(1).Gang("coscheduling:default/g").Request();
  pod.gang.object = Gang::Object::kMissing;
  waiting.Put({.pod = std::make_shared<const PodRequest>(pod)});
  PodGroups groups;
  groups.Of("coscheduling").Put({.namespace_name = "default", .name = "g", .min_members = 3});
  EXPECT_EQ(LineOf(waiting.Everybody(), Snapshot(), &groups, 1).pods.at(0).gang.minimum, 3);
}

}  // namespace
}  // namespace berth::test::waiting_line_test
