// SPDX-License-Identifier: Apache-2.0
#include "scoring/mig/repartition_report.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/builders.h"
#include "test/support/mig_nodes.h"

namespace berth::test::repartition_report_test {
namespace {

struct Waiting {
  APod pod;
  int count = 1;
};

// "n1 all-balanced 12/0", one line per advice.
std::string Advised(const std::vector<ANode>& nodes, const std::vector<Waiting>& waiting) {
  std::vector<std::shared_ptr<const PodRequest>> pods;
  for (const Waiting& kind : waiting) {
    const auto pod = std::make_shared<const PodRequest>(kind.pod.Request());
    pods.insert(pods.end(), static_cast<std::size_t>(kind.count), pod);
  }
  std::string text;
  for (const NodeAdvice& at : AdviseNodes(*SnapshotOf(nodes), pods)) {
    text += at.node + " " + at.advice.config + " " + std::to_string(at.advice.fits) + "/" +
            std::to_string(at.advice.fits_now) + "\n";
  }
  return text;
}

ANode SmallOnly(const std::string& name) { return ANode(name).Mig(StaticMig(2, kSevenSmall)); }
APod Wants(const std::string& profile) { return APod("p").Mig(profile); }

TEST(RepartitionReport, NamesTheLayoutThatTakesTheMostWaitingPods) {
  EXPECT_EQ(Advised({SmallOnly("n")}, {{Wants("3g.20gb"), 3}}), "n all-3g.20gb 3/0\n");
  // Two GPUs cut in balance: four of 1g, two of 2g, two of 3g.
  EXPECT_EQ(Advised({SmallOnly("n")},
                    {{Wants("1g.5gb"), 4}, {Wants("2g.10gb"), 2}, {Wants("3g.20gb"), 9}}),
            "n all-balanced 8/4\n");
}

TEST(RepartitionReport, IsEmptyWhereNothingWouldHelp) {
  EXPECT_EQ(Advised({SmallOnly("n")}, {}), "");
  EXPECT_EQ(Advised({SmallOnly("n")}, {{Wants("1g.5gb"), 14}}), "");   // there are 14
  EXPECT_EQ(Advised({SmallOnly("n")}, {{Wants("1g.10gb+me")}}), "");   // not of an A100-40GB
  EXPECT_EQ(Advised({ANode("n").Gpus(8)}, {{Wants("3g.20gb")}}), "");  // not cut
  MigSpec pool = StaticMig(2, kSevenSmall);
  pool.fixed = true;
  EXPECT_EQ(Advised({ANode("n").Mig(pool)}, {{Wants("3g.20gb")}}), "");  // and never will be
}

TEST(RepartitionReport, ServesEachPodOnceFromTheFirstNodeOn) {
  const std::vector<ANode> nodes = {SmallOnly("a"), SmallOnly("b"), SmallOnly("c")};
  EXPECT_EQ(Advised(nodes, {{Wants("3g.20gb"), 6}}), "a all-3g.20gb 4/0\nb all-3g.20gb 2/0\n");
}

TEST(RepartitionReport, LeavesNodesAloneThatAreInUseOrNotToBeCut) {
  const std::vector<Waiting> waiting = {{Wants("3g.20gb")}};
  ANode used = SmallOnly("n");
  used.HoldingMig(APod("a").Mig("1g.5gb"), {AGrantOf("1g.5gb")});
  EXPECT_EQ(Advised({used}, waiting), "");
  ANode quiet = SmallOnly("n");
  quiet.Holding(APod("a").Cpu(1));
  EXPECT_EQ(Advised({quiet}, waiting), "n all-3g.20gb 1/0\n");
  MigSpec spec = StaticMig(2, kSevenSmall);
  EXPECT_EQ(Advised({ANode("n").Gpus(1).Mig(spec)}, waiting), "");  // its config would cut that too
  spec.trouble = MigTrouble::kChanging;
  EXPECT_EQ(Advised({ANode("n").Mig(spec)}, waiting), "");
  spec = StaticMig(2, kSevenSmall);
  spec.foreign = true;
  EXPECT_EQ(Advised({ANode("n").Mig(spec)}, waiting), "");
  spec = StaticMig(2, kSevenSmall);
  spec.shared = {{{ProfileOf("1g.5gb"), true}, 4}};
  EXPECT_EQ(Advised({ANode("n").Mig(spec)}, waiting), "");
  EXPECT_EQ(Advised({ANode("n").Mig(DynamicMig(2))}, waiting), "");
  EXPECT_EQ(Advised({SmallOnly("n").NotReady()}, waiting), "");
}

TEST(RepartitionReport, CountsOnlyPodsThatFitTheNodeOtherwise) {
  EXPECT_EQ(Advised({SmallOnly("n").Tainted("keep", "out")}, {{Wants("3g.20gb")}}), "");
  EXPECT_EQ(Advised({SmallOnly("n").Cpu(10)}, {{Wants("3g.20gb").Cpu(4), 3}}),
            "n all-3g.20gb 2/0\n");
  EXPECT_EQ(Advised({SmallOnly("n").MemoryGib(3)}, {{Wants("3g.20gb").MemoryGib(4)}}), "");
  EXPECT_EQ(Advised({SmallOnly("n").DiskGib(10)}, {{Wants("3g.20gb").DiskGib(4), 3}}),
            "n all-3g.20gb 2/0\n");
}

TEST(RepartitionReport, LeavesOutPodsThatNoDeviceOfOneProfileServes) {
  EXPECT_EQ(Advised({SmallOnly("n")}, {{APod("p").Mig("3g.20gb", 2)}}), "");
  EXPECT_EQ(Advised({SmallOnly("n")}, {{APod("p").MigNeeding(3, 0)}}), "");
  EXPECT_EQ(Advised({SmallOnly("n")}, {{APod("p").Whole(1)}}), "");
}

TEST(RepartitionReport, SaysItInOneLine) {
  EXPECT_EQ(TextOf({"n1", "A100-40GB", 8, {"all-balanced", 12, 3, 14}}),
            "node n1 to all-balanced: 12 waiting pods fit, 3 with its present partitioning");
}

}  // namespace
}  // namespace berth::test::repartition_report_test
