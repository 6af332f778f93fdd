// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/policy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/replay/model_settings.h"
#include "config/config.h"
#include "config/load.h"
#include "test/support/build_paths.h"
#include "test/support/read_text.h"
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

TEST(ModelSettings, ReadBackAsTheyArePrinted) {
  ReplayConfig config;
  EXPECT_EQ(PrintReplayConfig(config), PrintConfig(config.config)) << "a service takes it";
  config.model = {.waste = {.fills = 64, .patience = 20, .optimism = 0, .coverage = 1.0 / 3},
                  .learning = {500, 50}};
  const auto read = LoadReplayConfig(PrintReplayConfig(config), "printed");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->model, config.model);
  EXPECT_FALSE(LoadConfig(PrintReplayConfig(config), "printed")) << "a service does not";
}

TEST(ModelSettings, AreRefusedAsOtherSettingsAre) {
  for (const auto& [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"learning:\n  halfLife: 1", "f:2: learning.halfLife: unknown key"},
           {"expectedWaste:\n  fill: 1", "f:2: expectedWaste.fill: unknown key"},
           {"learning:\n  halfLifePods: 0", "f:2: learning.halfLifePods: want an integer from 1"},
           {"learning: {longestEpochPods: 1.5}", "f:1: learning.longestEpochPods: want an integer"},
           {"expectedWaste:\n  fills: 257", "f:2: expectedWaste.fills: want an integer from 1 to"},
           {"expectedWaste: {coverage: 0}", "f:1: expectedWaste.coverage: want a number from 0.01"},
           {"expectedWaste: {modelPriceGpus: -1}", "f:1: expectedWaste.modelPriceGpus: want a n"},
           {"expectedWaste: {scarcityLimitGpus: .nan}", "f:1: expectedWaste.scarcityLimitGpus: w"},
           {"requestMix: []", "f:1: requestMix: is no setting any more"}}) {
    const auto read = LoadReplayConfig(text, "f");
    ASSERT_FALSE(read) << text;
    EXPECT_TRUE(read.error().message.starts_with(message)) << read.error().message;
  }
}

TEST(ModelSettings, TheDocumentationHasTheTableOfTheCode) {
  const std::string page = test::ReadText(test::SourceDir() + "/bench/lab/README.md");
  EXPECT_NE(page.find(ModelSettingsTable()), std::string::npos) << ModelSettingsTable();
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
