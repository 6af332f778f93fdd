// SPDX-License-Identifier: Apache-2.0
#include "node/facts/node_facts.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::test::node_facts_test {
namespace {

using node::NodeFacts;
using node::ParseFacts;

NodeFacts Sample() {
  NodeFacts facts;
  facts.gpus = {{0, "GPU-a", "0000:17:00.0", 0}, {1, "GPU-b", "", {}}};
  facts.mig = {{2, "1g.10gb", 4, "MIG-x"}};
  facts.annotations = {{"berth.dev/gpu-uuids", "GPU-a,GPU-b"}};
  facts.problems = {"NVML: GPU 3: GPU is lost"};
  return facts;
}

std::string ProblemOf(const std::string& text) {
  const auto facts = ParseFacts(text);
  return facts ? "none" : facts.error().message;
}

TEST(NodeFacts, AreReadBackAsTheyWereWritten) {
  const std::string text = ToJson(Sample());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto facts = ParseFacts(text);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(*facts, Sample());
}

TEST(NodeFacts, OfNothingAreEmpty) {
  const auto facts = ParseFacts("{}");
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(*facts, NodeFacts());
}

TEST(NodeFacts, ThatCannotBeReadSayWhere) {
  EXPECT_EQ(ProblemOf(""), "want the JSON object of the facts, got something else");
  EXPECT_EQ(ProblemOf("[]"), "want the JSON object of the facts, got something else");
  EXPECT_NE(ProblemOf(R"({"gpus":[{"index":64,"id":"GPU-a"}]})").find("facts.gpus[0].index"),
            std::string::npos);
  EXPECT_EQ(ProblemOf(R"({"gpus":[{"index":0}]})"), "facts.gpus[0].id: want 1..100 bytes, got 0");
  EXPECT_EQ(ProblemOf(R"({"annotations":{"berth.dev/mig":1}})"),
            "facts.annotations[berth.dev/mig]: want a text");
}

TEST(NodeFacts, AreBounded) {
  std::string gpus;
  for (int i = 0; i < 65; ++i) gpus += R"({"index":0,"id":"GPU-a"},)";
  gpus.pop_back();
  EXPECT_EQ(ProblemOf(R"({"gpus":[)" + gpus + "]}"), "facts.gpus[64]: want at most 64");
  EXPECT_EQ(ProblemOf(std::string((256 << 10) + 1, ' ')),
            "want at most 262144 bytes of facts, got 262145");
  const auto facts = ParseFacts(R"({"problems":[")" + std::string(1000, 'x') + R"("]})");
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->problems[0].size(), node::kMostProblemBytes);
}

}  // namespace
}  // namespace berth::test::node_facts_test
