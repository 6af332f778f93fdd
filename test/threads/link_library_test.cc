// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/mig_library.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "test/support/wirings.h"

namespace berth::test::link_library_test {
namespace {

LinkOrigin From(std::string name) { return {LinkSource::kNode, std::move(name)}; }

TEST(LinkLibrary, SharesWhatNodesOfOneWiringKnow) {
  LinkLibrary library;
  const GpuLinks first = library.LinksOf(Dgx1V(), "", From("a"));
  const GpuLinks second = library.LinksOf(Dgx1V(), "", From("a"));
  EXPECT_EQ(&first.matrix(), &second.matrix());
  EXPECT_EQ(first, second);
  EXPECT_EQ(library.LinksOf(Dgx1V(), "", From("b")).origin().name, "b");
  EXPECT_NE(library.LinksOf(BridgedCards(), "", From("a")), first);
}

TEST(LinkLibrary, KnowsTheSpeedOfTheProduct) {
  LinkLibrary library;
  EXPECT_EQ(library.LinksOf(Dgx1V(), "", From("a")).Between(0, 3), 50'000);
  EXPECT_EQ(library.LinksOf(Dgx1V(), "Tesla-P100-SXM2-16GB", From("a")).Between(0, 3), 40'000);
}

TEST(LinkLibrary, ForgetsInsteadOfGrowingWithoutEnd) {
  LinkLibrary library;
  const GpuLinks kept = library.LinksOf(Dgx1V(), "", From("a"));
  for (std::size_t i = 0; i <= LinkLibrary::kMostWirings; ++i) {
    (void)library.LinksOf(BridgedCards(), "", From(std::to_string(i)));
  }
  EXPECT_EQ(kept.Ring(0b1001), 50'000) << "lives on in who has it";
  EXPECT_EQ(library.LinksOf(Dgx1V(), "", From("a")), kept);
}

TEST(LinkLibrary, IsAskedByManyThreads) {
  LinkLibrary library;
  std::vector<std::thread> threads;
  std::vector<GpuMask> chosen(4);
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    threads.emplace_back([&library, &chosen, t] {
      Random random(t);
      for (int i = 0; i < 50; ++i) {
        (void)library.LinksOf(RandomMatrix(random, 6), "", From("x"));
        const GpuLinks links = library.LinksOf(Dgx1V(), "", From("a"));
        chosen[t] = links.Choose(0xff, 2, {.pattern = LinkPattern::kPairs});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const GpuMask set : chosen) EXPECT_EQ(set, chosen[0]);
}

}  // namespace
}  // namespace berth::test::link_library_test
