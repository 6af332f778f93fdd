// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/sim_clock.h"
#include "server/kube/lead/write_journal.h"

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

namespace berth::kube::retry_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class NoClient final : public ApiClient {
 public:
  Result<ApiResponse> Send(const ApiRequest&) override { return Fail(Errc::kUnavailable, "none"); }
  Result<ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                             const StreamSink&) override {
    return Fail(Errc::kUnavailable, "none");
  }
};

class FencedRetryTest : public testing::Test, protected WriteFence {
 protected:
  [[nodiscard]] Instant WritableUntil() const override { return writable_until_; }

  Status Retry(const std::function<Attempt(Duration left)>& attempt) {
    return FencedRetry(write_, deadline_, {milliseconds(100), seconds(1), 1}, attempt);
  }

  NoClient client_;
  SimClock clock_;
  Instant deadline_ = clock_.Now() + seconds(10);
  Instant writable_until_ = Instant::max();
  std::vector<Duration> sleeps_;
  const WriteContext write_{
      .client = client_, .clock = clock_, .fence = *this, .sleep = [this](Duration time) {
        sleeps_.push_back(time);
        clock_.Advance(time);
      }};
};

Attempt Refused() { return {.status = Fail(Errc::kUnavailable, "for now")}; }

TEST(IsTransientTest, AreThoseThatMayBeAcceptedLater) {
  for (const int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(IsTransient(status));
  for (const int status : {200, 400, 401, 403, 404, 409, 410, 422}) {
    EXPECT_FALSE(IsTransient(status));
  }
}

TEST(BackoffTest, WaitsDoubleUpToTheLongestAndBeginAnew) {
  Backoff backoff(milliseconds(100), milliseconds(350), 7);
  const auto expect_within = [&](Duration low, Duration high) {
    const Duration wait = backoff.Next();
    EXPECT_GE(wait, low);
    EXPECT_LE(wait, high);
  };
  expect_within(milliseconds(50), milliseconds(100));
  expect_within(milliseconds(100), milliseconds(200));
  expect_within(milliseconds(175), milliseconds(350));
  expect_within(milliseconds(175), milliseconds(350));
  backoff.Reset();
  expect_within(milliseconds(50), milliseconds(100));
  EXPECT_EQ(backoff.Next(seconds(3)), seconds(3)) << "as the API server asks";
}

TEST(BackoffTest, ThoseThatFailTogetherComeBackApart) {
  EXPECT_NE(Backoff(seconds(1), seconds(1), 1).Next(), Backoff(seconds(1), seconds(1), 2).Next());
}

TEST_F(FencedRetryTest, TriesUntilItSucceeds) {
  int attempts = 0;
  EXPECT_TRUE(Retry([&](Duration) { return ++attempts < 3 ? Refused() : Attempt{}; }));
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(sleeps_.size(), 2U);
}

TEST_F(FencedRetryTest, AFinalRefusalIsNotTriedAgain) {
  int attempts = 0;
  const Status status = Retry([&](Duration) {
    ++attempts;
    return Attempt{.status = Fail(Errc::kNotFound, "gone"), .final = true};
  });
  EXPECT_EQ(status.error().code, Errc::kNotFound);
  EXPECT_EQ(attempts, 1);
}

TEST_F(FencedRetryTest, EndsAtTheDeadlineWithTheLastRefusal) {
  const Status status = Retry([&](Duration left) {
    EXPECT_GT(left, Duration::zero());
    return Refused();
  });
  EXPECT_EQ(status.error().message, "for now");
  EXPECT_LE(clock_.Now(), deadline_);
  EXPECT_GE(clock_.Now(), deadline_ - seconds(2)) << "it used its time";
}

TEST_F(FencedRetryTest, AWaitThatTheServerAsksForAndThatEndsTooLateIsNotBegun) {
  EXPECT_FALSE(Retry([&](Duration) {
    Attempt refused = Refused();
    refused.retry_after = seconds(11);
    return refused;
  }));
  EXPECT_TRUE(sleeps_.empty());
}

TEST_F(FencedRetryTest, TriesNothingOnceTheFenceIsClosed) {
  int attempts = 0;
  const Status status = Retry([&](Duration) {
    ++attempts;
    writable_until_ = Instant::min();  // another process leads now
    return Refused();
  });
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(status.error().message, "for now");
  EXPECT_EQ(Retry([&](Duration) { return Attempt{}; }).error().code, Errc::kDeadline);
}

}  // namespace
}  // namespace berth::kube::retry_test
