// SPDX-License-Identifier: Apache-2.0
#include "topology/links/gpu_links.h"

#include <gtest/gtest.h>

#include <bit>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/support/link_oracle.h"
#include "test/support/wirings.h"
#include "topology/links/wiring.h"

namespace berth::test::gpu_links_test {
namespace {

constexpr LinkAsk kLinked = {.link = LinkWish::kRequired};
constexpr LinkAsk kOneNuma = {.numa = NumaWish::kRequired};

TEST(GpuLinks, AreNotKnownUnlessSomebodySaysThem) {
  EXPECT_FALSE(GpuLinks().known());
  EXPECT_EQ(GpuLinks(), GpuLinks());
  const GpuLinks links = LinksOf(BridgedCards());
  EXPECT_TRUE(links.known());
  EXPECT_NE(links, GpuLinks());
  EXPECT_EQ(links, LinksOf(BridgedCards())) << "equal in value";
  EXPECT_NE(links, LinksOf(Dgx1V()));
}

TEST(GpuLinks, AreRequiredInsideTheSet) {
  const GpuLinks links = LinksOf(BridgedCards());
  EXPECT_TRUE(links.Satisfies(links.Choose(0xff, 2, kLinked), kLinked));
  EXPECT_EQ(std::popcount(links.Choose(0xff, 2, kLinked)), 2);
  EXPECT_EQ(links.Choose(0b11110110, 2, kLinked), 0b11000000u);
  EXPECT_EQ(links.Choose(0b01110110, 2, kLinked), 0u) << "one of every pair, and the broken pair";
  EXPECT_EQ(links.Choose(0xff, 3, kLinked), 0u);
  EXPECT_EQ(links.LargestLinked(0b01110110), 0b10u);
  EXPECT_EQ(links.LargestLinked(0b11010110), 0b11000000u);
  EXPECT_EQ(links.Choose(0b100, 1, kLinked), 0b100u) << "one GPU needs no link";
}

TEST(GpuLinks, ReachOverOtherGpusOfTheSetOnly) {
  const GpuLinks links = LinksOf(Dgx1V());
  const GpuMask through_four = 0b00110001;  // 0 - 4 - 5
  EXPECT_TRUE(links.Satisfies(through_four, kLinked));
  EXPECT_FALSE(links.Satisfies(0b00100001, kLinked)) << "0 and 5 without 4";
}

TEST(GpuLinks, KeepToOneNumaGroupWhereThatIsRequired) {
  const GpuLinks links = LinksOf(BridgedCards());
  const LinkAsk numa_first = {.numa = NumaWish::kPreferred};
  // 0-1 are linked, and 4 to 7 the only four of one socket.
  EXPECT_EQ(links.Choose(0b11110011, 4, kOneNuma), 0b11110000u);
  EXPECT_EQ(links.Choose(0b11110011, 4, numa_first), 0b11110000u);
  EXPECT_EQ(links.Choose(0b01110111, 4, kOneNuma), 0u);
  EXPECT_NE(links.Choose(0b01110111, 4, numa_first), 0u);
}

TEST(GpuLinks, DoNotGuessNumaGroups) {
  const GpuLinks links = LinksOf(*LinksOfProduct("NVIDIA-H100-80GB-HBM3", 8));
  EXPECT_FALSE(links.knows_numa());
  EXPECT_EQ(links.Choose(0xff, 2, kOneNuma), 0u);
  EXPECT_EQ(links.Choose(0xfc, 2, kLinked), 0b1100u);
}

TEST(GpuLinks, GiveARingOfTheBandwidthThatIsAskedFor) {
  const GpuLinks links = LinksOf(Dgx1V());
  const LinkAsk double_links = {.min_megabytes_per_s = 50'000};
  const LinkAsk single_links = {.min_megabytes_per_s = 25'000};
  EXPECT_EQ(links.Ring(0b1001), 50'000);
  EXPECT_EQ(links.Choose(0b0111, 2, double_links), 0b0110u);
  EXPECT_EQ(links.Choose(0b0011, 2, double_links), 0u) << "0 and 1 have one link";
  EXPECT_EQ(links.Choose(0b0011, 2, single_links), 0b0011u);
}

TEST(GpuLinks, ThatDoNotMatterAreLeftToOthers) {
  const GpuLinks links = LinksOf(BridgedCards());
  EXPECT_EQ(links.Choose(0xff, 2, {.link = LinkWish::kNone}), 0b00110000u) << "the broken pair";
  EXPECT_NE(links.Choose(0xff, 1) & 0b00110000, 0u);
}

TEST(GpuLinks, FollowThePatternOfThePod) {
  // A ring of NVLinks 0-1-2-3 and a star around 4: which is the better four?
  LinkMatrix matrix = *MakeLinkMatrix({"GPU0", "GPU1", "GPU2", "GPU3", "GPU4"}, {});
  const auto join = [&matrix](int a, int b, int links) {
    matrix.link(a, b) =
        matrix.link(b, a) = {LinkType::kSys, LinkType::kNvlink, static_cast<std::uint8_t>(links)};
  };
  for (const auto& [a, b] : {std::pair(0, 1), {1, 2}, {2, 3}, {3, 0}}) join(a, b, 1);
  join(0, 4, 4);
  join(1, 2, 4);
  const GpuLinks links = LinksOf(matrix);
  EXPECT_EQ(links.Choose(0b11111, 4, {.pattern = LinkPattern::kRing}), 0b01111u);
  EXPECT_EQ(links.Choose(0b11111, 4, {.pattern = LinkPattern::kGrid}), 0b01111u);
  EXPECT_EQ(links.Choose(0b11111, 4, {.pattern = LinkPattern::kPairs}), 0b10111u);
}

TEST(GpuLinks, ChooseAsAnExhaustiveSearchDoes) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    const int gpus = 2 + Draw(random, 6);
    const LinkMatrix matrix = RandomMatrix(random, gpus);
    const GpuLinks links = LinksOf(matrix);
    const LinkOracle oracle(matrix);
    WiringTables tables;
    const WiringSets sets = tables.SetsOf(WiringOf(matrix));
    for (int i = 0; i < 40; ++i) {
      LinkAsk ask;
      ask.link = static_cast<LinkWish>(Draw(random, 3));
      ask.numa = static_cast<NumaWish>(Draw(random, 3));
      ask.pattern = static_cast<LinkPattern>(Draw(random, kLinkPatterns));
      ask.min_megabytes_per_s = Draw(random, 3) * 25'000;
      const GpuMask free = random.Next() & ((GpuMask{1} << gpus) - 1);
      const int size = 2 + Draw(random, 4);
      const GpuMask chosen = links.Choose(free, size, ask);
      const GpuMask usual = sets.Choose(free, size);
      const bool own_order = ask.link == LinkWish::kNone || ask.numa == NumaWish::kPreferred ||
                             ask.pattern != LinkPattern::kAny;
      const bool as_usual = !own_order && usual != 0 && oracle.Satisfies(usual, ask);
      ASSERT_EQ(chosen, as_usual ? usual : oracle.Choose(free, size, ask))
          << "round " << round << ", " << gpus << " GPUs, free " << free << ", size " << size;
      ASSERT_TRUE(chosen == 0 || links.Satisfies(chosen, ask));
    }
  }
}

TEST(GpuLinks, OfMoreGpusThanATableHasAreFoundAllTheSame) {
  // Ten linked triples; the sockets' border runs through the fifth.
  std::vector<std::string> names;
  for (int gpu = 0; gpu < 30; ++gpu) names.push_back("GPU" + std::to_string(gpu));
  LinkMatrix matrix = *MakeLinkMatrix(names, {});
  for (int a = 0; a < 30; ++a) {
    matrix.numa_affinity[static_cast<std::size_t>(a)] = a < 14 ? "0" : "1";
    for (int b = 0; b < 30; ++b) {
      if (a == b) continue;
      matrix.link(a, b).pcie = LinkType::kSys;
      if (a / 3 == b / 3) matrix.link(a, b) = {LinkType::kSys, LinkType::kNvlink, 2};
    }
  }
  const GpuLinks links = LinksOf(matrix);
  const GpuMask all = (GpuMask{1} << 30) - 1, first_of_each = 0x09249249;
  EXPECT_EQ(links.Choose(first_of_each, 2, kLinked), 0u);
  EXPECT_EQ(links.Choose(first_of_each | 0b11000, 3, kLinked), 0u) << "no triple is free";
  EXPECT_EQ(links.Choose(first_of_each | 0b110000, 3, kLinked), 0b111000u);
  LinkAsk both = kLinked;
  both.numa = NumaWish::kRequired;
  EXPECT_EQ(links.Choose(GpuMask{0b111} << 12, 3, both), 0u) << "14 is on the other socket";
  EXPECT_EQ(std::popcount(links.Choose(all, 3, both)), 3);
  EXPECT_EQ(links.Choose(all, 14, kOneNuma), (GpuMask{1} << 14) - 1);
  EXPECT_EQ(links.Choose(all, 2, {.min_megabytes_per_s = 60'000}), 0u);
}

TEST(GpuLinks, TellHowGoodTheBestFreeSetIs) {
  const GpuLinks links = LinksOf(BridgedCards());
  EXPECT_EQ(links.BestQuality(0xff, 2), kPerfect);
  EXPECT_EQ(links.BestQuality(0b01110110, 2), links.quality(0b00110000));
  EXPECT_EQ(links.BestQuality(0b1, 2), 0);
}

TEST(ProductLinks, AreKnownOfBoardsOnWhichAllGpusAreAlike) {
  const auto matrix = LinksOfProduct("NVIDIA-A100-SXM4-80GB", 8);
  ASSERT_TRUE(matrix);
  EXPECT_EQ(matrix->link(0, 7), (Link{LinkType::kUnknown, LinkType::kNvlink, 12}));
  EXPECT_TRUE(WiringOf(*matrix).Uniform());
  EXPECT_TRUE(LinksOfProduct("A100-SXM4-80GB", 8)) << "as older drivers name it";
  EXPECT_FALSE(LinksOfProduct("NVIDIA-A100-SXM4-80GB", 7));
  EXPECT_FALSE(LinksOfProduct("NVIDIA-A100-PCIE-40GB", 8)) << "bridges, or none";
  EXPECT_FALSE(LinksOfProduct("Tesla-V100-SXM2-32GB", 8)) << "a cube mesh of any numbering";
  EXPECT_FALSE(LinksOfProduct("NVIDIA-H100-80GB-HBM3-SHARED", 8));
  for (const ProductLinks& row : ProductLinksCatalogue()) {
    EXPECT_TRUE(LinksOfProduct(row.product, row.gpus)) << row.product;
    EXPECT_FALSE(row.source.empty()) << row.product;
  }
}

TEST(ProductLinks, HaveTheSpeedOfTheirGeneration) {
  const LinkMatrix b200 = *LinksOfProduct("NVIDIA-B200", 8);
  EXPECT_EQ(SpeedsFor(b200, "NVIDIA-B200").nvlink, 50'000);
  EXPECT_EQ(SpeedsFor(b200, "").nvlink, 25'000);
  EXPECT_EQ(SpeedsFor(b200, "NVIDIA-A40").nvlink, 14'062);
}

TEST(NvidiaPairScores, AreReadBackToTheLink) {
  for (int relation = 0; relation <= static_cast<int>(LinkType::kBoard); ++relation) {
    for (int links = 0; links <= 18; ++links) {
      Link link{static_cast<LinkType>(relation), {}, static_cast<std::uint8_t>(links)};
      if (links > 0) link.fabric = LinkType::kNvlink;
      EXPECT_EQ(LinkOfNvidiaScore(10 * relation + 100 * links), link);
    }
  }
  for (const int no_score : {-10, 5, 70, 199, 1910, 100'000}) {
    EXPECT_EQ(LinkOfNvidiaScore(no_score), std::nullopt) << no_score;
  }
}

}  // namespace
}  // namespace berth::test::gpu_links_test
