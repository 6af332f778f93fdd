// SPDX-License-Identifier: Apache-2.0
#include "server/pages/metrics_parts.h"

#include <gtest/gtest.h>

#include "cluster/node/mig_library.h"
#include "topology/mig/mig_product.h"

#include "test/support/builders.h"
#include "test/support/metrics_lines.h"
#include "test/support/mig_nodes.h"

namespace berth::test::mig_metrics_test {
namespace {

const std::vector<NodeAdvice> kNoAdvice;

TEST(MigMetrics, CountsWhatIsTakenAndWhatStillFits) {
  ANode dynamic = ANode("a").Mig(DynamicMig(1));
  dynamic.HoldingMig(APod("x").Mig("3g.20gb"), {AGrant(0, "3g.20gb", 4)});
  MigSpec stale = StaticMig(2, kBalanced);
  stale.trouble = MigTrouble::kStale;
  const std::string text = Written(
      AddMigMetrics, ReportMig(*SnapshotOf({dynamic, ANode("b").Mig(stale), ANode("c").Gpus(8)})),
      kNoAdvice);
  ExpectLines(text,
              {"berth_mig_gpus{product=\"A100-40GB\",partitioning=\"dynamic\"} 1",
               "berth_mig_gpus{product=\"A100-40GB\",partitioning=\"static\"} 2",
               "berth_mig_memory_units{product=\"A100-40GB\",state=\"taken\"} 4",
               "berth_mig_memory_units{product=\"A100-40GB\",state=\"free\"} 20",
               "berth_mig_devices{product=\"A100-40GB\",profile=\"3g.20gb\",state=\"taken\"} 1",
               "berth_mig_devices{product=\"A100-40GB\",profile=\"3g.20gb\",state=\"free\"} 3",
               "berth_mig_devices{product=\"A100-40GB\",profile=\"1g.5gb\",state=\"free\"} 8",
               "berth_mig_devices{product=\"A100-40GB\",profile=\"7g.40gb\",state=\"free\"} 0",
               "berth_mig_troubled_nodes{trouble=\"stale\"} 1",
               "berth_mig_troubled_nodes{trouble=\"failed\"} 0"});
}

TEST(MigMetrics, CountWhatClaimsHaveOfTheGpusThatDraCuts) {
  const auto product = MigLibrary::Catalogued(*FindMigProduct("A100-40GB"));
  OfferedGpu cut{.pool = "n", .index = 0, .product = product, .offered = product->AllPlacements()};
  OfferedGpu whole = cut;
  cut.taken = MigSet{1} << *product->PlacementAt(*product->RowOf({3, 20}), 4);
  whole.whole = true;
  const MigOffers::ByNode offers = {
      {"n", std::make_shared<const OfferedGpus>(OfferedGpus{cut, whole})}};
  const std::string text =
      Written(AddMigMetrics, ReportMig(*SnapshotOf({ANode("n")}), offers), kNoAdvice);
  ExpectLines(text,
              {"berth_mig_gpus{product=\"A100-40GB\",partitioning=\"dra\"} 2",
               "berth_mig_memory_units{product=\"A100-40GB\",state=\"taken\"} 12",
               "berth_mig_memory_units{product=\"A100-40GB\",state=\"free\"} 4",
               "berth_mig_devices{product=\"A100-40GB\",profile=\"3g.20gb\",state=\"taken\"} 1",
               "berth_mig_devices{product=\"A100-40GB\",profile=\"3g.20gb\",state=\"free\"} 1",
               "berth_mig_devices{product=\"A100-40GB\",profile=\"7g.40gb\",state=\"free\"} 0"});
}

TEST(MigMetrics, CountGpusThatDraCutsOnceAlsoWhereResourcesStandForThem) {
  const auto product = MigLibrary::Catalogued(*FindMigProduct("A100-40GB"));
  const OfferedGpu gpu{
      .pool = "n", .index = 0, .product = product, .offered = product->AllPlacements()};
  const MigOffers::ByNode offers = {{"n", std::make_shared<const OfferedGpus>(OfferedGpus{gpu})}};
  const std::string text = Written(
      AddMigMetrics, ReportMig(*SnapshotOf({ANode("n").Mig(MigByClaims(1))}), offers), kNoAdvice);
  ExpectLines(text, {"berth_mig_gpus{product=\"A100-40GB\",partitioning=\"dra\"} 1",
                     "berth_mig_memory_units{product=\"A100-40GB\",state=\"free\"} 8"});
}

TEST(MigMetrics, ShowsWhatAnotherLayoutWouldTake) {
  const MigReport report = ReportMig(*SnapshotOf(
      {ANode("a").Mig(StaticMig(2, kBalanced)), ANode("b").Mig(DynamicMig(1, "A100-80GB"))}));
  const std::vector<NodeAdvice> advices = {{"a", "A100-40GB", 2, {"all-3g.20gb", 4, 2, {}}},
                                           {"c", "A100-40GB", 2, {"all-3g.20gb", 3, 2, {}}}};
  const std::string text = Written(AddMigMetrics, report, advices);
  ExpectLines(text,
              {"berth_mig_repartition_pods{product=\"A100-40GB\",config=\"all-3g.20gb\"} 7",
               "berth_mig_repartition_pods{product=\"A100-40GB\",config=\"all-balanced\"} 0"});
  // Where GPUs are cut when a pod comes there is no layout to choose.
  EXPECT_EQ(text.find("berth_mig_repartition_pods{product=\"A100-80GB\""), std::string::npos);
}

}  // namespace
}  // namespace berth::test::mig_metrics_test
