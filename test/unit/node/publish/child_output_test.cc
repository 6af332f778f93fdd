// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_publisher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace berth::test::child_output_test {
namespace {

using node::ChildLimits;
using node::ChildRunner;
using std::chrono::milliseconds;

Result<std::string> Output(const std::string& script, const ChildLimits& limits = {}) {
  ChildRunner runner;
  return runner.Output({"/bin/sh", "-c", script}, limits);
}

std::string ProblemOf(const Result<std::string>& output) {
  return output ? "none" : output.error().message;
}

TEST(ChildOutput, IsWhatTheChildPrinted) {
  const auto output = Output("echo '{}'; sleep 0.1; echo more");
  ASSERT_TRUE(output) << output.error().message;
  EXPECT_EQ(*output, "{}\nmore\n");
}

TEST(ChildOutput, OfAChildThatHangsIsItsDeadline) {
  ChildLimits limits;
  limits.time = milliseconds(100);
  EXPECT_EQ(ProblemOf(Output("echo half; exec sleep 60", limits)), "/bin/sh: took too long");
  EXPECT_EQ(ProblemOf(Output("exec >&-; exec sleep 60", limits)),
            "/bin/sh: closed its output and did not end");
}

TEST(ChildOutput, OfAChildThatCrashesSaysHow) {
  EXPECT_EQ(ProblemOf(Output("kill -SEGV $$")), "/bin/sh: ended by signal 11");
  EXPECT_EQ(ProblemOf(Output("exit 3")), "/bin/sh: ended with status 3");
}

TEST(ChildOutput, IsBounded) {
  ChildLimits limits;
  limits.bytes = 1000;
  EXPECT_EQ(ProblemOf(Output("yes", limits)),
            "/bin/sh: want at most 1000 bytes of output, got more");
}

TEST(ChildOutput, IsGivenUpAtOnce) {
  ChildLimits limits;
  limits.give_up = [] { return true; };
  EXPECT_EQ(ProblemOf(Output("exec sleep 60", limits)), "/bin/sh: given up");
}

TEST(ChildOutput, OfAProgramThatIsNotThereSaysWhich) {
  ChildRunner runner;
  EXPECT_EQ(ProblemOf(runner.Output({"/nowhere/berth-node"}, {})),
            "/nowhere/berth-node: cannot be started: No such file or directory");
  EXPECT_EQ(ProblemOf(runner.Output({}, {})), "want a program to start, got none");
}

}  // namespace
}  // namespace berth::test::child_output_test
