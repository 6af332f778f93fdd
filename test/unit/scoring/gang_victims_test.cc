// SPDX-License-Identifier: Apache-2.0
//
// kube-scheduler proposes single members of a gang as victims: others go in their place, or nobody.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "scoring/explain/preemption_outlook.h"
#include "scoring/judgement.h"
#include "scoring/victims.h"
#include "test/support/builders.h"

namespace berth::test::gang_victims_test {
namespace {

using Uids = std::vector<std::string>;

APod Member(const std::string& name, int minimum) {
  return APod(name).Whole(1).Gang("berth:default/g").GangMinimum(minimum);
}
APod Preemptor() { return APod("p").Whole(1).Priority(100); }

// So many members are on all nodes together.
EvictionLimits Limits(std::size_t members) {
  return {{}, [members](const GangId&) { return members; }};
}

// Two members of a gang, and a pod that is more important than they.
ANode Node3(int minimum) {
  return ANode("n")
      .Gpus(3)
      .Holding(Member("a", minimum), {0})
      .Holding(Member("b", minimum), {1})
      .Holding(APod("c").Whole(1).Priority(50), {2});
}

Uids Agreed(const ANode& node, const APod& pod, const Uids& proposed, const EvictionLimits& limits,
            bool breaks = false) {
  const auto agreed = AgreedVictims(*SnapshotOf({node}), pod.Request(), {}, 0, {proposed, 0},
                                    limits, nullptr, breaks);
  return agreed ? agreed->uids : Uids{"nobody"};
}

TEST(GangVictims, APartOfAGangIsWhatLeavesTooFewOfIt) {
  const Node node = Node3(3).Build();
  EXPECT_TRUE(BreaksGang(node, Uids{"uid-a"}, Limits(3)));
  EXPECT_FALSE(BreaksGang(node, Uids{"uid-a", "uid-b"}, Limits(2))) << "all of it";
  EXPECT_FALSE(BreaksGang(node, Uids{"uid-a"}, Limits(4))) << "one beyond the minimum";
  EXPECT_FALSE(BreaksGang(node, Uids{"uid-c", "uid-unknown"}, Limits(4)));
  EXPECT_FALSE(BreaksGang(Node3(1).Build(), Uids{"uid-a"}, Limits(3)))
      << "each of them may run alone";
}

TEST(GangVictims, OthersGoInPlaceOfAMemberWhoseGangStays) {
  EXPECT_EQ(Agreed(Node3(3), Preemptor(), {"uid-a"}, Limits(3)), Uids{"uid-c"});
  EXPECT_EQ(Agreed(Node3(3), Preemptor(), {"uid-a"}, Limits(3), true), Uids{"uid-a"});
}

TEST(GangVictims, TheNodeIsLeftOutWhereNoOthersWillDo) {
  EXPECT_EQ(Agreed(Node3(3), Preemptor().Whole(2), {"uid-a", "uid-b"}, Limits(3)), Uids{"nobody"});
  EXPECT_EQ(Agreed(Node3(3), Preemptor().Priority(10), {"uid-a"}, Limits(3)), Uids{"nobody"});
}

TEST(GangVictims, AWholeGangGoes) {
  EXPECT_EQ(Agreed(Node3(2), Preemptor().Whole(2), {"uid-a", "uid-b"}, Limits(2)),
            (Uids{"uid-a", "uid-b"}));
}

TEST(GangVictims, LighterOnesDoNotBreakAGangEither) {
  const WallTime now = SimClock().Wall();
  const ANode node = ANode("n")
                         .Gpus(3)
                         .Holding(Member("a", 2), {0})
                         .Holding(Member("b", 2).Checkpointed(now), {1})
                         .Holding(APod("c").Whole(1).Checkpointed(now), {2});
  EvictionLimits limits = Limits(2);
  limits.now = now;
  EXPECT_EQ(Agreed(node, Preemptor().Whole(2), {"uid-a", "uid-b"}, limits),
            (Uids{"uid-a", "uid-b"}));
}

TEST(GangVictims, WhatKubeSchedulerAloneJudgesIsNotGuessed) {
  ANode node = ANode("n").Gpus(2);
  node.Holding(Member("a", 3).LeftToScheduler({.keeps_apart = true}), {0});
  node.Holding(APod("c").Whole(1).Priority(50), {1});
  EXPECT_EQ(Agreed(node, Preemptor(), {"uid-a"}, Limits(3)), Uids{"nobody"});
}

TEST(GangVictims, NoEvictionIsAnnouncedThatWouldBreakAGang) {
  const ANode node = ANode("n").Gpus(1).Holding(Member("a", 3), {0});
  const auto snapshot = SnapshotOf({node});
  const PodRequest pod = Preemptor().Request();
  EvictionLimits limits = Limits(3);
  const PreemptionOutlook outlook = OutlookOf({*snapshot, pod, {}, limits});
  EXPECT_FALSE(outlook.helps);
  EXPECT_EQ(outlook.text,
            "evicting pods of lower priority would leave a part of a gang on every node where it "
            "would do; gangs.mayBreak is false");
  limits.gangs_may_break = true;
  EXPECT_EQ(OutlookOf({*snapshot, pod, {}, limits}).victims, Uids{"default/a"});
}

}  // namespace
}  // namespace berth::test::gang_victims_test
