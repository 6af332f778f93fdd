// SPDX-License-Identifier: Apache-2.0
#include "server/service/worker_pool.h"

#include <atomic>
#include <latch>

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

}  // namespace
}  // namespace berth::worker_pool_test
