// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_constraints.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/values/pod_request.h"
#include "test/support/builders.h"

namespace berth::model_rules_test {
namespace {

TEST(ModelRules, AcceptModelsWithAPartAndWithoutTheOthers) {
  const ModelRules rules({{false, "a100"}, {true, "40gb"}, {false, "h100"}, {false, "a100"}});
  EXPECT_EQ(rules.rules().size(), 3U);
  EXPECT_TRUE(rules.Admit("NVIDIA-A100-SXM4-80GB"));
  EXPECT_FALSE(rules.Admit("NVIDIA-A100-SXM4-40GB"));
  EXPECT_FALSE(rules.Admit("Tesla-T4"));
  EXPECT_TRUE(ModelRules({{true, "t4"}}).Admit("A100"));
  EXPECT_TRUE(ModelRules().Admit("A100"));
}

TEST(ModelRules, AreComparedAsTheirPartsAre) {
  const ModelRules a({{false, "x"}, {false, "y"}}), same({{false, "y"}, {false, "x"}});
  EXPECT_EQ(a, same);
  EXPECT_LT(ModelRules(), a);
  EXPECT_NE(a, ModelRules({{false, "x"}}));
  EXPECT_EQ(ModelRules(), ModelRules(std::vector<ModelRule>()));
}

// A filter asks about thousands of nodes, and they have a dozen models.
TEST(ModelRules, CompareEachModelOnce) {
  constexpr int kNodes = 4000, kModels = 12, kWords = 64;
  std::vector<ModelRule> words;
  for (int i = 0; i < kWords; ++i) words.push_back({i % 2 == 0, "word" + std::to_string(i)});
  RequestShape shape;
  shape.gpus = WholeGpus{1};
  shape.model_rules = ModelRules(words);
  const RequestShape copy = shape;
  for (int node = 0; node < kNodes; ++node) {
    EXPECT_FALSE((node % 2 == 0 ? shape : copy).Admits("model" + std::to_string(node % kModels)));
  }
  EXPECT_EQ(shape.model_rules.compared(), kModels * kWords);
}

TEST(ModelRules, RememberABoundedNumberOfModels) {
  const ModelRules rules({{false, "a"}});
  for (int i = 0; i < 1100; ++i) EXPECT_FALSE(rules.Admit("m" + std::to_string(i)));
  for (int i = 0; i < 1100; ++i) EXPECT_FALSE(rules.Admit("m" + std::to_string(i)));
  EXPECT_EQ(rules.compared(), 1200U) << "those beyond are compared again";
}

}  // namespace
}  // namespace berth::model_rules_test
