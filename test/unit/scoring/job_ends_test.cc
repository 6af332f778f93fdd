// SPDX-License-Identifier: Apache-2.0
//
// What is remembered of the deadlines of Jobs, and what their owners can do to it.
#include "scoring/earmarks/pod_ends.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include <malloc.h>

#include "test/support/builders.h"

namespace berth::test::job_ends_test {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const WallTime kNow = WallTime(hours(1000));

class JobEndsTest : public testing::Test {
 protected:
  static JobDeadline Job(const std::string& uid, minutes deadline,
                         std::optional<WallTime> started = kNow,
                         const std::string& space = "team") {
    return {.namespace_name = space,
            .uid = uid,
            .started = started,
            .seconds = seconds(deadline).count()};
  }
  // From kNow on, without the pod's grace period; the pod starts ten minutes later.
  [[nodiscard]] std::optional<Duration> Left(const std::string& uid,
                                             const std::string& space = "team") const {
    const PodRequest pod = APod("p").Namespace(space).Controller(uid).Request();
    const auto end = table_.Of(pod, kNow + minutes(10));
    EXPECT_EQ(table_.Newest()->Of(pod, kNow + minutes(10)), end);
    if (!end) return std::nullopt;
    return *end - kNow - seconds(pod.grace_seconds);
  }

