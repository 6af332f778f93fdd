// SPDX-License-Identifier: Apache-2.0
#include "scoring/earmarks/pod_ends.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace berth::test::job_ends_test {
namespace {

using std::chrono::seconds;

PodRequest PodOfJob(const std::string& uid) {
  PodRequest pod;
  pod.id.namespace_name = "ml";
  pod.controller = uid;
  pod.grace_seconds = 0;
  return pod;
}

// One thread hears of Jobs, one takes what is known, others ask for pods that come.
TEST(JobEndsThreads, WhatIsToldAndCopiedAndAskedAtOnceIsWhole) {
  JobEndTable table;
  std::atomic<bool> over = false;
  std::atomic<int> wrong = 0;
  const auto asks = [&](const auto& of) {
    while (!over) {
      const auto end = of();
      if (end && *end != WallTime(seconds(100)) && *end != WallTime(seconds(50))) ++wrong;
    }
  };
  std::thread requests([&] { asks([&] { return table.Of(PodOfJob("7"), WallTime()); }); });
  std::thread earmarks(
      [&] { asks([&] { return table.Newest()->Of(PodOfJob("7"), WallTime()); }); });
  for (int round = 0; round < 200; ++round) {
    table.ListBegins();
    for (int job = 0; job < 20; ++job) {
      const std::int64_t limit = round % 2 == 0 ? 100 : 50;
      table.Put({"ml", std::to_string(job), WallTime(), limit});
    }
    table.Remove({"ml", "7"});
    table.ListEnds();
  }
  over = true;
  requests.join();
  earmarks.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table.jobs(), 19U);
  EXPECT_EQ(table.Newest()->Of(PodOfJob("8"), WallTime()), WallTime(seconds(50)));
}

}  // namespace
}  // namespace berth::test::job_ends_test
