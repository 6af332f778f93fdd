// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/pod_writes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/eventually.h"

namespace berth::test::api_pod_waker_test {
namespace {

using kube::ApiPodWaker;
using std::chrono::seconds;

// Answers with these statuses, the last one again and again.
class PatchedServer final : public kube::ApiClient {
 public:
  explicit PatchedServer(std::vector<int> statuses) : statuses_(std::move(statuses)) {}
  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override {
    const std::lock_guard turn(turn_);
    const std::lock_guard lock(mutex_);
    const int status = statuses_[std::min(requests_.size(), statuses_.size() - 1)];
    requests_.push_back(request);
    return kube::ApiResponse{status, R"({"message":"so it is"})", {}};
  }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams");
  }
  // Requests wait from now on / go on.
  void Block() { turn_.lock(); }
  void Unblock() { turn_.unlock(); }
  std::vector<kube::ApiRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  const std::vector<int> statuses_;
  std::mutex turn_;
  std::mutex mutex_;
  std::vector<kube::ApiRequest> requests_;
};

struct OpenUntil final : kube::WriteFence {
  explicit OpenUntil(Instant when) : until(when) {}
  [[nodiscard]] Instant WritableUntil() const override {
    ++asked;
    return until;
  }
  const Instant until;
  mutable std::atomic<int> asked{0};
};

class ApiPodWakerTest : public testing::Test {
 protected:
  std::vector<std::string> problems() {
    const std::lock_guard lock(mutex_);
    return problems_;
  }
  const kube::OnProblem on_problem_ = [this](const std::string& problem) {
    const std::lock_guard lock(mutex_);
    problems_.push_back(problem);
  };
  SystemClock clock_;
  const OpenUntil leading_{Instant::max()};
  std::mutex mutex_;
  std::vector<std::string> problems_;
};

TEST_F(ApiPodWakerTest, WritesOneConditionOfThatVeryPod) {
  PatchedServer server({200});
  ApiPodWaker waker(server, clock_, leading_, on_problem_);
  (void)waker.Wake({"uid-1", "team", "train"});
  ASSERT_TRUE(Eventually([&] { return waker.stats().woken == 1; }, seconds(5)));
  const kube::ApiRequest request = server.requests().front();
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.path, "/api/v1/namespaces/team/pods/train/status");
  EXPECT_EQ(request.content_type, "application/strategic-merge-patch+json");
  const auto body = nlohmann::json::parse(request.body);
  EXPECT_EQ(body["metadata"]["uid"], "uid-1");
  ASSERT_EQ(body["status"]["conditions"].size(), 1u);
  EXPECT_EQ(body["status"]["conditions"][0]["type"], "berth.dev/RoomSeen");
}

// Its PATCH takes long, and it says which pods it does not take.
TEST_F(ApiPodWakerTest, WhatItTakesIsWokenAndWhatItHasNoRoomForItSays) {
  PatchedServer server({200});
  std::size_t taken = 0, refused = 0;
  server.Block();
  ApiPodWaker waker(server, clock_, leading_, on_problem_);
  for (std::size_t i = 0; i < ApiPodWaker::kMostWaiting + 100; ++i) {
    ++(waker.Wake({std::to_string(i), "team", "p" + std::to_string(i)}) ? taken : refused);
  }
  EXPECT_GE(taken, ApiPodWaker::kMostWaiting);
  EXPECT_GE(refused, 99U) << "one may be under way";
  server.Unblock();
  ASSERT_TRUE(Eventually([&] { return waker.stats().woken == taken; }, seconds(60)));
  EXPECT_TRUE(waker.Wake({"late", "team", "late"}));
  EXPECT_EQ(waker.stats().failed, 0U) << "nobody has given up on them";
}

TEST_F(ApiPodWakerTest, WithoutTheRightItSaysSoOnceAndGoesOn) {
  PatchedServer server({403});
  ApiPodWaker waker(server, clock_, leading_, on_problem_);
  for (const char* pod : {"a", "b", "c"}) (void)waker.Wake({pod, "team", pod});
  ASSERT_TRUE(Eventually([&] { return waker.stats().failed == 3; }, seconds(5)));
  EXPECT_EQ(server.requests().size(), 3u) << "a refusal is not sent again";
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_TRUE(problems().front().starts_with("the API server answered 403")) << problems().front();
}

TEST_F(ApiPodWakerTest, WhatIsRefusedForNowIsSentAgain) {
  PatchedServer server({503, 429, 200});
  ApiPodWaker waker(server, clock_, leading_, on_problem_);
  (void)waker.Wake({"a", "team", "a"});
  ASSERT_TRUE(Eventually([&] { return waker.stats().woken == 1; }, seconds(5)));
  EXPECT_TRUE(problems().empty());
}

TEST_F(ApiPodWakerTest, APodThatIsGoneIsNoProblem) {
  PatchedServer server({404, 409, 200});
  ApiPodWaker waker(server, clock_, leading_, on_problem_);
  for (const char* pod : {"gone", "replaced", "there"}) (void)waker.Wake({pod, "team", pod});
  ASSERT_TRUE(Eventually([&] { return waker.stats().woken == 1; }, seconds(5)));
  EXPECT_EQ(waker.stats().failed, 0u);
  EXPECT_TRUE(problems().empty());
}

TEST_F(ApiPodWakerTest, WhoDoesNotLeadWritesNothing) {
  PatchedServer server({200});
  const OpenUntil never(Instant::min());
  ApiPodWaker waker(server, clock_, never, on_problem_);
  (void)waker.Wake({"a", "team", "a"});
  (void)waker.Wake({"b", "team", "b"});
  ASSERT_TRUE(Eventually([&] { return never.asked == 2; }, seconds(5)));
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace berth::test::api_pod_waker_test
