// SPDX-License-Identifier: Apache-2.0
#include "server/service/verbs.h"

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

namespace berth::worker_pool_test {
namespace {

TEST(WorkerPool, RunsAsManyJobsAtOnceAsItHasThreads) {
  std::atomic<int> done{0};
  {
    std::latch all_there(4);
    WorkerPool pool(4, 100);
    for (int i = 0; i < 4; ++i) {
      EXPECT_TRUE(pool.Submit([&] {
        all_there.arrive_and_wait();
        ++done;
      }));
    }
  }
  EXPECT_EQ(done, 4);
}

TEST(WorkerPool, RunsWhatWaitsBeforeItEnds) {
  std::atomic<int> done{0};
  {
    WorkerPool pool(2, 1000);
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(pool.Submit([&] { ++done; }));
  }
  EXPECT_EQ(done, 1000);
}

TEST(WorkerPool, RefusesMoreThanMayWait) {
  std::latch begun(1), may_end(1);
  WorkerPool pool(1, 2);
  EXPECT_TRUE(pool.Submit([&] {
    begun.count_down();
    may_end.wait();
  }));
  begun.wait();
  EXPECT_TRUE(pool.Submit([] {}));
  EXPECT_TRUE(pool.Submit([] {}));
  EXPECT_FALSE(pool.Submit([] {}));
  may_end.count_down();
}

// A thread counts as idle some time after its job has ended.
TEST(WorkerPool, GivesAJobToTheThreadThatWasBusyLast) {
  WorkerPool pool(8, 100);
  std::thread::id last;
  int in_a_row = 0;
  for (int i = 0; i < 1000 && in_a_row < 10; ++i) {
    std::latch done(1);
    std::thread::id id;
    ASSERT_TRUE(pool.Submit([&] {
      id = std::this_thread::get_id();
      done.count_down();
    }));
    done.wait();
    in_a_row = id == last ? in_a_row + 1 : 0;
    last = id;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(in_a_row, 10);
}

}  // namespace
}  // namespace berth::worker_pool_test
