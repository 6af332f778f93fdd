// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/api_json.h"

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::wire::budget_json_test {
namespace {

using test::Json;

Json Budget(const Json& selector) {
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", {{"name", "b"}, {"namespace", "ns"}}},
          {"spec", {{"minAvailable", 1}, {"selector", selector}}},
          {"status", {{"disruptionsAllowed", 2}, {"currentHealthy", 3}}}};
}

Result<PodDisruptionBudget> Decode(const Json& budget) {
  return DecodeBudget(test::Padded(budget.dump()));
}

TEST(BudgetJson, SelectorsComeFromLabelsAndExpressions) {
  const Json expressions = {{{"key", "tier"}, {"operator", "NotIn"}, {"values", {"x", "y"}}},
                            {{"key", "gpu"}, {"operator", "Exists"}}};
  const auto budget =
      Decode(Budget({{"matchLabels", {{"app", "web"}}}, {"matchExpressions", expressions}}));
  ASSERT_TRUE(budget) << budget.error().message;
  EXPECT_EQ(*budget, (PodDisruptionBudget{"ns", "b",
                                          LabelSelector{{"app", LabelOperator::kIn, {"web"}},
                                                        {"tier", LabelOperator::kNotIn, {"x", "y"}},
                                                        {"gpu", LabelOperator::kExists, {}}},
                                          2}));
}

TEST(BudgetJson, AnEmptySelectorIsNotNone) {
  EXPECT_EQ(Decode(Budget(Json::object()))->selector, LabelSelector());
  EXPECT_EQ(Decode(Budget(nullptr))->selector, std::nullopt);
}

TEST(BudgetJson, WhatIsNoBudgetIsAnError) {
  Json other = Budget(nullptr);
  other["kind"] = "Pod";
  EXPECT_EQ(Decode(other).error().message, "kind: want PodDisruptionBudget, got \"Pod\"");
  Json nameless = Budget(nullptr);
  nameless["metadata"].erase("name");
  EXPECT_EQ(Decode(nameless).error().message, "metadata.name: want a name, got \"\"");
  const Json wrong = {{"matchExpressions", {{{"key", "a"}, {"operator", "Like"}}}}};
  EXPECT_EQ(Decode(Budget(wrong)).error().message,
            "spec.selector.matchExpressions[0].operator: want In, NotIn, Exists, DoesNotExist, Gt "
            "or Lt, got \"Like\"");
  EXPECT_FALSE(Decode(Budget(7)));
  EXPECT_FALSE(DecodeBudget(test::Padded("[]")));
}

}  // namespace
}  // namespace berth::wire::budget_json_test
