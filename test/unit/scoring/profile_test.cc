// SPDX-License-Identifier: Apache-2.0
#include "scoring/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "scoring/registry.h"

namespace berth::profile_test {
namespace {

std::string WantedScorers() {
  std::string text = "want one of";
  for (const std::string_view name : ScorerNames()) text += " " + std::string(name);
  return text + " domain-locality";
}

TEST(BuildProfile, KeepsNamesWeightsAndRules) {
  const ProfileSpec spec{"mine",
                         {{"best-fit", 1}, {"gpu-packing", kMaxScorerWeight}},
                         DeviceRule::kBestScore,
                         TieRule::kFirst};
  const auto profile = BuildProfile(spec, {});
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_EQ(profile->name, "mine");
  EXPECT_EQ(profile->devices, DeviceRule::kBestScore);
  EXPECT_EQ(profile->ties, TieRule::kFirst);
  ASSERT_EQ(profile->scorers.size(), 2U);
  EXPECT_EQ(profile->scorers[0].weight, 1);
  EXPECT_EQ(profile->scorers[0].scorer->normalization(), Normalization::kMinMax);
  EXPECT_EQ(profile->scorers[1].weight, kMaxScorerWeight);
  EXPECT_EQ(profile->scorers[1].scorer->normalization(), Normalization::kNone);
}

TEST(BuildProfile, DomainLocalityIsAWeightAndNoScorerOfNodes) {
  const auto profile = BuildProfile({"p", {{"best-fit", 2}, {"domain-locality", 3}}}, {});
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_EQ(profile->scorers.size(), 1U);
  EXPECT_EQ(profile->locality_weight, 3);
  EXPECT_EQ(BuildProfile({"p", {{"best-fit", 2}}}, {})->locality_weight, 0);
}

TEST(BuildProfile, TakesAProfileWithoutScorers) {
  const auto profile = BuildProfile({"plain", {}, DeviceRule::kFirst, TieRule::kFirst}, {});
  ASSERT_TRUE(profile.has_value());
  EXPECT_TRUE(profile->scorers.empty());
}

TEST(BuildProfile, NamesThePathOfWhatIsWrong) {
  struct Case {
    std::string description;
    std::vector<ScorerSpec> scorers;
    std::string message;
  };
  for (const Case& c : std::vector<Case>{
           {"no such scorer",
            {{"best-fit", 1}, {"best", 1}},
            ".scorers[1].name: " + WantedScorers() + ", got \"best\""},
           {"no name", {{"", 1}}, ".scorers[0].name: " + WantedScorers() + ", got \"\""},
           {"capitals",
            {{"Best-Fit", 1}},
            ".scorers[0].name: " + WantedScorers() + ", got \"Best-Fit\""},
           {"no weight", {{"best-fit", 0}}, ".scorers[0].weight: want 1..1000, got 0"},
           {"negative weight", {{"best-fit", -1}}, ".scorers[0].weight: want 1..1000, got -1"},
           {"too much weight",
            {{"gpu-packing", 1}, {"best-fit", 1001}},
            ".scorers[1].weight: want 1..1000, got 1001"},
           {"locality twice",
            {{"domain-locality", 1}, {"domain-locality", 1}},
            ".scorers[1].name: \"domain-locality\" is there twice"},
           {"too much locality",
            {{"domain-locality", 1001}},
            ".scorers[0].weight: want 1..1000, got 1001"},
           {"twice",
            {{"best-fit", 1}, {"gpu-packing", 1}, {"best-fit", 2}},
            ".scorers[2].name: \"best-fit\" is there twice"}}) {
    const auto profile = BuildProfile({"p", c.scorers}, {});
    ASSERT_FALSE(profile.has_value()) << c.description;
    EXPECT_EQ(profile.error().code, Errc::kInvalidArgument) << c.description;
    EXPECT_EQ(profile.error().message, c.message) << c.description;
  }
}

TEST(Registry, MakesEveryScorerThatItNames) {
  const std::vector<std::string_view> names = ScorerNames();
  EXPECT_TRUE(std::ranges::is_sorted(names));
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  for (const std::string_view name : names) {
    const auto scorer = MakeScorer(name, {});
    ASSERT_TRUE(scorer.has_value()) << name;
    EXPECT_NE(*scorer, nullptr) << name;
  }
}

TEST(Registry, BuildsEveryProfileThatComesWithBerth) {
  std::set<std::string> names;
  for (const ProfileSpec& spec : BuiltinProfiles()) {
    const auto profile = BuildProfile(spec, {});
    EXPECT_TRUE(profile.has_value()) << spec.name << ": " << profile.error().message;
    EXPECT_EQ(FindBuiltinProfile(spec.name), &spec);
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " is there twice";
  }
  for (const std::string_view scorer : ScorerNames()) {
    EXPECT_TRUE(names.contains(std::string(scorer))) << scorer << " has no profile of its own";
  }
}

TEST(Registry, FindsNoProfileByAnotherName) {
  EXPECT_EQ(FindBuiltinProfile(""), nullptr);
  EXPECT_EQ(FindBuiltinProfile("best"), nullptr);
  EXPECT_EQ(FindBuiltinProfile("Best-Fit"), nullptr);
}

}  // namespace
}  // namespace berth::profile_test
