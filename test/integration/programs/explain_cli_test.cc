// SPDX-License-Identifier: Apache-2.0
//
// `berth explain` and `berth top` against a running berth.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/child_process.h"
#include "test/support/running_berth.h"

namespace berth::test::explain_cli_test {
namespace {

class ExplainCommands : public testing::Test {
 protected:
  void SetUp() override {
    RawClient client = berth_.Connect();
    berth::test::Ask(client, "filter", ArgsFor("1", 4));
    berth::test::Ask(client, "bind",
                     R"({"PodName":"pod-1","PodNamespace":"ns","PodUID":"1","Node":"n2"})");
    berth::test::Ask(client, "filter", ArgsFor("2", 4));
  }
  Outcome Ask(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"--server", "http://127.0.0.1:" + std::to_string(port_)});
    return RunProgram("berth", arguments);
  }

  const TemporaryFolder folder_;
  Running berth_{folder_, kCluster};
  const int port_ = berth_.port();
};

TEST_F(ExplainCommands, APodThatWaitsIsExplainedAsTextAndAsJson) {
  const Outcome text = Ask({"explain", "pod", "ns/pod-2"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with("ns/pod-2: fits none of 2 nodes; nearest is n2")) << text.out;
  EXPECT_NE(text.out.find("fits when ns/pod-1 ends"), std::string::npos) << text.out;
  const Outcome json = Ask({"explain", "pod", "ns/pod-2", "--json"});
  EXPECT_EQ(Json::parse(json.out)["nearest"][0]["node"], "n2");
}

TEST_F(ExplainCommands, APodThatIsBoundIsExplained) {
  const Outcome text = Ask({"explain", "pod", "ns/pod-1"});
  EXPECT_TRUE(text.out.starts_with("ns/pod-1: is on n2 with GPU 0, GPU 1, GPU 2, GPU 3; "))
      << text.out;
}

TEST_F(ExplainCommands, PrintNodesAndModels) {
  EXPECT_NE(Ask({"explain", "node", "n2"}).out.find("GPU 0,1,2,3: held by ns/pod-1"),
            std::string::npos);
  EXPECT_EQ(Json::parse(Ask({"top", "--json"}).out)["models"][0]["idle"], 2);
  EXPECT_NE(Ask({"top"}).out.find("2 on n1"), std::string::npos);
}

TEST_F(ExplainCommands, WhatTheServerDoesNotKnowIsAFailureInOneLine) {
  const Outcome none = Ask({"explain", "pod", "ns/none"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_NE(none.err.find("pod ns/none is not known"), std::string::npos) << none.err;
  EXPECT_EQ(Ask({"explain", "gang", "ns/none"}).code, 1);
}

TEST_F(ExplainCommands, RefuseAnInvalidNameOrAddressWithoutAsking) {
  const Outcome name = Ask({"explain", "pod", "pod-2"});
  EXPECT_EQ(name.code, 1);
  EXPECT_EQ(name.err, "berth: want NAMESPACE/NAME, or NAME with --namespace, got \"pod-2\"\n");
  const Outcome address = RunProgram("berth", {"top", "--server", "https://berth"});
  EXPECT_EQ(address.code, 1);
  EXPECT_NE(address.err.find("want http://HOST:PORT"), std::string::npos) << address.err;
  EXPECT_EQ(RunProgram("berth", {"top", "--server", "http://127.0.0.1:1"}).code, 1);
}

}  // namespace
}  // namespace berth::test::explain_cli_test
