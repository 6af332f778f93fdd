// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_constraints.h"

#include <gtest/gtest.h>

namespace berth::node_constraints_test {
namespace {

using enum TolerationOperator;
constexpr auto kNoSchedule = TaintEffect::kNoSchedule;
constexpr auto kNoExecute = TaintEffect::kNoExecute;

TEST(Tolerations, CoverTaintsAsInKubernetes) {
  const Taint taint{"gpu", "5", kNoSchedule};
  struct Case {
    std::string description;
    Toleration toleration;
    bool covers;
  };
  for (const Case& c : std::vector<Case>{
           {"equal", {"gpu", kEqual, "5", kNoSchedule}, true},
           {"another value", {"gpu", kEqual, "6", kNoSchedule}, false},
           {"another key", {"cpu", kEqual, "5", kNoSchedule}, false},
           {"another effect", {"gpu", kEqual, "5", kNoExecute}, false},
           {"every effect", {"gpu", kEqual, "5", {}}, true},
           {"exists", {"gpu", kExists, "", {}}, true},
           {"everything", {"", kExists, "", {}}, true},
           {"everything of an effect", {"", kExists, "", kNoExecute}, false},
           {"above", {"gpu", kGreater, "4", {}}, true},
           {"not above", {"gpu", kGreater, "5", {}}, false},
           {"below", {"gpu", kLess, "6", {}}, true},
           {"not a number", {"gpu", kLess, "six", {}}, false},
       }) {
    EXPECT_EQ(Tolerates(std::vector<Toleration>{c.toleration}, taint), c.covers) << c.description;
  }
  EXPECT_FALSE(Tolerates({}, taint));
}

TEST(NodeConstraints, TakeANodeThatSelectorAndOneTermOfTheAffinityTake) {
  const Labels labels = {{"zone", "a"}};
  const LabelRequirement in_a{"zone", LabelOperator::kIn, {"a"}};
  const LabelRequirement in_b{"zone", LabelOperator::kIn, {"b"}};
  const LabelRequirement named_n1{"metadata.name", LabelOperator::kIn, {"n1"}};
  struct Case {
    std::string description;
    NodeConstraints constraints;
    bool takes;
  };
  for (const Case& c : std::vector<Case>{
           {"nothing asked", {}, true},
           {"selector", {{in_a}, {}, {}}, true},
           {"another selector", {{in_b}, {}, {}}, false},
           {"second term", {{}, {{{{in_b}, {}}, {{in_a}, {}}}}, {}}, true},
           {"no term holds", {{}, {{{{in_b}, {}}}}, {}}, false},
           {"no terms", {{}, std::vector<NodeSelectorTerm>(), {}}, false},
           {"an empty term", {{}, std::vector<NodeSelectorTerm>(1), {}}, false},
           {"by name", {{}, {{{{}, {named_n1}}}}, {}}, true},
           {"by name and label", {{}, {{{{in_b}, {named_n1}}}}, {}}, false},
           {"affinity but not selector", {{in_b}, {{{{in_a}, {}}}}, {}}, false},
       }) {
    EXPECT_EQ(SelectsNode(c.constraints, "n1", labels), c.takes) << c.description;
  }
}

}  // namespace
}  // namespace berth::node_constraints_test
