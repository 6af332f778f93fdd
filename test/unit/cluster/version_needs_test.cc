// SPDX-License-Identifier: Apache-2.0
#include "cluster/values/node_constraints.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::version_needs_test {
namespace {

TEST(Versions, AreReadWithOneToThreeParts) {
  EXPECT_EQ(ParseVersion("550").value(), (Version{550, 0, 0}));
  EXPECT_EQ(ParseVersion("12.4").value(), (Version{12, 4, 0}));
  EXPECT_EQ(ParseVersion("550.54.15").value(), (Version{550, 54, 15}));
  EXPECT_LT((Version{550, 54, 15}), (Version{550, 107, 2})) << "by numbers, not by letters";
  EXPECT_EQ(TextOf(Version{550, 54, 15}), "550.54.15");
  EXPECT_EQ(TextOf(Version{12, 4, 0}), "12.4");
}

TEST(Versions, RefuseInvalidTexts) {
  for (const char* bad :
       {"", ".", "12.", ".4", "12.x", "550.54.15.1", "-1", "12 .4", "v12", "1234567"}) {
    const auto read = ParseVersion(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().message,
              "want a version such as 550, 12.4 or 550.54.15, got \"" + std::string(bad) + "\"");
  }
}

TEST(Versions, AreReadFromNewAndOldNodeLabels) {
  const Labels now = {{"nvidia.com/cuda.driver-version.major", "550"},
                      {"nvidia.com/cuda.driver-version.minor", "107"},
                      {"nvidia.com/cuda.driver-version.revision", "02"},
                      {"nvidia.com/cuda.runtime-version.major", "12"},
                      {"nvidia.com/cuda.runtime-version.minor", "5"},
                      {"nvidia.com/gpu.compute.major", "9"},
                      {"nvidia.com/gpu.compute.minor", "0"}};
  EXPECT_EQ(VersionOf(now, Versioned::kDriver), (Version{550, 107, 2}));
  EXPECT_EQ(VersionOf(now, Versioned::kCuda), (Version{12, 5, 0}));
  EXPECT_EQ(VersionOf(now, Versioned::kCapability), (Version{9, 0, 0}));
  const Labels before = {{"nvidia.com/cuda.driver.major", "535"},
                         {"nvidia.com/cuda.driver.minor", "54"},
                         {"nvidia.com/cuda.driver.rev", "03"},
                         {"nvidia.com/cuda.runtime.major", "12"},
                         {"nvidia.com/cuda.runtime.minor", "2"}};
  EXPECT_EQ(VersionOf(before, Versioned::kDriver), (Version{535, 54, 3}));
  EXPECT_EQ(VersionOf(before, Versioned::kCuda), (Version{12, 2, 0}));
  EXPECT_EQ(VersionOf(before, Versioned::kCapability), std::nullopt);
  EXPECT_EQ(VersionOf({{"nvidia.com/gpu.compute.major", "unknown"}}, Versioned::kCapability),
            std::nullopt);
}

TEST(VersionNeeds, AreMetByAsMuchOrMore) {
  const Labels labels = {{"nvidia.com/cuda.driver-version.major", "550"},
                         {"nvidia.com/cuda.driver-version.minor", "54"}};
  VersionNeeds needs;
  EXPECT_FALSE(needs.any());
  EXPECT_EQ(needs.Unmet(labels), std::nullopt);
  auto& driver = needs.least[static_cast<std::size_t>(Versioned::kDriver)];
  driver = Version{550, 54, 0};
  EXPECT_TRUE(needs.any());
  EXPECT_EQ(needs.Unmet(labels), std::nullopt);
  driver = Version{550, 54, 1};
  EXPECT_EQ(needs.Unmet(labels), Versioned::kDriver);
  driver = Version{535, 200, 0};
  EXPECT_EQ(needs.Unmet(labels), std::nullopt);
  EXPECT_EQ(needs.Unmet({}), Versioned::kDriver) << "not known";
  needs.least[static_cast<std::size_t>(Versioned::kCapability)] = Version{8, 0, 0};
  EXPECT_EQ(needs.Unmet(labels), Versioned::kCapability);
}

}  // namespace
}  // namespace berth::version_needs_test
