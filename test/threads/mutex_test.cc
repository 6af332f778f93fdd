// SPDX-License-Identifier: Apache-2.0
#include "base/mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/check.h"

namespace berth::mutex_test {
namespace {

class Turnstile {
 public:
  void WaitUntilOpen() BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!open_) opened_.Wait(mutex_);
    ++passed_;  // the lock is held again: nothing is lost
  }
  void Open() BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    open_ = true;
    opened_.NotifyAll();
  }
  [[nodiscard]] int passed() BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return passed_;
  }

 private:
  Mutex mutex_;
  CondVar opened_;
  bool open_ BERTH_GUARDED_BY(mutex_) = false;
  int passed_ BERTH_GUARDED_BY(mutex_) = 0;
};

TEST(CondVar, WakesEveryWaiterAndGivesTheMutexBack) {
  constexpr int kWaiters = 8;
  Turnstile turnstile;
  {
    std::vector<std::jthread> waiters;
    for (int i = 0; i < kWaiters; ++i) waiters.emplace_back([&] { turnstile.WaitUntilOpen(); });
    EXPECT_EQ(turnstile.passed(), 0);
    turnstile.Open();
  }
  EXPECT_EQ(turnstile.passed(), kWaiters);
}

TEST(MutexLock, KeepsIncrementsFromThreadsApart) {
  constexpr int kThreads = 4, kEach = 1000;
  Turnstile open;
  open.Open();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) open.WaitUntilOpen();
      });
    }
  }
  EXPECT_EQ(open.passed(), kThreads * kEach);
}

TEST(CheckDeathTest, EndsTheProcessWithFileAndCondition) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  const int gpus = 3;
  BERTH_CHECK(gpus == 3);
  EXPECT_DEATH(BERTH_CHECK(gpus == 4), "mutex_test.cc:[0-9]+: invariant broken: gpus == 4");
}

}  // namespace
}  // namespace berth::mutex_test
