// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_constraints.h"

#include <gtest/gtest.h>

namespace berth::labels_test {
namespace {

using enum LabelOperator;

const Labels kLabels = {{"arch", "amd64"}, {"rack", "7"}, {"zone", ""}};

TEST(Labels, AreFoundByTheirKey) {
  EXPECT_EQ(*FindLabel(kLabels, "rack"), "7");
  EXPECT_EQ(*FindLabel(kLabels, "zone"), "");
  EXPECT_EQ(FindLabel(kLabels, "rac"), nullptr);
  EXPECT_EQ(FindLabel({}, "rack"), nullptr);
}

TEST(Labels, MeetRequirementsAsInKubernetes) {
  struct Case {
    LabelRequirement requirement;
    bool holds;
  };
  for (const Case& c : std::vector<Case>{
           {{"arch", kIn, {"amd64", "arm64"}}, true},
           {{"arch", kIn, {"arm64"}}, false},
           {{"arch", kIn, {}}, false},
           {{"none", kIn, {"amd64"}}, false},
           {{"zone", kIn, {""}}, true},
           {{"arch", kNotIn, {"amd64"}}, false},
           {{"arch", kNotIn, {"arm64"}}, true},
           {{"none", kNotIn, {"amd64"}}, true},
           {{"zone", kExists, {}}, true},
           {{"none", kExists, {}}, false},
           {{"zone", kDoesNotExist, {}}, false},
           {{"none", kDoesNotExist, {}}, true},
           {{"rack", kGreater, {"6"}}, true},
           {{"rack", kGreater, {"7"}}, false},
           {{"rack", kLess, {"8"}}, true},
           {{"rack", kLess, {"7"}}, false},
           {{"rack", kLess, {"8", "9"}}, false},
           {{"rack", kLess, {"x"}}, false},
           {{"arch", kLess, {"8"}}, false},
           {{"none", kLess, {"8"}}, false},
       }) {
    EXPECT_EQ(Holds(c.requirement, kLabels), c.holds)
        << c.requirement.key << " " << static_cast<int>(c.requirement.op);
  }
}

TEST(Labels, AreSelectedWhenEveryRequirementHolds) {
  EXPECT_TRUE(Selects({}, kLabels));
  EXPECT_TRUE(Selects({{"arch", kExists, {}}, {"rack", kIn, {"7"}}}, kLabels));
  EXPECT_FALSE(Selects({{"arch", kExists, {}}, {"rack", kIn, {"8"}}}, kLabels));
}

TEST(ParseSelector, ReadsTheFourFormsOfKubectl) {
  const std::vector<std::string> texts = {"a=1", "b!=2", "c", "!d", "e="};
  const auto selector = ParseSelector(texts);
  ASSERT_TRUE(selector) << selector.error().message;
  EXPECT_TRUE(Selects(*selector, {{"a", "1"}, {"b", "1"}, {"c", ""}, {"e", ""}}));
  EXPECT_TRUE(Selects(*selector, {{"a", "1"}, {"c", "x"}, {"e", ""}})) << "b may be missing";
  EXPECT_FALSE(Selects(*selector, {{"a", "1"}, {"b", "2"}, {"c", ""}, {"e", ""}}));
  EXPECT_FALSE(Selects(*selector, {{"a", "1"}, {"c", ""}, {"d", ""}, {"e", ""}}));
  EXPECT_FALSE(Selects(*selector, {{"a", "1"}, {"e", ""}}));
  EXPECT_FALSE(Selects(*selector, {{"a", "1"}, {"c", ""}, {"e", "x"}}));
}

TEST(ParseSelector, RefusesOtherFormsByTheirPlace) {
  for (const char* wrong : {"", "!", "=x", "a==b", "a in (b, c)", "!a=b", "a=b,c=d", "a b"}) {
    const std::vector<std::string> texts = {"fine", wrong};
    const auto selector = ParseSelector(texts);
    ASSERT_FALSE(selector) << wrong;
    EXPECT_EQ(selector.error().message,
              "[1]: want KEY=VALUE, KEY!=VALUE, KEY or !KEY, got \"" + std::string(wrong) + "\"");
  }
}

}  // namespace
}  // namespace berth::labels_test
