// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "scoring/filters/device_fit.h"
#include "scoring/reason.h"
#include "scoring/registry.h"
#include "test/support/builders.h"

namespace berth::test::filters_test {
namespace {

struct Case {
  std::string description;
  ANode node;
  APod pod;
  Reason want;
};

void ExpectReasons(Reason (*check)(const Node&, const RequestShape&),
                   const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Reason reason = check(c.node.Build(), c.pod.Shape());
    EXPECT_EQ(reason, c.want) << c.description << ": got " << CodeOf(reason) << ", want "
                              << CodeOf(c.want);
  }
}

TEST(CheckHealth, RefusesANodeThatIsNotReady) {
  ExpectReasons(CheckHealth,
                {{"ready", ANode("n"), APod("p"), Reason::kFits},
                 {"not ready", ANode("n").NotReady(), APod("p"), Reason::kNodeNotReady}});
}

TEST(CheckModel, ComparesTheModelsOfAPodThatWantsGpus) {
  const ANode t4 = ANode("n").Gpus(1).Model("T4");
  ExpectReasons(CheckModel,
                {{"any model", t4, APod("p").Whole(1), Reason::kFits},
                 {"this model", t4, APod("p").Whole(1).Models({"T4"}), Reason::kFits},
                 {"one of these", t4, APod("p").Share(1).Models({"A100", "T4"}), Reason::kFits},
                 {"another model", t4, APod("p").Whole(1).Models({"A100"}), Reason::kModelMismatch},
                 {"no GPU wanted", t4, APod("p").Models({"A100"}), Reason::kFits},
                 {"no GPU there", ANode("n"), APod("p").Whole(1).Models({"A100"}), Reason::kNoGpu},
                 {"model not published", ANode("n").Gpus(1), APod("p").Whole(1).Models({"A100"}),
                  Reason::kModelMismatch}});
}

TEST(CheckModel, WantsAsManyOfTheGpusThatAPodNames) {
  const ANode two = ANode("n").Gpus(2).Named();
  ExpectReasons(
      CheckModel,
      {{"this one", two, APod("p").Whole(1).OnGpus({"GPU-1"}), Reason::kFits},
       {"a share of it", two, APod("p").Share(1).OnGpus({"GPU-1"}), Reason::kFits},
       {"of another node", two, APod("p").Whole(1).OnGpus({"GPU-x"}), Reason::kGpuMismatch},
       {"too few", two, APod("p").Whole(2).OnGpus({"GPU-1", "GPU-x"}), Reason::kGpuMismatch},
       {"shares of too few", two, APod("p").Shares(2, 1).NotOnGpus({"GPU-1"}),
        Reason::kGpuMismatch},
       {"refused and accepted", two, APod("p").Share(1).OnGpus({"GPU-1"}).NotOnGpus({"GPU-1"}),
        Reason::kGpuMismatch},
       {"UUIDs not known", ANode("n").Gpus(2), APod("p").Share(1).NotOnGpus({"GPU-1"}),
        Reason::kGpuMismatch},
       {"the plugin picks", ANode("n").Gpus(2).Named(""), APod("p").Whole(1).OnGpus({"GPU-1"}),
        Reason::kGpuMismatch},
       {"places", ANode("n").Places(4), APod("p").Whole(1).OnGpus({"GPU-1"}), Reason::kGpuMismatch},
       {"no GPU there", ANode("n"), APod("p").Whole(1).OnGpus({"GPU-1"}), Reason::kFits}});
}

TEST(CheckFit, WaitsForTheGpusThatAPodNames) {
  const ANode two = ANode("n").Gpus(3).Named().Unhealthy(2).Holding(APod("a").Whole(1), {1});
  ExpectReasons(
      CheckFit,
      {{"the idle one", two, APod("p").Whole(1).OnGpus({"GPU-0"}), Reason::kFits},
       {"the other one", two, APod("p").Whole(1).OnGpus({"GPU-1"}), Reason::kGpusBusy},
       {"a share of it", two, APod("p").Share(1).OnGpus({"GPU-1"}), Reason::kShareBusy},
       {"a sick one", two, APod("p").Whole(1).OnGpus({"GPU-2"}), Reason::kTooFewGpus},
       {"a share of that", two, APod("p").Share(1).OnGpus({"GPU-2"}), Reason::kShareNeverFits}});
}

TEST(CheckFit, CountsTheGpusOfSharesOfSeveral) {
  const ANode three = ANode("n")
                          .Gpus(3, 16'000)
                          .Holding(APod("a").Share(600, 4000), {0})
                          .Holding(APod("b").Share(100, 15'000), {1});
  ExpectReasons(CheckFit,
                {{"compute of two", three, APod("p").Shares(2, 900, 1000), Reason::kFits},
                 {"of three", three, APod("p").Shares(3, 900, 1000), Reason::kShareBusy},
                 {"memory of two", three, APod("p").Shares(2, 0, 6000), Reason::kFits},
                 {"of three", three, APod("p").Shares(3, 0, 6000), Reason::kShareBusy},
                 {"too many", three, APod("p").Shares(4, 1), Reason::kTooFewGpus},
                 {"too large", three, APod("p").Shares(2, 0, 20'000), Reason::kShareNeverFits}});
}

TEST(CheckFit, CountsWholeGpus) {
  const ANode four = ANode("n").Gpus(4).Unhealthy(3).Holding(APod("a").Share(1), {0});
  ExpectReasons(CheckFit,
                {{"two are idle", four, APod("p").Whole(2), Reason::kFits},
                 {"three are healthy", four, APod("p").Whole(3), Reason::kGpusBusy},
                 {"four are not", four, APod("p").Whole(4), Reason::kTooFewGpus},
                 {"none there", ANode("n"), APod("p").Whole(1), Reason::kNoGpu},
                 {"all out of order", ANode("n").Gpus(1).Unhealthy(0), APod("p").Whole(1),
                  Reason::kNoGpuOffered},
                 {"only memory taken", ANode("n").Gpus(1).Holding(APod("a").ShareByMemory(1), {0}),
                  APod("p").Whole(1), Reason::kGpusBusy}});
}

TEST(CheckFit, MeasuresShares) {
  const ANode used = ANode("n")
                         .Gpus(2, 16'000)
                         .Holding(APod("a").Share(600, 4000), {0})
                         .Holding(APod("b").Share(100, 15'000), {1});
  ExpectReasons(
      CheckFit,
      {{"the second has the compute", used, APod("p").Share(900, 1000), Reason::kFits},
       {"neither has it", used, APod("p").Share(901, 1), Reason::kShareBusy},
       {"the first has the memory", used, APod("p").Share(400, 12'000), Reason::kFits},
       {"neither has both", used, APod("p").Share(500, 2000), Reason::kShareBusy},
       {"by memory", used, APod("p").ShareByMemory(6000), Reason::kFits},
       {"by memory: its compute is short", used, APod("p").ShareByMemory(6500), Reason::kShareBusy},
       {"larger than any", used, APod("p").ShareByMemory(16'001), Reason::kShareNeverFits},
       {"all out of order", ANode("n").Gpus(1).Unhealthy(0), APod("p").Share(1),
        Reason::kNoGpuOffered},
       {"memory not published", ANode("n").Gpus(1, 0), APod("p").ShareByMemory(1),
        Reason::kGpuMemoryUnknown},
       {"memory of one published, too small", ANode("n").Gpus(2, 0).GpuMemory(1, 100),
        APod("p").ShareByMemory(101), Reason::kShareNeverFits},
       {"memory not published, not asked", ANode("n").Gpus(1, 0), APod("p").Share(1000),
        Reason::kFits},
       {"no GPU there", ANode("n"), APod("p").Share(1), Reason::kNoGpu}});
}

TEST(CheckFit, MeasuresCpuAndMemory) {
  const ANode node = ANode("n").Cpu(8).MemoryGib(16).Holding(APod("a").Cpu(6).MemoryGib(10));
  const ANode full = ANode("n").Cpu(1).MemoryGib(1).Holding(APod("a").Cpu(2).MemoryGib(2));
  ExpectReasons(
      CheckFit,
      {{"to the last bit", node, APod("p").Cpu(2).MemoryGib(6), Reason::kFits},
       {"CPU taken", node, APod("p").CpuMilli(2001), Reason::kCpuShort},
       {"CPU never there", node, APod("p").CpuMilli(8001), Reason::kTooFewCpus},
       {"memory taken", node, APod("p").MemoryGib(7), Reason::kMemoryShort},
       {"memory never there", node, APod("p").MemoryGib(17), Reason::kTooLittleMemory},
       {"overcommitted, nothing asked", full, APod("p"), Reason::kFits},
       {"overcommitted, CPU asked", full, APod("p").CpuMilli(1), Reason::kCpuShort},
       {"overcommitted, memory asked", full, APod("p").MemoryGib(1), Reason::kMemoryShort}});
}

TEST(CheckFit, MeasuresDiskWhereTheNodeSaysHowMuchItHas) {
  const ANode node = ANode("n").DiskGib(100).Holding(APod("a").DiskGib(60));
  const ANode full = ANode("n").DiskGib(50).Holding(APod("a").DiskGib(60));
  const ANode silent = ANode("n").Holding(APod("a").DiskGib(60));
  ExpectReasons(
      CheckFit,
      {{"to the last bit", node, APod("p").DiskGib(40), Reason::kFits},
       {"taken", node, APod("p").DiskGib(41), Reason::kDiskShort},
       {"never there", node, APod("p").DiskGib(101), Reason::kTooLittleDisk},
       {"none at all", ANode("n").DiskGib(0), APod("p").DiskGib(1), Reason::kTooLittleDisk},
       {"overcommitted, nothing asked", full, APod("p"), Reason::kFits},
       {"overcommitted, some asked", full, APod("p").DiskGib(1), Reason::kDiskShort},
       {"not tracked", silent, APod("p").DiskGib(1 << 20), Reason::kFits}});
}

TEST(CheckFit, GivesAReasonThatNoEvictionHelpsBeforeOneThatItDoes) {
  const ANode node = ANode("n").Cpu(8).MemoryGib(16).Gpus(2).Holding(
      APod("a").Whole(2).Cpu(8).MemoryGib(16), {0, 1});
  ExpectReasons(
      CheckFit,
      {{"GPUs busy, too few CPUs ever", node, APod("p").Whole(1).Cpu(9), Reason::kTooFewCpus},
       {"share busy, too little memory ever", node, APod("p").Share(1).MemoryGib(17),
        Reason::kTooLittleMemory},
       {"CPU short, too few GPUs ever", node, APod("p").Whole(3).Cpu(1), Reason::kTooFewGpus},
       {"CPU short, share never fits", node, APod("p").ShareByMemory(99'999).Cpu(1),
        Reason::kShareNeverFits},
       {"CPU short, too little memory ever", node, APod("p").Cpu(1).MemoryGib(17),
        Reason::kTooLittleMemory},
       {"several now: GPUs first", node, APod("p").Whole(1).Cpu(1).MemoryGib(1),
        Reason::kGpusBusy}});
}

TEST(FirstObjection, AsksInTheOrderHealthModelFit) {
  const ANode sick = ANode("n").NotReady().Gpus(1).Model("T4").Cpu(1);
  const RequestShape hopeless = APod("p").Whole(2).Models({"A100"}).Cpu(2).Shape();
  const auto first = [&hopeless](const ANode& node) {
    return FirstObjection(node.Build(), hopeless);
  };
  EXPECT_EQ(first(sick), Reason::kNodeNotReady);
  EXPECT_EQ(first(ANode("n").Gpus(1).Model("T4").Cpu(1)), Reason::kModelMismatch);
  EXPECT_EQ(first(ANode("n").Gpus(1).Model("A100").Cpu(1)), Reason::kTooFewGpus);
  EXPECT_EQ(first(ANode("n").Gpus(2).Model("A100").Cpu(1)), Reason::kTooFewCpus);
  EXPECT_EQ(first(ANode("n").Gpus(2).Model("A100").Cpu(2)), Reason::kFits);
}

TEST(Reason, HasACodeAndAVerdictAndATextOfItsOwn) {
  std::vector<std::string_view> codes, texts;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    const auto reason = static_cast<Reason>(i);
    codes.push_back(CodeOf(reason));
    EXPECT_FALSE(codes.back().empty()) << "reason " << i;
    const bool silent = reason == Reason::kFits || reason == Reason::kPodRefused;
    EXPECT_EQ(TextOf(reason).empty(), silent) << codes.back();
    const bool held = reason >= Reason::kCpuHeld && reason <= Reason::kMigHeld;
    if (!silent && !held) texts.push_back(TextOf(reason));
    EXPECT_EQ(TextOf(reason).find_first_of("0123456789"), std::string_view::npos)
        << codes.back() << ": a text with a number changes from try to try";
    EXPECT_EQ(VerdictOf(reason) == Verdict::kFits, reason == Reason::kFits) << codes.back();
  }
  for (auto* list : {&codes, &texts}) {
    std::ranges::sort(*list);
    EXPECT_EQ(std::ranges::adjacent_find(*list), list->end()) << "one of them is there twice";
  }
}

TEST(Reason, HeldForGoodKeepsItsTextAndIsUnresolvable) {
  int held = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    const auto reason = static_cast<Reason>(i);
    const Reason for_good = HeldForGood(reason);
    EXPECT_EQ(TextOf(for_good), TextOf(reason));
    if (for_good == reason) continue;
    ++held;
    EXPECT_EQ(VerdictOf(reason), Verdict::kUnschedulable) << CodeOf(reason);
    EXPECT_EQ(VerdictOf(for_good), Verdict::kUnresolvable) << CodeOf(reason);
  }
  EXPECT_EQ(held, 8);
}

TEST(Reason, CallsOnlyThoseUnschedulableThatTimeCanHelp) {
  std::vector<Reason> now;
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    if (VerdictOf(static_cast<Reason>(i)) == Verdict::kUnschedulable) {
      now.push_back(static_cast<Reason>(i));
    }
  }
  EXPECT_EQ(now, (std::vector<Reason>{Reason::kNodeUnknown, Reason::kCpuShort, Reason::kMemoryShort,
                                      Reason::kDiskShort, Reason::kGpusBusy, Reason::kShareBusy,
                                      Reason::kLinkedBusy, Reason::kNumaBusy, Reason::kMigBusy,
                                      Reason::kNoDomainHasRoom}));
}

}  // namespace
}  // namespace berth::test::filters_test
