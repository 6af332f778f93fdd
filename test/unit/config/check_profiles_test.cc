// SPDX-License-Identifier: Apache-2.0
//
// A profile of one's own has what it does not name from the one that it extends.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "config/load.h"

namespace berth::check_profiles_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ProfileSpec TheOne(const std::string& profile) {
  const auto config =
      LoadConfig("profile: mine\nprofiles:\n- {name: mine, " + profile + "}\n", "f");
  EXPECT_TRUE(config) << config.error().message;
  return config ? config->profiles.at(0) : ProfileSpec();
}

std::vector<std::string> Notes(const std::string& profile) {
  return CheckConfig("profile: mine\nprofiles:\n- {name: mine, " + profile + "}\n", "f").notes;
}

std::vector<std::string> Problems(const std::string& profile) {
  return CheckConfig("profile: mine\nprofiles:\n- {name: mine, " + profile + "}\n", "f").problems;
}

TEST(ProfilesThatExtend, HaveTheScorersThatTheyDoNotName) {
  const ProfileSpec mine = TheOne(
      "extends: expected-waste, scorers: [{name: expected-waste, weight: 20}, {name: "
      "link-quality}], without: [mig-packing]");
  const std::vector<ScorerSpec> expected = {
      {"expected-waste", 20}, {"link-quality", 1}, {"workload-class", 1}, {"domain-locality", 1}};
  EXPECT_EQ(mine.scorers, expected) << "its own come first, so that errors name its lines";
  EXPECT_EQ(mine.devices, DeviceRule::kBestScore);
  EXPECT_EQ(mine.ties, TieRule::kFullest);
}

TEST(ProfilesThatExtend, KeepTheRulesThatTheySay) {
  const ProfileSpec mine = TheOne("extends: expected-waste, devices: tightest, ties: equal");
  EXPECT_EQ(mine.devices, DeviceRule::kTightest);
  EXPECT_EQ(mine.ties, TieRule::kEqual);
  EXPECT_EQ(mine.scorers.size(), 4u);
}

TEST(ProfilesThatExtend, ArePrintedAsTheyAreReadAgain) {
  const auto config = LoadConfig(
      "profile: mine\nprofiles: [{name: mine, extends: expected-waste, without: [mig-packing]}]",
      "f");
  ASSERT_TRUE(config);
  const auto again = LoadConfig(PrintConfig(*config), "g");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *config);
}

TEST(ProfilesThatExtend, WhatDoesNotExistIsRefused) {
  EXPECT_THAT(Problems("extends: default"),
              ElementsAre(HasSubstr("profiles[0].extends: want one of best-fit")));
  EXPECT_THAT(Problems("extends: expected-waste, without: [mig]"),
              ElementsAre(HasSubstr("profiles[0].without[0]: want one of best-fit")));
  EXPECT_THAT(
      Problems("extends: expected-waste, scorers: [{name: mig-packing}], without: [mig-packing]"),
      ElementsAre(HasSubstr("without[0]: \"mig-packing\" is one of scorers too")));
}

TEST(ProfilesThatExtend, LostScorersAreNotedUnlessThatIsSaid) {
  EXPECT_THAT(Notes("scorers: [{name: expected-waste}, {name: link-quality}]"),
              ElementsAre(HasSubstr("profiles[0].scorers: without mig-packing, workload-class, "
                                    "domain-locality of the default profile; want `extends: "
                                    "expected-waste`, or `without` if that is meant")));
  EXPECT_THAT(Notes("extends: expected-waste, scorers: [{name: link-quality}]"), IsEmpty());
  EXPECT_THAT(Notes("extends: expected-waste, without: [domain-locality]"), IsEmpty());
  EXPECT_THAT(Notes("scorers: [{name: best-fit}], without: [expected-waste, mig-packing, "
                    "workload-class, domain-locality]"),
              IsEmpty());
}

}  // namespace
}  // namespace berth::check_profiles_test
