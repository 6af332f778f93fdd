// SPDX-License-Identifier: Apache-2.0
#include "cluster/groups/disruption_budgets.h"

#include <gtest/gtest.h>

#include "test/support/builders.h"

namespace berth::test::disruption_budgets_test {
namespace {

PodDisruptionBudget Budget(const std::string& name, int allowed = 0) {
  return {"default", name, LabelSelector{{"app", LabelOperator::kIn, {"web"}}}, allowed};
}

TEST(DisruptionBudget, CoversThePodsOfItsNamespaceThatItSelects) {
  const PodRequest web = APod("p").Labelled({{"app", "web"}}).Request();
  PodDisruptionBudget budget = Budget("b");
  EXPECT_TRUE(budget.Covers(web));
  EXPECT_FALSE(budget.Covers(APod("p").Labelled({{"app", "db"}}).Request()));
  EXPECT_FALSE(budget.Covers(APod("p").Request()));
  budget.selector = LabelSelector();
  EXPECT_TRUE(budget.Covers(APod("p").Request())) << "an empty selector takes every pod";
  budget.selector.reset();
  EXPECT_FALSE(budget.Covers(web)) << "none takes no pod";
  PodDisruptionBudget elsewhere = Budget("b");
  elsewhere.namespace_name = "other";
  EXPECT_FALSE(elsewhere.Covers(web));
}

TEST(DisruptionBudgets, KeepTheLastOfEachName) {
  DisruptionBudgets budgets;
  const auto before = budgets.Current();
  budgets.Put(Budget("b", 1));
  budgets.Put(Budget("a", 2));
  budgets.Put(Budget("b", 3));
  EXPECT_EQ(*budgets.Current(), (DisruptionBudgets::List{Budget("a", 2), Budget("b", 3)}));
  EXPECT_TRUE(before->empty()) << "what was taken does not change";
  budgets.Remove("default", "a");
  budgets.Remove("other", "b");
  EXPECT_EQ(*budgets.Current(), DisruptionBudgets::List{Budget("b", 3)});
  budgets.Reset({Budget("d"), Budget("c", 1), Budget("c", 2)});
  EXPECT_EQ(*budgets.Current(), (DisruptionBudgets::List{Budget("c", 2), Budget("d")}));
}

}  // namespace
}  // namespace berth::test::disruption_budgets_test
