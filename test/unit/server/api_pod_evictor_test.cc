// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/pod_writes.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace berth::test::api_pod_evictor_test {
namespace {

using kube::ApiPodEvictor;
using Outcome = PodEvictor::Outcome;

// Answers with that status; 0: not at all.
class EvictingServer final : public kube::ApiClient {
 public:
  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override {
    requests.push_back(request);
    if (status == 0) return Fail(Errc::kUnavailable, "nobody is there");
    return kube::ApiResponse{
        status, R"({"message":"pods \")" + request.path + R"(\": )" + why + R"("})", {}};
  }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams");
  }
  int status = 201;
  std::string why = "no";
  std::vector<kube::ApiRequest> requests;
};

struct Fence final : kube::WriteFence {
  [[nodiscard]] Instant WritableUntil() const override { return until; }
  void WriteEnds(std::size_t, bool is_answered) override { answered = is_answered; }
  Instant until = Instant::max();
  std::optional<bool> answered;
};

class ApiPodEvictorTest : public testing::Test {
 protected:
  Outcome Evict(int status) {
    server_.status = status;
    return evictor_.Evict({"uid-1", "team", "low"});
  }
  EvictingServer server_;
  SystemClock clock_;
  Fence fence_;
  std::vector<std::string> problems_;
  ApiPodEvictor evictor_{server_, clock_, fence_,
                         [this](const std::string& problem) { problems_.push_back(problem); }};
};

TEST_F(ApiPodEvictorTest, AsksForTheEvictionOfThatVeryPod) {
  EXPECT_EQ(Evict(201), Outcome::kEvicted);
  const kube::ApiRequest& request = server_.requests.front();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/api/v1/namespaces/team/pods/low/eviction");
  EXPECT_LE(request.timeout, ApiPodEvictor::kMostPerEviction);
  const auto body = nlohmann::json::parse(request.body);
  EXPECT_EQ(body["apiVersion"], "policy/v1");
  EXPECT_EQ(body["kind"], "Eviction");
  EXPECT_EQ(body["metadata"]["name"], "low");
  EXPECT_EQ(body["metadata"]["namespace"], "team");
  EXPECT_EQ(body["deleteOptions"]["preconditions"]["uid"], "uid-1");
}

TEST_F(ApiPodEvictorTest, AnAnswerSaysWhatBecameOfIt) {
  EXPECT_EQ(Evict(404), Outcome::kEvicted) << "it is gone";
  EXPECT_EQ(Evict(409), Outcome::kBlocked) << "somebody changed it in that moment";
  server_.why = "Precondition failed: UID in precondition: uid-1, UID in object meta: uid-2";
  EXPECT_EQ(Evict(409), Outcome::kEvicted) << "another pod has its name";
  server_.why = "no";
  EXPECT_EQ(Evict(429), Outcome::kBlocked) << "a budget does not allow it";
  EXPECT_TRUE(problems_.empty());
  EXPECT_EQ(Evict(403), Outcome::kFailed);
  EXPECT_EQ(Evict(403), Outcome::kFailed);
  EXPECT_EQ(problems_.size(), 1u) << "it is reported once";
  EXPECT_EQ(Evict(0), Outcome::kUnknown);
  EXPECT_EQ(fence_.answered, false) << "it may be carried out yet";
  EXPECT_EQ(problems_.size(), 2u);
}

TEST_F(ApiPodEvictorTest, AsksNothingWhileAnotherProcessLeads) {
  fence_.until = clock_.Now();
  EXPECT_EQ(Evict(201), Outcome::kFailed);
  EXPECT_TRUE(server_.requests.empty());
}

TEST_F(ApiPodEvictorTest, ANameThatIsNoneLeadsNowhere) {
  EXPECT_EQ(evictor_.Evict({"uid", "team/../other", "x"}), Outcome::kFailed);
  EXPECT_TRUE(server_.requests.empty());
}

}  // namespace
}  // namespace berth::test::api_pod_evictor_test
