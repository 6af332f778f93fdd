// SPDX-License-Identifier: Apache-2.0
//
// berth-lab as it is called.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "test/support/child_process.h"
#include "test/support/test_certificates.h"

namespace berth::test::lab_cli_test {
namespace {

TEST(BerthLab, WritesAConfigurationThatBerthTakes) {
  const TemporaryFolder folder;
  const std::string nodes = folder.WriteText("nodes.csv",
                                             "sn,cpu_milli,memory_mib,gpu,model\n"
                                             "n1,64000,262144,8,T4\nn2,32000,262144,4,T4\n");
  const std::string tasks = folder.WriteText("tasks.csv",
                                             "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
                                             "a,4000,1024,1,500\nb,8000,1024,1,1000\n"
                                             "c,8000,1024,2,1000\nd,8000,1024,8,1000\n");
  const std::string out = folder.WriteText("tuned.yaml", "");
  const Outcome tuned =
      RunProgram("berth-lab", {"tune", "--traces", tasks, "--nodes", nodes, "--scorers",
                               "link-quality,numa-locality", "--budget", "6", "--seeds", "1",
                               "--holdout-seeds", "1", "--out", out});
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("GPUs allocated, %, held-out seeds"), std::string::npos) << tuned.out;
  ChildProcess check("berth", {"config", "check", out});
  EXPECT_EQ(check.Wait(), 0) << check.err();
  EXPECT_NE(ReadFile(out)->find("profile: tuned"), std::string::npos);
}

TEST(BerthLab, WritesWhatEachPolicyLosesInEachScenario) {
  const std::vector<std::string> arguments = {
      "waves", "--policies", "expected-waste,best-fit", "--seeds", "1", "--json", "-"};
  ChildProcess first("berth-lab", arguments), second("berth-lab", arguments);
  ASSERT_EQ(first.Wait(), 0) << first.err();
  ASSERT_EQ(second.Wait(), 0);
  EXPECT_EQ(first.out(), second.out());
  const auto json = nlohmann::json::parse(first.out());
  EXPECT_EQ(json["results"].size() % 2, 0U);
  const auto& all = json["results"][json["results"].size() - 2];
  EXPECT_EQ(all["scenario"], "all");
  EXPECT_EQ(all["policy"], "expected-waste");
  EXPECT_LE(all["lost_pct"], 5);
}

}  // namespace
}  // namespace berth::test::lab_cli_test
