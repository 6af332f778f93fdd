// SPDX-License-Identifier: Apache-2.0
//
// berth-replay on extenders that run already: conform, and run --through URL.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/running_berth.h"

namespace berth::test::extender_cli_test {
namespace {

struct Outcome {
  int code;
  std::string out, err;
};

Outcome Conform(const std::string& url, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"conform", "--url", url});
  ChildProcess process("berth-replay", more);
  const int code = process.Wait();
  return {code, process.out(), process.err()};
}

TEST(Conform, BerthPassesEveryCaseOnNodesThatItKnowsAndOthers) {
  const TemporaryFolder folder;
  const Running berth(folder, kCluster);
  const std::string url = "http://127.0.0.1:" + std::to_string(berth.port()) + "/extender";
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--nodes", "n1,n2"}, {"--nodes", "n1,n2", "--node-bodies"}}) {
    const Outcome outcome = Conform(url, more);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.err, "");
    EXPECT_NE(outcome.out.find(" passed, 0 failed, 19 were skipped.\n"), std::string::npos)
        << outcome.out;
  }
}

TEST(Conform, WritesJsonOfTheCasesThatWereAskedFor) {
  const TemporaryFolder folder;
  const Running berth(folder, kCluster);
  const std::string url = "http://127.0.0.1:" + std::to_string(berth.port()) + "/extender";
  const Json json = Json::parse(Conform(url, {"--only", "bind,5", "--json", "-"}).out);
  EXPECT_EQ(json["url"], url);
  EXPECT_EQ(json["failed"], 0);
  EXPECT_TRUE(std::ranges::all_of(json["cases"], [](const Json& line) {
    return line["case"] == 5 || line["verb"] == "bind";
  })) << json;
  EXPECT_TRUE(std::ranges::any_of(json["cases"], [](const Json& line) {
    return line["case"] == 57 && line["got"].get<std::string>().starts_with("200 {\"Error\":\"");
  })) << json;
}

TEST(Conform, SaysWhatIsWrongWithTheUrlAndTheExtender) {
  const Outcome nobody = Conform("http://127.0.0.1:1/extender");
  EXPECT_EQ(nobody.code, 1);
  EXPECT_EQ(nobody.err,
            "berth-replay: http://127.0.0.1:1/extender: Connection refused. Start the extender, or "
            "change --url\n");
  EXPECT_EQ(Conform("127.0.0.1:1").code, 2);
  const Outcome name = Conform("http://127.0.0.1:1/extender", {"--only", "bind,bogus"});
  EXPECT_EQ(name.code, 1);
  EXPECT_EQ(name.err,
            "berth-replay: --only: want numbers of cases and verbs, as in 5,16,bind, got "
            "\"bogus\"\n");
  const TemporaryFolder folder;
  const Running berth(folder, kCluster);
  const std::string url = "http://127.0.0.1:" + std::to_string(berth.port()) + "/extender";
  const Outcome other = Conform(url, {"--prioritize", "bind", "--only", "46"});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.out.find("FAIL  46 bind"), std::string::npos) << other.out;
  EXPECT_EQ(other.err, "berth-replay: " + url + ": 1 check failed\n");
}

TEST(RunThroughUrl, ReplaysATraceOnAnExtenderThatRuns) {
  const TemporaryFolder folder;
  const Running berth(folder, kCluster);
  const std::string url = "http://127.0.0.1:" + std::to_string(berth.port()) + "/extender";
  const std::string nodes = folder.WriteText("nodes.csv",
                                             "sn,cpu_milli,memory_mib,gpu,model\n"
                                             "n1,64000,1048576,2,A100\nn2,64000,1048576,4,A100\n");
  const std::string tasks = folder.WriteText("tasks.csv",
                                             "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
                                             "pair,1000,1024,2,1000\none,1000,1024,1,1000\n");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"run", "--nodes", nodes, "--tasks", tasks, "--json", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    ChildProcess process("berth-replay", arguments);
    const int code = process.Wait();
    return Outcome{code, process.out(), process.err()};
  };
  const Outcome replayed = run({"--through", url});
  ASSERT_EQ(replayed.code, 0) << replayed.err;
  const Json result = Json::parse(replayed.out);
  EXPECT_EQ(result["policy"], url);
  EXPECT_GE(result["placed"], 3) << "six GPUs, at most two a pod";
  EXPECT_GE(result["refused"], 1) << "pods ask for 130 %";
  EXPECT_TRUE(result["gpus_without_watts"].is_number()) << "the books know the GPUs";
  // Whole GPUs: the books of Berth and of the replay agree, so no bind is refused.
  EXPECT_EQ(run({"--through", url, "--policy", "best-fit"}).err,
            "berth-replay: policy: want none with --through URL, which decides\n");
  EXPECT_EQ(run({"--through", url, "--with-departures"}).code, 1);
  EXPECT_EQ(run({"--through", "nonsense"}).code, 2);
}

}  // namespace
}  // namespace berth::test::extender_cli_test
