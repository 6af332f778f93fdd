// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/scheduling_queue.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace berth::replay::scheduling_queue_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

Instant At(Duration since_start) { return Instant(since_start); }

// The pods whose turn it is, in order; none of them fails.
std::vector<SchedulingQueue::Pod> Drain(SchedulingQueue& queue) {
  std::vector<SchedulingQueue::Pod> pods;
  while (const auto turn = queue.Next()) pods.push_back(turn->pod);
  return pods;
}

// The only pod is tried at that time, and finds no place.
void TryInVain(SchedulingQueue& queue, Instant now) {
  const auto turn = queue.Next();
  ASSERT_TRUE(turn.has_value());
  queue.Failed(*turn, now);
}

TEST(SchedulingQueue, PutsPriorityBeforeTimeAndTimeBeforeNumber) {
  SchedulingQueue queue;
  queue.Add(3, 0, At(seconds(1)));
  queue.Add(2, 0, At(seconds(2)));
  queue.Add(1, 0, At(seconds(2)));
  queue.Add(4, 7, At(seconds(3)));
  EXPECT_EQ(Drain(queue), (std::vector<SchedulingQueue::Pod>{4, 3, 1, 2}));
}

TEST(SchedulingQueue, LeavesAPodThatDoesNotFitAloneUntilSomethingHappens) {
  SchedulingQueue queue;
  queue.Add(1, 0, At(seconds(0)));
  TryInVain(queue, At(seconds(0)));
  queue.Tick(At(seconds(60)));
  EXPECT_EQ(queue.unschedulable(), 1U);
  EXPECT_FALSE(queue.Next().has_value());
  queue.Event(At(seconds(61)));
  EXPECT_EQ(queue.active(), 1U) << "its backoff was over long ago";
}

TEST(SchedulingQueue, DoublesTheBackoffUpToTenSeconds) {
  SchedulingQueue queue;
  Instant now = At(seconds(0));
  queue.Add(1, 0, now);
  std::vector<seconds> waited;
  for (int failure = 0; failure < 6; ++failure) {
    TryInVain(queue, now);
    queue.Event(now);
    EXPECT_EQ(queue.backing_off(), 1U);
    const Instant next = queue.NextTick().value();
    waited.push_back(std::chrono::duration_cast<seconds>(next - now));
    queue.Tick(next - milliseconds(1));
    EXPECT_EQ(queue.active(), 0U);
    queue.Tick(next);
    EXPECT_EQ(queue.active(), 1U);
    now = next;
  }
  EXPECT_EQ(waited, (std::vector<seconds>{seconds(1), seconds(2), seconds(4), seconds(8),
                                          seconds(10), seconds(10)}));
}

TEST(SchedulingQueue, SeesTheEndOfABackoffOnWholeSeconds) {
  SchedulingQueue queue;
  queue.Add(1, 0, At(milliseconds(300)));
  TryInVain(queue, At(milliseconds(300)));
  queue.Event(At(milliseconds(400)));
  EXPECT_EQ(queue.NextTick(), At(seconds(2))) << "over at 1.3 s";
}

TEST(SchedulingQueue, TriesAgainUnaskedAfterFiveMinutes) {
  SchedulingQueue queue;
  queue.Add(1, 0, At(seconds(10)));
  TryInVain(queue, At(seconds(10)));
  EXPECT_EQ(queue.NextTick(), At(minutes(5) + seconds(30))) << "seen on whole half minutes";
  queue.Tick(At(minutes(5) + seconds(30)));
  EXPECT_EQ(Drain(queue), std::vector<SchedulingQueue::Pod>{1});
  EXPECT_EQ(queue.NextTick(), std::nullopt);
}

TEST(SchedulingQueue, PutsAPodThatFailedBehindThoseThatCameBeforeItsFailure) {
  SchedulingQueue queue;
  queue.Add(1, 0, At(seconds(0)));
  TryInVain(queue, At(seconds(5)));
  queue.Add(2, 0, At(seconds(4)));
  queue.Event(At(seconds(20)));
  EXPECT_EQ(Drain(queue), (std::vector<SchedulingQueue::Pod>{2, 1}));
}

TEST(SchedulingQueue, CountsTheFailuresOfAPod) {
  SchedulingQueue queue;
  queue.Add(1, 5, At(seconds(0)));
  TryInVain(queue, At(seconds(0)));
  queue.Event(At(seconds(2)));
  const auto turn = queue.Next();
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->failures, 1);
  EXPECT_EQ(turn->priority, 5);
}

}  // namespace
}  // namespace berth::replay::scheduling_queue_test