  JobEndTable table_;
};

TEST_F(JobEndsTest, CountFromTheStartOfTheJobAndWithTheGracePeriodOfThePod) {
  table_.Put(Job("a", minutes(60)));
  EXPECT_EQ(Left("a"), minutes(60));
  EXPECT_EQ(Left("b"), std::nullopt);
  EXPECT_EQ(Left(""), std::nullopt) << "a pod without a controller";
  EXPECT_EQ(Left("a", "other"), std::nullopt) << "a pod that names the Job of somebody else";
  PodRequest slow = APod("p").Namespace("team").Controller("a").Request();
  slow.grace_seconds = 600;
  EXPECT_EQ(table_.Of(slow, kNow), kNow + minutes(70));
}

TEST_F(JobEndsTest, AJobThatIsAboutToStartCountsFromTheStartOfThePod) {
  table_.Put(Job("a", minutes(60), std::nullopt));
  EXPECT_EQ(Left("a"), minutes(70));
  table_.Put(Job("a", minutes(60)));
  EXPECT_EQ(Left("a"), minutes(60));
}

TEST_F(JobEndsTest, TheSoonestThatWasEverSaidCounts) {
  table_.Put(Job("a", minutes(10)));
  table_.Put(Job("a", hours(10)));
  EXPECT_EQ(Left("a"), minutes(10)) << "extended";
  JobDeadline none = Job("a", minutes(0));
  table_.Put(none);
  EXPECT_EQ(Left("a"), minutes(10)) << "taken away";
  table_.Put(Job("a", minutes(5)));
  EXPECT_EQ(Left("a"), minutes(5)) << "shortened";
  table_.ListBegins();
  table_.Put(Job("a", hours(10)));
  table_.ListEnds();
  EXPECT_EQ(Left("a"), minutes(5)) << "listed anew";
  table_.Put(Job("b", minutes(10), std::nullopt));
  table_.Put(Job("b", hours(10)));
  EXPECT_EQ(Left("b"), minutes(10)) << "extended while it was about to start";
}

TEST_F(JobEndsTest, AJobThatIsResumedBeginsAnew) {
  const WallTime again = kNow + minutes(30);
  table_.Put(Job("a", minutes(10)));
  table_.Put(Job("a", minutes(60), again));
  EXPECT_EQ(Left("a"), minutes(90));
  JobDeadline suspended = Job("a", minutes(60), std::nullopt);
  suspended.over = true;
  table_.Put(suspended);
  EXPECT_EQ(Left("a"), std::nullopt) << "suspended, by one that takes its start away";
  table_.Put(Job("a", minutes(20), again));
  EXPECT_EQ(Left("a"), minutes(50));
  table_.Put(Job("a", minutes(0), kNow + hours(1)));
  EXPECT_EQ(Left("a"), std::nullopt) << "and without a deadline now";
}

TEST_F(JobEndsTest, AreForgottenWithTheJob) {
  for (const char* const uid : {"a", "b", "c", "d"}) table_.Put(Job(uid, minutes(60)));
  JobDeadline over = Job("a", minutes(60));
  over.over = true;
  table_.Put(over);
  EXPECT_EQ(Left("a"), std::nullopt);
  table_.Remove(Job("b", minutes(60)));
  EXPECT_EQ(Left("b"), std::nullopt);
  table_.Remove(Job("b", minutes(60)));
  table_.ListBegins();
  table_.Put(Job("c", minutes(60)));
  table_.ListBegins();  // the first one broke off
  table_.Put(Job("d", minutes(60)));
  table_.ListEnds();
  EXPECT_EQ(Left("c"), std::nullopt);
  EXPECT_EQ(Left("d"), minutes(60));
  EXPECT_EQ(table_.jobs(), 1u);
}

TEST_F(JobEndsTest, AJobWithoutADeadlineTakesNoPlace) {
  for (int i = 0; i < 100; ++i) table_.Put(Job(std::to_string(i), minutes(0)));
  EXPECT_EQ(table_.jobs(), 0u);
}

// Who floods a namespace gets none of its words forgotten, and takes no place of others.
TEST_F(JobEndsTest, ANamespaceHasItsPart) {
  table_.Put(Job("mine", minutes(60)));
  table_.Put(Job("liar", minutes(10), kNow, "hostile"));
  for (int i = 0; i < 20'000; ++i) {
    table_.Put(Job(std::to_string(i), minutes(10), kNow, "hostile"));
  }
  EXPECT_EQ(table_.jobs(), 1 + JobEndTable::kMostOfNamespace);
  table_.Put(Job("liar", hours(10), kNow, "hostile"));
  EXPECT_EQ(Left("liar", "hostile"), minutes(10));
  EXPECT_EQ(Left("19999", "hostile"), std::nullopt);
  EXPECT_EQ(Left("mine"), minutes(60));
}

TEST_F(JobEndsTest, AreBoundedInAll) {
  for (int space = 0; space < 5; ++space) {
    for (int i = 0; i < 7'000; ++i) {
      table_.Put(Job(std::to_string(i), minutes(10), kNow, "hostile" + std::to_string(space)));
    }
  }
  EXPECT_EQ(table_.jobs(), JobEndTable::kMost);
  table_.Put(Job("mine", minutes(60)));
  EXPECT_EQ(table_.jobs(), JobEndTable::kMost);
  EXPECT_EQ(Left("mine"), minutes(60)) << "who has most makes place";
}

// Each Job in a namespace of its own, with the copies of before and after a change.
TEST_F(JobEndsTest, TakeNoMoreThanIsStated) {
  const std::size_t before = mallinfo2().uordblks;
  for (std::size_t i = 0; i < JobEndTable::kMost; ++i) {
    const std::string number = std::to_string(i);
    table_.Put(Job(number, minutes(60), kNow, number + std::string(63 - number.size(), 'n')));
  }
  const auto first = table_.Newest();
  table_.Put(Job("0", minutes(30), kNow, "0" + std::string(62, 'n')));
  const auto second = table_.Newest();
  EXPECT_NE(first, second);
  EXPECT_EQ(table_.jobs(), JobEndTable::kMost);
  EXPECT_LE(mallinfo2().uordblks - before, std::size_t{32} << 20);
}

TEST_F(JobEndsTest, TheNewestIsCopiedOnlyWhereSomethingHasChanged) {
  table_.Put(Job("a", minutes(60)));
  const auto newest = table_.Newest();
  table_.Put(Job("a", minutes(60)));
  table_.Put(Job("a", minutes(90)));
  table_.Put(Job("b", minutes(0)));
  table_.Remove(Job("b", minutes(0)));
  EXPECT_EQ(table_.Newest(), newest);
  table_.Put(Job("b", minutes(1)));
  EXPECT_NE(table_.Newest(), newest);
}

}  // namespace
}  // namespace berth::test::job_ends_test
