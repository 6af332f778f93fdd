// SPDX-License-Identifier: Apache-2.0
#include "scoring/victims.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::lighter_victims_test {
namespace {

using Uids = std::vector<std::string>;

const WallTime kNow = WallTime(std::chrono::days(20'000));

// A pod of one GPU that has saved its work so many minutes ago.
APod Saved(const std::string& name, int minutes) {
  return APod(name).Whole(1).Checkpointed(kNow - std::chrono::minutes(minutes));
}

APod Preemptor() { return APod("p").Whole(1).Priority(100); }

// The proposed ones where they stay.
Uids Going(const ANode& node, const APod& pod, const Uids& proposed,
           const std::vector<PodDisruptionBudget>& budgets = {}) {
  const EvictionLimits limits{budgets, {}, kNow};
  const auto lighter = LighterVictims(node.Build(), pod.Request(), {proposed, 0}, limits);
  return lighter ? lighter->uids : proposed;
}

// "heavy" has 31 hours of work to lose, "light" none.
ANode Two(const APod& heavy = Saved("heavy", 1860), const APod& light = Saved("light", 0)) {
  return ANode("n").Gpus(2).Holding(heavy, {0}).Holding(light, {1});
}

const Uids kHeavy = {"uid-heavy"}, kLight = {"uid-light"};

TEST(LighterVictims, AreThoseThatHaveSavedTheirWork) {
  EXPECT_EQ(Going(Two(), Preemptor(), kHeavy), kLight);
  EXPECT_EQ(Going(Two(), Preemptor(), kLight), kLight);
  EXPECT_EQ(Going(Two(APod("heavy").Whole(1)), Preemptor(), kHeavy), kLight)
      << "who says nothing may lose all";
}

TEST(LighterVictims, AreFewerWhereFewerDo) {
  const ANode node = ANode("n")
                         .Gpus(4)
                         .Holding(Saved("a", 100), {0})
                         .Holding(Saved("b", 100), {1})
                         .Holding(Saved("c", 10).Whole(2), {2, 3});
  EXPECT_EQ(Going(node, Preemptor().Whole(2), {"uid-a", "uid-b"}), Uids{"uid-c"});
  EXPECT_EQ(Going(node, Preemptor().Whole(2), {"uid-c"}), Uids{"uid-c"})
      << "two in place of one would be more pods";
}

TEST(LighterVictims, AreNoMoreImportantOneForOne) {
  EXPECT_EQ(Going(Two(Saved("heavy", 1860), Saved("light", 0).Priority(1)), Preemptor(), kHeavy),
            kHeavy);
  EXPECT_EQ(Going(Two(Saved("heavy", 1860).Priority(1)), Preemptor(), kHeavy), kLight);
  EXPECT_EQ(Going(Two(Saved("heavy", 1860), Saved("light", 0).Priority(100)), Preemptor(), kHeavy),
            kHeavy);
}

TEST(LighterVictims, ExceedNoMoreBudgets) {
  const auto guarded = [](int allowed) {
    return std::vector<PodDisruptionBudget>{
        {"default", "b", LabelSelector{{"app", LabelOperator::kIn, {"web"}}}, allowed}};
  };
  const Labels web = {{"app", "web"}};
  const ANode light = Two(Saved("heavy", 1860), Saved("light", 0).Labelled(web));
  EXPECT_EQ(Going(light, Preemptor(), kHeavy, guarded(0)), kHeavy);
  EXPECT_EQ(Going(light, Preemptor(), kHeavy, guarded(1)), kLight);
  const ANode both = Two(Saved("heavy", 1860).Labelled(web), Saved("light", 0).Labelled(web));
  EXPECT_EQ(Going(both, Preemptor(), kHeavy, guarded(0)), kLight) << "either exceeds it";
  const auto none = guarded(0);
  const EvictionLimits limits{none, {}, kNow};
  const ANode heavy = Two(Saved("heavy", 1860).Labelled(web));
  EXPECT_EQ(LighterVictims(heavy.Build(), Preemptor().Request(), {kHeavy, 1}, limits),
            (VictimSet{kLight, 0}));
}

TEST(LighterVictims, LeaveEnoughOfEverything) {
  const ANode node = ANode("n")
                         .Cpu(10)
                         .Gpus(2)
                         .Holding(Saved("heavy", 1860).Cpu(6), {0})
                         .Holding(Saved("light", 0).Cpu(4), {1});
  EXPECT_EQ(Going(node, Preemptor().Cpu(4), kHeavy), kLight);
  EXPECT_EQ(Going(node, Preemptor().Cpu(5), kHeavy), kHeavy);
}

TEST(LighterVictims, AreSinglePodsWithGpusThatAreBound) {
  EXPECT_EQ(Going(Two(Saved("heavy", 1860), Saved("light", 0).Gang("ns/g")), Preemptor(), kHeavy),
            kHeavy)
      << "the rest of the gang would be of no use";
  EXPECT_EQ(Going(Two(Saved("heavy", 1860).Gang("ns/g")), Preemptor(), kHeavy), kLight);
  const ANode reserved =
      ANode("n").Gpus(2).Holding(Saved("heavy", 1860), {0}).HoldingReserved(Saved("light", 0), {1});
  EXPECT_EQ(Going(reserved, Preemptor(), kHeavy), kHeavy);
  const ANode cpu_is_short = ANode("n")
                                 .Cpu(8)
                                 .Gpus(2)
                                 .Holding(Saved("heavy", 1860).Cpu(4), {0})
                                 .Holding(APod("web").Cpu(4), {});
  EXPECT_EQ(Going(cpu_is_short, Preemptor().Cpu(4), kHeavy), kHeavy)
      << "what a pod without GPUs loses nobody knows";
}

// A pod that kube-scheduler has nominated to the node takes room that Berth does not see.
TEST(LighterVictims, StayWhereMoreIsShortThanBerthSees) {
  const ANode node = ANode("n")
                         .Gpus(3)
                         .Holding(Saved("a", 100), {0})
                         .Holding(Saved("b", 200), {1})
                         .Holding(Saved("c", 0), {2});
  EXPECT_EQ(Going(node, Preemptor(), {"uid-a", "uid-b"}), (Uids{"uid-a", "uid-b"}));
  const ANode idle = ANode("n").Gpus(2).Holding(Saved("heavy", 1860), {0});
  EXPECT_EQ(Going(idle, Preemptor(), kHeavy), kHeavy);
  EXPECT_EQ(Going(Two(), Preemptor(), {"uid-unheard-of"}), Uids{"uid-unheard-of"});
}

TEST(LighterVictims, StayForWhatKubeSchedulerAloneJudges) {
  const auto going = [](const OwnToScheduler& heavy, const OwnToScheduler& preemptor) {
    return Going(Two(Saved("heavy", 1860).LeftToScheduler(heavy)),
                 Preemptor().LeftToScheduler(preemptor), kHeavy);
  };
  for (bool OwnToScheduler::*const both :
       {&OwnToScheduler::host_ports, &OwnToScheduler::volumes, &OwnToScheduler::resources}) {
    OwnToScheduler has;
    has.*both = true;
    EXPECT_EQ(going(has, has), kHeavy) << "it may be what the pod waits for";
    EXPECT_EQ(going(has, {}), kLight);
    EXPECT_EQ(going({}, has), kLight);
  }
  EXPECT_EQ(going({.keeps_apart = true}, {}), kHeavy) << "perhaps from this pod";
  EXPECT_EQ(going({}, {.keeps_apart = true}), kHeavy);
  EXPECT_EQ(going({}, {.minds_others = true}), kHeavy);
  EXPECT_EQ(going({.minds_others = true}, {}), kLight) << "its own place is settled";
}

TEST(LighterVictims, AreOnlyLookedForWhereGpusAreCountedOneByOne) {
  EXPECT_EQ(Going(Two(), APod("p").Share(500).Priority(100), kHeavy), kHeavy);
  const ANode unknown =
      ANode("n").Gpus(2).Holding(Saved("heavy", 1860), {}).Holding(Saved("light", 0), {1});
  EXPECT_EQ(Going(unknown, Preemptor(), kHeavy), kHeavy) << "who has which is not known";
}

}  // namespace
}  // namespace berth::test::lighter_victims_test
