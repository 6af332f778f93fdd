// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/policy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "test/support/temp_file.h"

namespace berth::replay::policy_test {
namespace {

using test::TempFile;

const std::string kConfig =
    "apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\nprofile: mine\n"
    "profiles:\n- name: mine\n  scorers:\n  - {name: expected-waste, weight: 3}\n"
    "expectedWaste: {patience: 7}\nlearning: {halfLifePods: 9}\n";

TEST(Policies, RefuseUnknownAndRepeatedNames) {
  EXPECT_TRUE(Policies({"best-fit", "best"}, {})
                  .error()
                  .message.starts_with("policy: want one of best-fit"));
  EXPECT_EQ(Policies({"best-fit", "best-fit"}, {}).error().message,
            "policies: \"best-fit\" is there twice");
  const TempFile file(kConfig);
  const std::string name = std::filesystem::path(file.path()).filename().string();
  EXPECT_EQ(Policies({}, {file.path(), file.path()}).error().message,
            "policies: \"" + name + "\" is there twice");
  EXPECT_FALSE(Policies({}, {}));
}

TEST(Policies, KnowKubeSchedulerAlone) {
  const auto policies = Policies({"kube-scheduler", "most-allocated", "best-fit"}, {});
  ASSERT_TRUE(policies) << policies.error().message;
  EXPECT_EQ(policies->at(0).scheduler, KubeStrategy::kLeastAllocated);
  EXPECT_EQ(policies->at(1).scheduler, KubeStrategy::kMostAllocated);
  EXPECT_EQ(policies->at(2).scheduler, std::nullopt);
  EXPECT_NE(PolicyNamed("x").error().message.find(" kube-scheduler most-allocated, got \"x\""),
            std::string::npos);
}

TEST(Policies, TakeProfileAndParametersOfAConfiguration) {
  const TempFile file(kConfig);
  const auto policies = Policies({"best-fit"}, {file.path()});
  ASSERT_TRUE(policies) << policies.error().message;
  ASSERT_EQ(policies->size(), 2U);
  EXPECT_EQ(policies->front().name, "best-fit");
  const ReplayPolicy& own = policies->back();
  EXPECT_EQ(own.name, std::filesystem::path(file.path()).filename().string());
  EXPECT_EQ(own.profile.name, "mine");
  EXPECT_EQ(own.profile.scorers, (std::vector<ScorerSpec>{{"expected-waste", 3}}));
  EXPECT_EQ(own.waste.patience, 7);
  EXPECT_EQ(own.learning.half_life_pods, 9);
  nlohmann::ordered_json texts;
  texts[own.name] = kConfig;
  EXPECT_EQ(ConfigurationsJson(*policies), texts) << "a built-in profile has no text";
}

TEST(Policies, TakeTheWorkloadClassesOfAConfiguration) {
  const TempFile file(
      kConfig +
      "workloadClasses:\n- {name: a, labels: [x=z], prefer: [{trait: rdma, weight: 7}]}\n"
      "- {name: b, labels: [x=y], forbid: [spot]}\n");
  const auto policies = Policies({}, {file.path()});
  ASSERT_TRUE(policies) << policies.error().message;
  const WishesByClass& classes = policies->front().classes;
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes.at("a"), (NodeWishes{{}, {}, {{"rdma", 7}}}));
  EXPECT_EQ(classes.at("b"), (NodeWishes{{}, {"spot"}, {}}));
}

TEST(Policies, NameTheFileAndLineThatIsWrong) {
  const TempFile file(kConfig + "colour: red\n");
  const auto policies = Policies({}, {file.path()});
  ASSERT_FALSE(policies);
  EXPECT_TRUE(policies.error().message.starts_with(file.path() + ":10: "))
      << policies.error().message;
  EXPECT_EQ(Policies({}, {"/no/such/file"}).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace berth::replay::policy_test
