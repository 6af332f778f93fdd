// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/pod_writes.h"

#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "test/support/eventually.h"

namespace berth::test::api_node_holder_test {
namespace {

using Json = nlohmann::json;
using kube::ApiNodeHolder;
using std::chrono::seconds;

class PatchedServer final : public kube::ApiClient {
 public:
  Result<kube::ApiResponse> Send(const kube::ApiRequest& request) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    return kube::ApiResponse{status, R"({"message":"nodes is forbidden"})", {}};
  }
  Result<kube::ApiResponse> Stream(const std::string&, Duration, const std::stop_token&,
                                   const kube::StreamSink&) override {
    return Fail(Errc::kUnavailable, "no streams");
  }
  std::vector<kube::ApiRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int status = 200;

 private:
  std::mutex mutex_;
  std::vector<kube::ApiRequest> requests_;
};

struct Closed final : kube::WriteFence {
  [[nodiscard]] Instant WritableUntil() const override { return Instant::min(); }
};

class ApiNodeHolderTest : public testing::Test {
 protected:
  ApiNodeHolderTest()
      : holder_(server_, clock_, fence_, [this](const std::string& problem) {
          const std::lock_guard lock(mutex_);
          problems_.push_back(problem);
        }) {}
  // Of the only request so far but `before`.
  Json Annotations(std::size_t before = 0) {
    EXPECT_TRUE(Eventually([&] { return server_.requests().size() > before; }, seconds(5)));
    return Json::parse(server_.requests().back().body)["metadata"]["annotations"];
  }

  const std::string ca_{wire::kHoldKeys[0]}, karpenter_{wire::kHoldKeys[1]};
  const std::string mark_{wire::kHoldMark};
  SystemClock clock_;
  kube::NoFence fence_;
  PatchedServer server_;
  std::mutex mutex_;
  std::vector<std::string> problems_;
  ApiNodeHolder holder_;
};

TEST_F(ApiNodeHolderTest, SetsBothKeysAndNamesThemAsItsOwn) {
  holder_.Hold("n1", true);
  EXPECT_EQ(Annotations(),
            (Json{{ca_, "true"}, {karpenter_, "true"}, {mark_, ca_ + "," + karpenter_}}));
  const kube::ApiRequest request = server_.requests().front();
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_EQ(request.path, "/api/v1/nodes/n1");
  EXPECT_EQ(request.content_type, "application/merge-patch+json");
}

TEST_F(ApiNodeHolderTest, ReportsOnceThatItHasNoRightAndAsksNoMore) {
  server_.status = 403;
  for (int i = 0; i < 10; ++i) holder_.Hold("n" + std::to_string(i), true);
  ASSERT_TRUE(Eventually(
      [&] {
        const std::lock_guard lock(mutex_);
        return !problems_.empty();
      },
      seconds(5)));
  EXPECT_EQ(server_.requests().size(), 1u);
}

TEST_F(ApiNodeHolderTest, KnowsTheNodesThatAreHeldAlsoByAProcessBeforeThisOne) {
  wire::NodeHold hold;
  hold.Take(mark_, karpenter_);
  hold.Take(karpenter_, "true");
  holder_.Saw("n1", hold);
  EXPECT_EQ(holder_.Held(), std::set<std::string>{"n1"});
  holder_.Hold("n1", false);
  EXPECT_EQ(Annotations(), (Json{{karpenter_, nullptr}, {mark_, nullptr}}));
  holder_.Saw("n1", {});
  EXPECT_EQ(holder_.Held(), std::set<std::string>());
}

TEST(ApiNodeHolder, WritesNothingWhileAnotherProcessLeads) {
  SystemClock clock;
  Closed closed;
  PatchedServer server;
  {
    ApiNodeHolder holder(server, clock, closed, [](const std::string&) {});
    holder.Hold("n", true);
  }
  EXPECT_EQ(server.requests().size(), 0u);
}

struct HoldCase {
  const char* what;
  std::string mark, ca, karpenter;  // as the node has them
  bool hold;
  std::string patch;  // annotations; "": nothing
};

TEST(NodeHold, TouchesNoAnnotationOfOthers) {
  const std::string ca(wire::kHoldKeys[0]), karpenter(wire::kHoldKeys[1]), mark(wire::kHoldMark);
  const std::vector<HoldCase> cases = {
      {"others have set one", "", "true", "", true,
       Json{{karpenter, "true"}, {mark, karpenter}}.dump()},
      {"others have set both", "", "true", "false", true, ""},
      {"it is held", ca + "," + karpenter, "true", "true", true, ""},
      {"others have changed one", ca + "," + karpenter, "false", "true", false,
       Json{{karpenter, nullptr}, {mark, nullptr}}.dump()},
      {"somebody took one off", ca, "", "", false, Json{{mark, nullptr}}.dump()},
      {"nothing is ours", "", "true", "true", false, ""}};
  for (const HoldCase& of : cases) {
    wire::NodeHold hold;
    hold.Take(mark, of.mark);
    if (!of.ca.empty()) hold.Take(ca, of.ca);
    if (!of.karpenter.empty()) hold.Take(karpenter, of.karpenter);
    const std::string patch = wire::EncodeHold(hold, of.hold);
    if (of.patch.empty()) {
      EXPECT_EQ(patch, "") << of.what;
    } else {
      EXPECT_EQ(Json::parse(patch)["metadata"]["annotations"], Json::parse(of.patch)) << of.what;
    }
  }
}

TEST(NodeHold, AnAnnotationThatIsThereButEmptyIsSomebodysToo) {
  wire::NodeHold hold;
  hold.Take(wire::kHoldKeys[0], "");
  hold.Take(wire::kHoldKeys[1], "");
  EXPECT_EQ(wire::EncodeHold(hold, true), "");
}

}  // namespace
}  // namespace berth::test::api_node_holder_test
