// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-replay: the same input gives the same bytes, the engine and a server
// over HTTP the same result, and errors name the place.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/child_process.h"
#include "test/support/test_certificates.h"

namespace berth::test {
namespace {

class BerthReplay : public testing::Test {
 protected:
  void SetUp() override {
    nodes_ = folder_.WriteText("nodes.csv", "");
    tasks_ = folder_.WriteText("tasks.csv", "");
    ChildProcess generate("berth-replay",
                          {"generate", "--nodes", nodes_, "--tasks", tasks_, "--seed", "7"});
    ASSERT_EQ(generate.Wait(), 0) << generate.err();
  }

  // The result of a short replay without its timings.
  [[nodiscard]] nlohmann::json Run(const std::string& policy, const std::string& through) const {
    ChildProcess process("berth-replay",
                         {"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", policy, "--seed",
                          "3", "--inflate", "0.05", "--through", through, "--json", "-"});
    EXPECT_EQ(process.Wait(), 0) << process.err();
    EXPECT_EQ(process.err(), "") << "progress belongs on a terminal only";
    auto result = nlohmann::json::parse(process.out());
    EXPECT_EQ(result.erase("decision_us"), 1U);
    return result;
  }

  void ExpectFailure(std::vector<std::string> arguments, int code, const std::string& message) {
    ChildProcess process("berth-replay", arguments);
    EXPECT_EQ(process.Wait(), code);
    EXPECT_EQ(process.out(), "");
    EXPECT_NE(process.err().find(message), std::string::npos) << process.err();
  }

  const TemporaryFolder folder_;
  std::string nodes_, tasks_;
};

TEST_F(BerthReplay, GivesTheSameResultForTheSameInput) {
  const nlohmann::json first = Run("fragmentation-gradient", "engine");
  EXPECT_EQ(first.dump(), Run("fragmentation-gradient", "engine").dump());
  EXPECT_EQ(first["policy"], "fragmentation-gradient");
  EXPECT_EQ(first["seed"], 3);
  EXPECT_EQ(first["nodes"], 1213);
  EXPECT_EQ(first["gpus_total"], 6212);
  EXPECT_EQ(first["allocated_pct"].size(), 131U);
  EXPECT_TRUE(first["allocated_pct"][130].is_null()) << "only 5 % arrived";
  EXPECT_GT(first["placed"], 100);
  EXPECT_EQ(first["refused"], 0);
}

TEST_F(BerthReplay, GetsTheSameFromAServerAsFromTheEngine) {
  // The protocol has eleven levels; the best nodes are told apart all the same.
  for (const char* policy : {"fragmentation-gradient", "best-fit", "first-fit"}) {
    EXPECT_EQ(Run(policy, "engine").dump(), Run(policy, "http").dump()) << policy;
  }
}

TEST_F(BerthReplay, NamesTheFileTheLineAndTheColumn) {
  const std::string wrong = folder_.WriteText("wrong.csv", "name,cpu\na,1\n");
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", wrong, "--policy", "best-fit"}, 1,
                wrong + ":1: want the columns name,cpu_milli,memory_mib,num_gpu,gpu_milli, got");
  const std::string negative =
      folder_.WriteText("negative.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,8000,1024,-1,T4\n");
  ExpectFailure({"run", "--nodes", negative, "--tasks", tasks_, "--policy", "best-fit"}, 1,
                negative + ":2: column gpu: want an integer from 0 to 64, got \"-1\"");
}

TEST_F(BerthReplay, NamesThePoliciesThereAre) {
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", "best"}, 1,
                "policy: want one of best-fit dot-product first-fit");
}

TEST_F(BerthReplay, EndsWithTwoWhereItIsNotUsedAsItsHelpSays) {
  ExpectFailure({"run", "--policy", "best-fit"}, 2, "--nodes is required");
  ExpectFailure({"run", "--nodes", nodes_, "--tasks", tasks_, "--policy", "best-fit", "--bogus"}, 2,
                "--bogus");
}

}  // namespace
}  // namespace berth::test
