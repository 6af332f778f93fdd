// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::config_map_test {
namespace {

constexpr char kManifest[] = R"(apiVersion: v1
kind: ConfigMap
metadata:
  name: berth
data:
  berth.yaml: |
    # a comment
    profile: best-fit

    server:
      threads: 0
)";

std::string FirstProblem(const std::string& manifest) {
  const auto inside = ConfigInside(manifest, "cm");
  if (!inside) return inside.error().message;
  const ConfigFindings found = CheckConfig(inside->text, inside->origin);
  return found.problems.empty() ? "" : found.problems.front();
}

TEST(ConfigInside, TheLinesOfABlockAreThoseOfTheManifest) {
  EXPECT_TRUE(FirstProblem(kManifest).starts_with("cm:11: server.threads: want an integer"))
      << FirstProblem(kManifest);
  std::string stripped = kManifest;
  stripped.replace(stripped.find('|'), 1, "|-  # why");
  EXPECT_TRUE(FirstProblem(stripped).starts_with("cm:11: server.threads"))
      << FirstProblem(stripped);
}

TEST(ConfigInside, AnyOtherFormCountsLinesInTheValue) {
  const std::string json =
      R"({"kind":"ConfigMap","data":{"my.yaml":"profile: best-fit\nserver:\n  threads: 0\n"}})";
  EXPECT_TRUE(FirstProblem(json).starts_with("cm data.my.yaml:3: server.threads: want"))
      << FirstProblem(json);
}

TEST(ConfigInside, ReadsTheUsualKeyOfSeveral) {
  EXPECT_EQ(FirstProblem("kind: ConfigMap\ndata: {a: x, berth.yaml: 'profile: best-fit'}"), "");
}

TEST(ConfigInside, AManifestWithoutAConfigurationIsRefused) {
  constexpr char kWant[] = ": data: want one configuration, or one named berth.yaml, got ";
  EXPECT_EQ(FirstProblem("kind: ConfigMap\ndata: {}"), "cm:1" + std::string(kWant) + "none");
  EXPECT_EQ(FirstProblem("kind: ConfigMap"), "cm:1" + std::string(kWant) + "none");
  EXPECT_EQ(FirstProblem("kind: ConfigMap\ndata:\n  a: x\n  b: y\n"),
            "cm:3" + std::string(kWant) + "2 others");
  EXPECT_EQ(FirstProblem("kind: ConfigMap\ndata:\n  a: [x]\n"),
            "cm:3" + std::string(kWant) + "no text");
}

TEST(ConfigInside, LeavesOtherTextsUnchanged) {
  for (const char* text :
       {"", "profile: x", "- a", "a: [", "kind: [ConfigMap]", "a: b\n---\nc: d", "kind: Pod"}) {
    const auto inside = ConfigInside(text, "f");
    ASSERT_TRUE(inside) << text;
    EXPECT_EQ(inside->text, text);
    EXPECT_EQ(inside->origin, "f");
  }
}

}  // namespace
}  // namespace berth::config_map_test
