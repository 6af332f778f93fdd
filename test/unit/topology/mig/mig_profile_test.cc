// SPDX-License-Identifier: Apache-2.0
#include "topology/mig/mig_product.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"

namespace berth::mig_profile_test {
namespace {

using std::string_literals::operator""s;

MigProfile Parsed(std::string_view text) {
  const auto profile = ParseMigProfile(text);
  EXPECT_TRUE(profile) << text;
  return profile.value_or(MigProfile{});
}

TEST(MigProfile, ReadsEveryFormOfAName) {
  const std::pair<std::string_view, MigProfile> cases[] = {
      {"1g.5gb", {1, 5}},
      {"7g.141gb", {7, 141}},
      {"1g.10gb+me", {1, 10, MigExtension::kMe}},
      {"2g.48gb+me.all", {2, 48, MigExtension::kMeAll}},
      {"1g.24gb-me", {1, 24, MigExtension::kNoMe}},
      {"4g.96gb+gfx", {4, 96, MigExtension::kGfx}},
      {"1c.2g.10gb", {2, 10, MigExtension::kNone, 1}},
      {"1c.3g.20gb+me", {3, 20, MigExtension::kMe, 1}}};
  for (const auto& [text, profile] : cases) {
    EXPECT_EQ(Parsed(text), profile) << text;
    EXPECT_EQ(MigProfileName(profile), text);
  }
}

TEST(MigProfile, AComputeInstanceOfAllSlicesIsTheProfileItself) {
  EXPECT_EQ(Parsed("3c.3g.20gb"), Parsed("3g.20gb"));
}

TEST(MigProfile, RefusesWhatIsNoName) {
  for (const std::string_view text : {"",           "1g",          "1g.",
                                      "1g.5",       "1g.5gbx",     "g.5gb",
                                      "0g.5gb",     "1g.0gb",      "01g.5gb",
                                      "1g.05gb",    "+1g.5gb",     "-1g.5gb",
                                      " 1g.5gb",    "1g.5gb ",     "1G.5GB",
                                      "1g.5gb+",    "1g.5gb+me.",  "1g.5gb.me",
                                      "1g.5gb+ME",  "1g.5gb-gfx",  "1g.5gb+me+me",
                                      "3c.2g.10gb", "0c.2g.10gb",  "1c.1c.2g.10gb",
                                      "65g.5gb",    "1g.100000gb", "99999999999999999999g.5gb"}) {
    const auto profile = ParseMigProfile(text);
    ASSERT_FALSE(profile) << text;
    EXPECT_EQ(profile.error().code, Errc::kInvalidArgument);
    EXPECT_EQ(profile.error().message,
              "want a MIG profile such as 1g.5gb, 1g.10gb+me or 1c.2g.10gb, got \"" +
                  std::string(text) + "\"");
  }
}

TEST(MigResource, IsTheProfileWithADotForThePlus) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"nvidia.com/mig-1g.5gb", "1g.5gb"},
      {"nvidia.com/mig-1g.5gb.me", "1g.5gb+me"},
      {"nvidia.com/mig-1g.24gb.me.all", "1g.24gb+me.all"},
      {"nvidia.com/mig-1g.24gb-me", "1g.24gb-me"},
      {"nvidia.com/mig-2g.48gb.gfx", "2g.48gb+gfx"}};
  for (const auto& [name, profile] : cases) {
    const auto resource = ParseMigResource(name);
    ASSERT_TRUE(resource) << name;
    EXPECT_EQ(*resource, (MigResource{Parsed(profile), false}));
    EXPECT_EQ(MigResourceName(resource->profile), name);
    const std::string shared = std::string(name) + ".shared";
    ASSERT_TRUE(ParseMigResource(shared)) << shared;
    EXPECT_EQ(*ParseMigResource(shared), (MigResource{Parsed(profile), true}));
    EXPECT_EQ(MigResourceName(resource->profile, true), shared);
  }
}

TEST(MigResource, RefusesComputeInstancesAndOtherNames) {
  for (const std::string_view name :
       {"nvidia.com/gpu", "nvidia.com/mig-", "nvidia.com/mig1g.5gb", "mig-1g.5gb",
        "nvidia.com/mig-1g.5gb+me", "nvidia.com/mig-1c.2g.10gb", "nvidia.com/mig-2c.2g.10gb",
        "nvidia.com/mig-1g.5gb.shared.me", "nvidia.com/mig-.shared", "amd.com/mig-1g.5gb"}) {
    const auto resource = ParseMigResource(name);
    ASSERT_FALSE(resource) << name;
    EXPECT_EQ(resource.error().message,
              "want a resource such as nvidia.com/mig-1g.5gb or nvidia.com/mig-1g.5gb.me, got \"" +
                  std::string(name) + "\"");
  }
}

// A good name with a few characters changed, dropped or doubled is refused or reads as a profile
// whose name reads back as the same.
TEST(MigProfile, SurvivesMutatedNames) {
  const std::string alphabet = "0123456789cg.b+-mealfx \t\n\0Z/"s;
  const std::vector<std::string> seeds = {"1g.5gb",     "1g.10gb+me",
                                          "1c.2g.10gb", "1g.24gb+me.all",
                                          "1g.24gb-me", "nvidia.com/mig-1g.5gb.me"};
  Random random(23);
  int read = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text = seeds[random.Below(seeds.size())];
    for (std::uint64_t change = 1 + random.Below(3); change > 0; --change) {
      const auto at = random.Below(text.size() + 1);
      const char c = alphabet[random.Below(alphabet.size())];
      const std::uint64_t kind = random.Below(3);
      if (kind == 0 || at == text.size()) {
        text.insert(at, 1, c);
      } else if (kind == 1) {
        text[at] = c;
      } else {
        text.erase(at, 1);
      }
    }
    if (const auto profile = ParseMigProfile(text)) {
      ++read;
      ASSERT_EQ(ParseMigProfile(MigProfileName(*profile)), *profile) << text;
    }
    if (const auto resource = ParseMigResource(text)) {
      ++read;
      ASSERT_EQ(MigResourceName(resource->profile, resource->shared), text);
    }
  }
  EXPECT_GT(read, 5'000) << "most mutations are no longer near a name";
}

}  // namespace
}  // namespace berth::mig_profile_test
