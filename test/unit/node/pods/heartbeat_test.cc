// SPDX-License-Identifier: Apache-2.0
#include "node/guard/guard.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "node/interposer/ports.h"

namespace berth::test::heartbeat_test {
namespace {

TEST(CallWatch, ACallThatIsLateIsSeenUntilItEnds) {
  node::CallWatch calls;
  EXPECT_TRUE(calls.Idle());
  const node::CallWatch::Call in_time(calls, std::chrono::minutes(1));
  EXPECT_FALSE(calls.Idle());
  EXPECT_TRUE(calls.InTime({}));
  {
    const node::CallWatch::Call late(calls, -std::chrono::seconds(1));
    EXPECT_FALSE(calls.InTime({}));
    EXPECT_TRUE(calls.InTime(std::chrono::seconds(30)));
  }
  EXPECT_TRUE(calls.InTime({}));
}

TEST(Heartbeat, OfAnotherProcessIsSeen) {
  Result<node::Heartbeat> heartbeat = node::Heartbeat::Create();
  ASSERT_TRUE(heartbeat);
  EXPECT_FALSE(heartbeat->Age());
  const pid_t child = fork();
  if (child == 0) {
    Result<node::Heartbeat> joined = node::Heartbeat::Join(heartbeat->descriptor());
    if (!joined) _exit(1);
    joined->Beat();
    joined->SetKubeletKeepsBoth(true);
    _exit(0);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(heartbeat->Age());
  EXPECT_LT(*heartbeat->Age(), std::chrono::minutes(1));
  EXPECT_TRUE(heartbeat->KubeletKeepsBoth());
  heartbeat->Reset();
  EXPECT_FALSE(heartbeat->Age());
}

TEST(Heartbeat, ADescriptorOfNothingIsRefused) { EXPECT_FALSE(node::Heartbeat::Join(-1)); }

}  // namespace
}  // namespace berth::test::heartbeat_test
