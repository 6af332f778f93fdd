// SPDX-License-Identifier: Apache-2.0
#include "cluster/state/snapshot.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::test::transaction_test {
namespace {

std::shared_ptr<const Snapshot> TwoNodes() {
  return SnapshotOf({ANode("a").Gpus(4).Holding(APod("old").Whole(1), {0}), ANode("b").Gpus(4)});
}

TEST(TransactionTest, WhatIsPutIsInTheSnapshotAndTheFirstOneStaysAsItWas) {
  const auto from = TwoNodes();
  Transaction transaction(from);
  ASSERT_TRUE(transaction.Put(APod("p").Whole(2).Request(), APod("p").Whole(2).On("b", {0, 1})));
  EXPECT_FALSE(transaction.now()->node(1).gpus()[1].idle());
  EXPECT_TRUE(from->node(1).gpus()[1].idle());
  ASSERT_EQ(transaction.placed().size(), 1U);
  EXPECT_EQ(transaction.placed()[0].placement.node, "b");
}

TEST(TransactionTest, WhatDoesNotFitWithThoseBeforeItChangesNothing) {
  Transaction transaction(TwoNodes());
  ASSERT_TRUE(transaction.Put(APod("p").Whole(2).Request(), APod("p").Whole(2).On("b", {0, 1})));
  const auto before = transaction.now();
  const Status taken =
      transaction.Put(APod("q").Whole(2).Request(), APod("q").Whole(2).On("b", {1, 2}));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, Errc::kConflict);
  const Status unknown = transaction.Put(APod("q").Request(), APod("q").On("nowhere"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::kNotFound);
  EXPECT_EQ(transaction.now(), before);
  EXPECT_EQ(transaction.placed().size(), 1U);
}

TEST(TransactionTest, ReturningRestoresTheValue) {
  const auto from = TwoNodes();
  Transaction transaction(from);
  const Transaction::Mark mark = transaction.Here();
  ASSERT_TRUE(transaction.Put(APod("p").Share(300).Request(), APod("p").Share(300).On("a", {1})));
  transaction.Take("uid-old", 0);
  EXPECT_TRUE(transaction.now()->node(0).gpus()[0].idle());
  EXPECT_FALSE(*transaction.now() == *from);
  transaction.Return(mark);
  EXPECT_TRUE(*transaction.now() == *from);
  EXPECT_TRUE(transaction.placed().empty());
}

TEST(TransactionTest, MarksNest) {
  const auto from = TwoNodes();
  Transaction transaction(from);
  const auto put = [&](const std::string& name, int gpu) {
    ASSERT_TRUE(transaction.Put(APod(name).Whole(1).Request(), APod(name).Whole(1).On("b", {gpu})));
  };
  const Transaction::Mark outer = transaction.Here();
  put("p", 0);
  const Transaction::Mark inner = transaction.Here();
  put("q", 1);
  put("r", 2);
  transaction.Return(inner);
  EXPECT_EQ(transaction.placed().size(), 1U);
  EXPECT_TRUE(transaction.now()->node(1).gpus()[1].idle());
  put("s", 3);
  EXPECT_EQ(transaction.placed()[1].pod.id.name, "s");
  transaction.Return(outer);
  EXPECT_TRUE(*transaction.now() == *from);
}

TEST(TransactionTest, TakingAPodThatIsNotThereLeavesTheSnapshot) {
  const auto from = TwoNodes();
  Transaction transaction(from);
  transaction.Take("uid-old", 1);
  EXPECT_EQ(transaction.now(), from);
}

}  // namespace
}  // namespace berth::test::transaction_test
