// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "config/load.h"

namespace berth::check_classes_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kClasses = R"(traits:
- {name: fast, labels: [disk=nvme], resource: example.com/disk}
workloadClasses:
- name: training
  namespaces: [a, b]
  labels: [kind=training, "!test"]
  priorityClasses: [high]
  prefer: [{trait: rdma}, {trait: family=ND, weight: 5}]
  avoid: [{trait: spot, weight: 1000}]
  require: [nvlink, fast]
  forbid: [shared]
  spread: node
  profile: best-fit
- {name: rest, prefer: [{trait: price, weight: 3}]}
)";

TEST(WorkloadClassSettings, ReadWhatIsWrittenAndPrintIt) {
  const auto config = LoadConfig(kClasses, "f");
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_EQ(config->workload_classes.size(), 2U);
  const WorkloadClass& training = config->workload_classes.front();
  EXPECT_THAT(training.namespaces, ElementsAre("a", "b"));
  EXPECT_EQ(training.prefer.front(), (WishConfig{"rdma", 100})) << "the default weight";
  EXPECT_EQ(training.avoid.front(), (WishConfig{"spot", 1000}));
  EXPECT_EQ(training.spread, Spread::kNode);
  EXPECT_EQ(training.profile, "best-fit");
  EXPECT_EQ(config->traits.front(), (TraitConfig{"fast", {"disk=nvme"}, "example.com/disk"}));
  const auto again = LoadConfig(PrintConfig(*config), "printed");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *config);
}

TEST(WorkloadClassSettings, ReportErrorsWithTheirLine) {
  const ConfigFindings found = CheckConfig(R"text(traits:
- {name: Fast, labels: [a=b]}
- {name: spot, labels: [a=b]}
- {name: none}
- {name: odd, labels: ["a in (b)"]}
workloadClasses:
- {name: a, labels: [x=a], prefer: [{trait: rmda}]}
- {name: a, labels: [x=b], avoid: [{trait: price}]}
- {name: c, labels: [x=c], prefer: [{trait: spot, weight: 0}]}
- {name: d, labels: [x=d], require: [spot], forbid: [spot]}
- {name: e, labels: [x=e], require: ["family="]}
- {name: f, labels: [x=f], spread: rack}
- {name: g, labels: [x=g], prefer: [{trait: spot, weight: cheap}]}
- {name: h, labels: [x=h], profile: best-fitt}
)text",
                                           "f");
  EXPECT_THAT(
      found.problems,
      ElementsAre(
          StartsWith("f:9: workloadClasses[2].prefer[0].weight: want an integer"),
          StartsWith("f:12: workloadClasses[5].spread: want one of none"),
          StartsWith("f:13: workloadClasses[6].prefer[0].weight: want an integer"),
          "f:2: traits[0].name: want a DNS-1123 label, got \"Fast\"",
          "f:3: traits[1].name: want a name of your own, got \"spot\", which is built in",
          "f:4: traits[2]: want labels or a resource, got neither",
          "f:5: traits[3].labels[0]: want KEY=VALUE, KEY!=VALUE, KEY or !KEY, got \"a in (b)\"",
          "f:7: workloadClasses[0].prefer[0].trait: want one of leaving mig none nvlink nvme "
          "nvswitch "
          "odd rdma shared spot family=F image=V price, got \"rmda\"",
          "f:8: workloadClasses[1].name: \"a\" is there twice",
          HasSubstr("f:8: workloadClasses[1].avoid[0].trait: want one of "),
          "f:10: workloadClasses[3].forbid[0]: the class names \"spot\" twice",
          HasSubstr("f:11: workloadClasses[4].require[0]: want one of "),
          "f:14: workloadClasses[7].profile: want a built-in profile or one of profiles, got "
          "\"best-fitt\""));
}

std::string Problem(const std::string& classes) {
  const auto config = LoadConfig("workloadClasses:\n" + classes, "f");
  return config ? "" : config.error().message;
}

