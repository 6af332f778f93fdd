// SPDX-License-Identifier: Apache-2.0
#include "server/extender/waiting/pending_pods.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "test/support/builders.h"

namespace berth::test::evictions_test {
namespace {

TEST(Evictions, OfTooManyVictimsTheOldestAreForgotten) {
  const auto snapshot = SnapshotOf({ANode("n").Gpus(1).Holding(APod("held").Whole(1), {0})});
  const std::vector<NodeIndex> candidates = {0};
  std::vector<std::string> many(60'000, "gone");
  many.emplace_back("uid-held");
  Evictions evictions;
  evictions.Agree("first", {{"n", many}});
  EXPECT_TRUE(evictions.Awaited("first", *snapshot, candidates));
  evictions.Agree("second", {{"n", many}});
  EXPECT_FALSE(evictions.Awaited("first", *snapshot, candidates));
  EXPECT_TRUE(evictions.Awaited("second", *snapshot, candidates));
}

TEST(Evictions, OfMoreThan1024PodsTheOldestIsForgotten) {
  const auto snapshot = SnapshotOf({ANode("n").Gpus(1).Holding(APod("held").Whole(1), {0})});
  const std::vector<NodeIndex> candidates = {0};
  Evictions evictions;
  for (int i = 0; i < 1025; ++i) evictions.Agree("pod-" + std::to_string(i), {{"n", {"uid-held"}}});
  EXPECT_FALSE(evictions.Awaited("pod-0", *snapshot, candidates));
  EXPECT_TRUE(evictions.Awaited("pod-1", *snapshot, candidates));
}

}  // namespace
}  // namespace berth::test::evictions_test
