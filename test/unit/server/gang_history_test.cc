// SPDX-License-Identifier: Apache-2.0
#include "server/kube/watch/gang_history.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "config/config.h"
#include "test/support/dialects.h"
#include "test/support/scripted_api_client.h"

namespace berth::kube::gang_history_test {
namespace {

using test::ScriptedApiClient;

class GangHistoryOfApi : public testing::Test {
 protected:
  // owner: "" = nobody made it.
  void Add(const std::string& name, const std::string& phase, const std::string& created,
           const std::string& owner, const std::string& gpus = "1") {
    const std::string owners =
        owner.empty() ? ""
                      : R"(,"ownerReferences":[{"apiVersion":"batch/v1","kind":"Job","name":"j",)"
                        R"("controller":true,"uid":")" +
                            owner + R"("}])";
    pods_.push_back(R"({"metadata":{"name":")" + name + R"(","namespace":"ns","uid":"uid-)" + name +
                    R"(","creationTimestamp":"2026-11-24T)" + created +
                    R"(Z","annotations":{"berth.dev/gang":"g","berth.dev/gang-size":"4"})" +
                    owners + R"(},"spec":{)" + (phase == "Pending" ? "" : R"("nodeName":"n",)") +
                    R"("containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":")" +
                    gpus + R"("}}}]},"status":{"phase":")" + phase + R"("}})");
  }
  std::vector<GangPast> Ask(int most = ApiGangHistory::kMostPods) {
    std::string items;
    for (const std::string& pod : pods_) items += (items.empty() ? "" : ",") + pod;
    ScriptedApiClient client(
        {{.pieces = {R"({"metadata":{"resourceVersion":"1"},"items":[)" + items + "]}"}}});
    const auto pasts = ApiGangHistory(client, rules_, most).In("ns");
    EXPECT_EQ(client.AwaitCalls(1),
              std::vector<std::string>{"/api/v1/namespaces/ns/pods?limit=500"});
    return pasts ? *pasts : std::vector<GangPast>();
  }

  const wire::PodRules rules_{test::AllDialects(), DefaultConfig().resources};
  std::vector<std::string> pods_;
};

TEST_F(GangHistoryOfApi, PodsOfTheControllerOfThoseThatWaitCount) {
  Add("a", "Succeeded", "01:00:00", "job-1");
  Add("b", "Failed", "01:00:00", "job-1");
  Add("c", "Pending", "09:00:00", "job-1");
  const auto pasts = Ask();
  ASSERT_EQ(pasts.size(), 1U);
  EXPECT_EQ(pasts.front().gang, GangId::Of("berth:ns/g"));
  EXPECT_EQ(pasts.front().succeeded, 1) << "b is made anew by its controller";
  EXPECT_TRUE(pasts.front().ran);
}

TEST_F(GangHistoryOfApi, PodsThatWereMadeTogetherCountWhoeverMadeThem) {
  Add("driver", "Succeeded", "01:00:00", "job-driver", "0");
  Add("worker", "Pending", "01:00:01", "job-workers");
  const auto pasts = Ask();
  ASSERT_EQ(pasts.size(), 1U);
  EXPECT_EQ(pasts.front().succeeded, 1);
  EXPECT_FALSE(pasts.front().ran) << "it had no GPUs";
}

// A CronJob's template has one gang name for all runs.
TEST_F(GangHistoryOfApi, PodsOfAnEarlierRunDoNotCount) {
  Add("a", "Succeeded", "01:00:00", "job-1");
  Add("b", "Pending", "01:01:00", "job-2");
  EXPECT_TRUE(Ask().empty());
}

TEST_F(GangHistoryOfApi, OfTooManyPodsTheFirstOnesCount) {
  Add("a", "Succeeded", "01:00:00", "job-1");
  Add("b", "Pending", "01:00:00", "job-1");
  Add("c", "Succeeded", "01:00:00", "job-1");
  EXPECT_EQ(Ask(2).at(0).succeeded, 1);
  EXPECT_EQ(Ask().at(0).succeeded, 2);
}

TEST_F(GangHistoryOfApi, ANameThatIsNoNamespaceIsNotAskedFor) {
  ScriptedApiClient client({});
  const auto pasts = ApiGangHistory(client, rules_).In("a/../b");
  ASSERT_FALSE(pasts);
  EXPECT_EQ(pasts.error().code, Errc::kInvalidArgument);
}

}  // namespace
}  // namespace berth::kube::gang_history_test