TEST(WorkloadClassSettings, AClassThatNoPodCanBeOfIsRefused) {
  constexpr const char* kTaken = "only pods with the annotation get this class: \"a\" matches";
  EXPECT_THAT(Problem("- {name: a}\n- {name: b, labels: [x]}\n"), HasSubstr(kTaken));
  EXPECT_THAT(Problem("- {name: a, labels: [x]}\n- {name: b, labels: [x]}\n"),
              HasSubstr("f:3: workloadClasses[1]: "));
  EXPECT_THAT(Problem("- {name: a, labels: [x]}\n- {name: b, labels: [y, x], namespaces: [n]}\n"),
              HasSubstr(kTaken));
  EXPECT_THAT(Problem("- {name: a, namespaces: [m, n]}\n- {name: b, namespaces: [n]}\n"),
              HasSubstr(kTaken));
  EXPECT_EQ(Problem("- {name: a, namespaces: [n]}\n- {name: b, namespaces: [m, n]}\n"), "");
  EXPECT_EQ(Problem("- {name: a, labels: [y, x]}\n- {name: b, labels: [x]}\n- {name: c}\n"), "");
  EXPECT_EQ(Problem("- {name: a, namespaces: [n]}\n- {name: b}\n"), "");
}

TEST(WorkloadClassSettings, WishesThatCountForNothingAreNoted) {
  constexpr const char* kWishes = "workloadClasses: [{name: a, prefer: [{trait: spot}]}]\n";
  EXPECT_THAT(CheckConfig(kWishes, "f").notes, IsEmpty());
  EXPECT_THAT(CheckConfig(std::string(kWishes) + "profile: best-fit\n", "f").notes,
              ElementsAre("f:1: workloadClasses[0]: prefer and avoid have no effect: the profile "
                          "\"best-fit\" has no scorer workload-class"));
  EXPECT_THAT(
      CheckConfig("workloadClasses: [{name: a, require: [spot]}]\nprofile: best-fit\n", "f").notes,
      IsEmpty());
}

TEST(WorkloadClassSettings, TheProfileOfAClassIsBuiltInOrAmongTheProfiles) {
  constexpr const char* kText =
      "profile: best-fit\n"
      "profiles: [{name: mine, scorers: [{name: workload-class}]}]\n"
      "workloadClasses:\n"
      "- {name: a, labels: [x=a], profile: mine, prefer: [{trait: spot}]}\n"
      "- {name: b, labels: [x=b], profile: spreading, prefer: [{trait: spot}]}\n"
      "- {name: c, labels: [x=c], profile: mine}\n"
      "- {name: d, labels: [x=d], profile: best-fit}\n";
  const auto config = LoadConfig(kText, "f");
  ASSERT_TRUE(config) << config.error().message;
  std::vector<std::string> names;
  for (const ProfileSpec& profile : ClassProfiles(*config)) names.push_back(profile.name);
  EXPECT_THAT(names, ElementsAre("mine", "spreading")) << "each once, without the chosen one";
  EXPECT_THAT(CheckConfig(kText, "f").notes,
              ElementsAre(HasSubstr("profiles[0].scorers: without expected-waste, "),
                          HasSubstr("workloadClasses[1]: prefer and avoid have no effect: "
                                    "the profile \"spreading\"")))
      << "the profile \"mine\" is used";
}

TEST(GpuConditionSettings, AreTypesWithAStatus) {
  const auto problem = [](const std::string& condition) {
    const auto config = LoadConfig("gpuNodes: {conditions: [\"" + condition + "\"]}", "f");
    return config ? "" : config.error().message;
  };
  for (const char* good : {"Bad", "Bad=True", "Good=False", "Good=Unknown"}) {
    EXPECT_EQ(problem(good), "") << good;
  }
  for (const char* bad : {"", "=True", "Bad=true", "Bad=", "Bad==True"}) {
    EXPECT_EQ(problem(bad),
              "f:1: gpuNodes.conditions[0]: want TYPE, or TYPE=STATUS with a status of True, False "
              "or Unknown, got \"" +
                  std::string(bad) + "\"");
  }
}

}  // namespace
}  // namespace berth::check_classes_test
