// SPDX-License-Identifier: Apache-2.0
#include "config/parse_yaml.h"

#include <string>

#include <gtest/gtest.h>

#include "config/kubeconfig.h"
#include "config/load.h"

namespace berth::parse_yaml_test {
namespace {

std::string Repeated(std::string_view part, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += part;
  return text;
}

std::string RefusalOf(const std::string& text) {
  const auto node = ParseYaml(text, "f");
  return node ? "" : node.error().message;
}

// yaml-cpp 0.7.0 does not get past such a comma, and makes documents of it until memory ends.
TEST(ParseYaml, ACommaWhereAValueShouldBeginIsRefused) {
  EXPECT_EQ(RefusalOf(","), "f:1: not YAML: want a value here, got none");
  EXPECT_EQ(RefusalOf("{a: b},"), "f:1: not YAML: want a value here, got none");
  EXPECT_EQ(RefusalOf("[a]\n,"), "f:2: not YAML: want a value here, got none");
  EXPECT_EQ(RefusalOf("---\n,"), "f:2: not YAML: want a value here, got none");
  EXPECT_EQ(RefusalOf("# of apples\n\n, b"), "f:3: not YAML: want a value here, got none");
}

TEST(ParseYaml, EveryFileOfAUserIsReadThroughTheSameGuard) {
  EXPECT_EQ(LoadConfig("{profile: best-fit},", "f").error().message,
            "f:1: not YAML: want a value here, got none");
  EXPECT_EQ(ParseKubeconfig(",", "f", "").error().message,
            "f:1: not YAML: want a value here, got none");
}

TEST(ParseYaml, TakesOneDocumentAndNothingAfterIt) {
  EXPECT_EQ(ParseYaml("a: b\n---\n...\n---\n# nothing\n", "f").value()["a"].Scalar(), "b");
  EXPECT_TRUE(ParseYaml("", "f").value().IsNull());
  EXPECT_TRUE(ParseYaml("---\n---\n", "f").value().IsNull());
  EXPECT_EQ(RefusalOf("a: b\n---\nc: d\n"), "f:3: want one document, got another one");
  EXPECT_EQ(RefusalOf("{a: b} c"), "f:1: want one document, got another one");
}

TEST(ParseYaml, CountsAnAliasAsOftenAsItIsUsed) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    const std::string here = "a" + std::to_string(i);
    bomb += here + ": &" + here + " [" + Repeated(below + ", ", 9) + below + "]\n";
  }
  EXPECT_EQ(RefusalOf(bomb), "f:5: want at most 100000 values, got more");

  const std::string text(100'000, 'x');
  EXPECT_EQ(RefusalOf("- &a " + text + "\n" + Repeated("- *a\n", 50)),
            "f:42: want at most 4194304 bytes of text, got more");
  EXPECT_EQ(ParseYaml("- &a " + text + "\n" + Repeated("- *a\n", 40), "f").value().size(), 41U);
}

TEST(ParseYaml, RefusesAnAliasOfItsOwnParent) {
  EXPECT_EQ(RefusalOf("&a [b, *a]"), "f:1: an alias refers to the anchor that contains it");
}

TEST(ParseYaml, StatesItsLimits) {
  EXPECT_EQ(RefusalOf(std::string(kMostYamlBytes + 1, ' ')),
            "f:1: want at most 1048576 bytes, got 1048577");
  EXPECT_EQ(RefusalOf("[" + Repeated("a,", kMostYamlNodes) + "]"),
            "f:1: want at most 100000 values, got more");
  EXPECT_TRUE(ParseYaml("[" + Repeated("a,", kMostYamlNodes - 1) + "]", "f").has_value());
}

TEST(ParseYaml, DeepNestingIsRefused) {
  EXPECT_NE(RefusalOf(Repeated("[", 100'000)), "");
  EXPECT_NE(RefusalOf(Repeated("- ", 100'000)), "");
  EXPECT_NE(RefusalOf(Repeated("{a: ", 100'000)), "");
}

}  // namespace
}  // namespace berth::parse_yaml_test
