// SPDX-License-Identifier: Apache-2.0
//
// berth-replay mig: the JSON that scripts read, the same for the same input, and errors.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/child_process.h"

namespace berth::test::mig_cli_test {
namespace {

using Json = nlohmann::ordered_json;

Outcome Mig(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "mig");
  return RunProgram("berth-replay", arguments);
}

// Short runs: two seeds of 900 pods on 10 GPUs.
std::vector<std::string> Short(const std::vector<std::string>& more) {
  std::vector<std::string> all = {"--gpus", "10", "--arrivals", "900", "--seeds", "2"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Json WithoutTimings(const std::string& text) {
  Json json = Json::parse(text);
  for (Json& result : json["results"]) EXPECT_EQ(result.erase("decision_us"), 1U);
  return json;
}

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(MigCommand, WritesOneResultPerPolicy) {
  const Outcome outcome = Mig(
      Short({"--mix", "bimodal", "--load", "0.9", "--policies", "first-fit,berth", "--json", "-"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "") << "progress belongs on a terminal only";
  const Json json = Json::parse(outcome.out);
  EXPECT_EQ(Keys(json), (std::vector<std::string>{"made_with", "first_seed", "seeds", "results"}));
  EXPECT_EQ(Keys(json["made_with"]), (std::vector<std::string>{"version", "command"}));
  ASSERT_EQ(json["results"].size(), 2U);
  const Json& first = json["results"][0];
  EXPECT_EQ(Keys(first),
            (std::vector<std::string>{"policy", "mix", "load", "accepted_memory_pct",
                                      "accepted_pods_pct", "rejected_by_profile", "decision_us"}));
  EXPECT_EQ(first["policy"], "first-fit");
  EXPECT_EQ(json["results"][1]["policy"], "berth");
  EXPECT_EQ(first["mix"], "bimodal");
  EXPECT_EQ(first["load"], 0.9);
  EXPECT_EQ(Keys(first["accepted_memory_pct"]), (std::vector<std::string>{"mean", "half_width"}));
  EXPECT_EQ(
      Keys(first["rejected_by_profile"]),
      (std::vector<std::string>{"1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}));
  EXPECT_GT(first["decision_us"]["mean"], 0);
}

TEST(MigCommand, GivesTheSameBytesForTheSameInput) {
  const std::vector<std::string> arguments = Short({"--choose", "node-only", "--json", "-"});
  const Json once = WithoutTimings(Mig(arguments).out);
  EXPECT_EQ(once, WithoutTimings(Mig(arguments).out));
  const Json other = WithoutTimings(Mig(Short({"--first-seed", "7", "--json", "-"})).out);
  EXPECT_NE(once, other);
}

TEST(MigCommand, PrintsATableForPeople) {
  const Outcome outcome =
      Mig(Short({"--policies", "src-drain,dra", "--product", "NVIDIA-A30-MIG-1g.6gb"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("memory %"), std::string::npos);
  EXPECT_NE(outcome.out.find("\ndra "), std::string::npos);
}

TEST(MigCommand, ErrorsNameTheFlag) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--product", "A10"}, "berth-replay: --product: want A30-24GB, A100-40GB, "},
      {{"--mix", "no-such-file"}, "berth-replay: --mix: no-such-file: cannot be read"},
      {{"--mix", "bimodal", "--product", "A30-24GB"},
       "berth-replay: --mix: want uniform or a file for A30-24GB"},
      {{"--policies", "berth,best"}, "berth-replay: --policies: want berth, src-drain, "},
      {{"--lifetimes", "short"},
       "berth-replay: --lifetimes: want exponential or heavy-tailed, got \"short\""}};
  for (const auto& [arguments, line] : cases) {
    const Outcome outcome = Mig(Short(arguments));
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with(line)) << outcome.err;
  }
  EXPECT_EQ(Mig({"--choose", "pod"}).code, 2);
  EXPECT_EQ(Mig({"--gpus", "0"}).code, 2);
  EXPECT_EQ(Mig({"--load", "x"}).code, 2);
  EXPECT_EQ(Mig({"--help"}).code, 0);
}

}  // namespace
}  // namespace berth::test::mig_cli_test
