// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/work_queue.h"

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/eventually.h"

namespace berth::kube::work_queue_test {
namespace {

using test::Eventually;

// A queue for three; its thread is held at the item "hold" until it is released.
class WorkQueueTest : public testing::Test {
 protected:
  void Hold() {
    ASSERT_TRUE(queue_.PushBack("hold"));
    ASSERT_TRUE(Eventually([&] { return held_.load(); }));
  }
  void Work(const std::string& item) {
    if (item == "hold") {
      held_ = true;
      while (!released_ && queue_.Pause(std::chrono::milliseconds(1))) {
      }
    }
    const MutexLock lock(mutex_);
    done_.push_back(item);
  }
  std::vector<std::string> done() {
    const MutexLock lock(mutex_);
    return done_;
  }

  std::atomic<bool> held_{false}, released_{false};
  Mutex mutex_;
  std::vector<std::string> done_ BERTH_GUARDED_BY(mutex_);
  WorkQueue<std::string> queue_{3, [this](const std::string& item) { Work(item); }};
};

TEST_F(WorkQueueTest, WorksOffInOrderAndWhatIsUrgentFirst) {
  Hold();
  EXPECT_TRUE(queue_.PushBack("a"));
  EXPECT_TRUE(queue_.PushBack("b"));
  EXPECT_TRUE(queue_.PushFront("urgent"));
  released_ = true;
  ASSERT_TRUE(Eventually([&] { return done().size() == 4; }));
  EXPECT_EQ(done(), (std::vector<std::string>{"hold", "urgent", "a", "b"}));
}

TEST_F(WorkQueueTest, IsBoundedAndDropsTheLastForWhatIsUrgent) {
  Hold();
  for (const char* item : {"a", "b", "c"}) EXPECT_TRUE(queue_.PushBack(item));
  EXPECT_FALSE(queue_.PushBack("d"));
  EXPECT_FALSE(queue_.PushFront("urgent"));
  released_ = true;
  ASSERT_TRUE(Eventually([&] { return done().size() == 4; }));
  EXPECT_EQ(done(), (std::vector<std::string>{"hold", "urgent", "a", "b"}));
}

TEST_F(WorkQueueTest, EndsInTheMiddleOfAPause) {
  Hold();
  EXPECT_TRUE(queue_.PushBack("never"));
}  // the destructor would wait for ever

}  // namespace
}  // namespace berth::kube::work_queue_test
