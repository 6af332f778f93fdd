// SPDX-License-Identifier: Apache-2.0
//
// The filter verb for pods with ResourceClaims, where Berth may allocate these.
#include <future>
#include <optional>

#include "test/support/wire_fixture.h"

namespace berth::test::claim_filter_test {
namespace {

using Names = std::vector<std::string>;

class ScriptedAllocator final : public ClaimAllocator {
 public:
  bool Allocate(const PodId& pod, std::span<const std::string> claims,
                std::span<const std::string> nodes, const ClaimWishes& wishes) override {
    asked_pod = pod.name;
    asked_claims.assign(claims.begin(), claims.end());
    asked_nodes.assign(nodes.begin(), nodes.end());
    priorities = wishes.priorities({});
    return allocates;
  }
  void Ask(const PodId&, std::span<const std::string> claims) override {
    announced.assign(claims.begin(), claims.end());
  }
  void Leave(const PodId&, std::span<const std::string> claims) override {
    left.assign(claims.begin(), claims.end());
  }

  bool AllocateTogether(std::span<const ClaimOrder>, Instant) override { return allocates; }
  void ToldByName(const PodId&, bool) override {}

  bool allocates = true;
  std::string asked_pod;
  Names announced, asked_claims, asked_nodes, left;
  std::vector<std::uint8_t> priorities;
};

class ClaimFilter : public testing::Test {
 protected:
  ClaimFilter() {
    NodeSpec full = MachineWith("full", 0);
    full.cpu_milli = 1;
    const ClusterEvent event = NodeUpserted{full};
    EXPECT_TRUE(service_.state().Apply(std::span(&event, 1)));
    service_.verbs().AllocateClaims(allocator_, pool_);
  }
  static Json PodClaiming(const Json& claims, const Json& statuses = nullptr) {
    Json pod = PodAsking("1", {{"cpu", "1"}});
    pod["spec"]["resourceClaims"] = claims;
    pod["status"]["resourceClaimStatuses"] = statuses;
    return pod;
  }
  http::HttpResponse Post(const Json& pod) const {
    return service_.Call("POST", "/extender/filter",
                         ArgsWithNames(pod, Json::array({"full", "n1", "n2"})));
  }
  // Also where it comes later.
  Json Filter(const Json& pod) const {
    http::HttpResponse response = Post(pod);
    if (response.later) {
      auto answered = std::make_shared<std::promise<http::HttpResponse>>();
      response.later(http::Reply(
          [answered](http::HttpResponse later) { answered->set_value(std::move(later)); }));
      response = answered->get_future().get();
    }
    return Json::parse(response.body);
  }

  TestService service_{{MachineWith("n1", 0), MachineWith("n2", 0)}};
  ScriptedAllocator allocator_;
  WorkerPool pool_{1, 10};
};

TEST_F(ClaimFilter, WhenTheClaimIsAllocatedThePodFitsNowhereThisTime) {
  const Json answer =
      Filter(PodClaiming(Json::array({{{"name", "gpu"}, {"resourceClaimName", "c"}}})));
  EXPECT_EQ(allocator_.announced, Names{"c"}) << "before it waits for a thread";
  EXPECT_EQ(allocator_.asked_pod, "pod-1");
  EXPECT_EQ(allocator_.asked_claims, Names{"c"});
  EXPECT_EQ(allocator_.asked_nodes, (Names{"n1", "n2"})) << "those that fit";
  EXPECT_EQ(allocator_.priorities.size(), 2u) << "for each of them";
  EXPECT_EQ(answer["NodeNames"], Json::array());
  EXPECT_EQ(answer["FailedNodes"], Json::object()) << "nothing is to be evicted";
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 3u);
  EXPECT_EQ(answer["Error"], "");
}

TEST_F(ClaimFilter, OtherwiseItGoesOnAsEver) {
  const Json pod = PodClaiming(Json::array({{{"name", "gpu"}, {"resourceClaimName", "c"}}}));
  allocator_.allocates = false;
  const Json answer = Filter(pod);
  EXPECT_EQ(answer["NodeNames"], (Json::array({"n1", "n2"})));
  EXPECT_EQ(answer["FailedNodes"].size() + answer["FailedAndUnresolvableNodes"].size(), 1u);
}

TEST_F(ClaimFilter, ClaimsThatWereMadeFromTemplatesCount) {
  (void)Filter(PodClaiming(Json::array({{{"name", "a"}, {"resourceClaimTemplateName", "t"}},
                                        {{"name", "b"}, {"resourceClaimName", "c"}}}),
                           Json::array({{{"name", "a"}, {"resourceClaimName", "pod-1-a-x7k2"}},
                                        {{"name", "z"}, {"resourceClaimName", nullptr}}})));
  EXPECT_EQ(allocator_.asked_claims, (Names{"pod-1-a-x7k2", "c"})) << "in the order of the pod";
}

TEST_F(ClaimFilter, NobodyIsAskedAboutAPodWithoutClaimsOrThatFitsNowhere) {
  EXPECT_FALSE(Post(PodAsking("1", {{"cpu", "1"}})).later);
  Json pod = PodClaiming(Json::array({{{"name", "gpu"}, {"resourceClaimName", "c"}}}));
  pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "100";
  EXPECT_FALSE(Post(pod).later);
}

TEST_F(ClaimFilter, ABusyAllocatorLetsThePodGoOn) {
  WorkerPool takes_nothing(1, 0);
  service_.verbs().AllocateClaims(allocator_, takes_nothing);
  const Json answer =
      Filter(PodClaiming(Json::array({{{"name", "gpu"}, {"resourceClaimName", "c"}}})));
  EXPECT_EQ(answer["NodeNames"], (Json::array({"n1", "n2"})));
  EXPECT_EQ(allocator_.left, Names{"c"});
  EXPECT_TRUE(allocator_.asked_claims.empty());
}

TEST(ClaimFilterWithoutThat, NobodyIsAsked) {
  const TestService service({MachineWith("n1", 0)});
  Json pod = PodAsking("1", {{"cpu", "1"}});
  pod["spec"]["resourceClaims"] = Json::array({{{"name", "gpu"}, {"resourceClaimName", "c"}}});
  EXPECT_EQ(service.Ask("filter", ArgsWithNames(pod, Json::array({"n1"})))["NodeNames"],
            Json::array({"n1"}));
}

}  // namespace
}  // namespace berth::test::claim_filter_test
