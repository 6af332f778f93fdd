// SPDX-License-Identifier: Apache-2.0
//
// Binds to nodes whose agent is not told for which pod the kubelet asks it.
#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "config/config.h"
#include "server/dialects/one_at_a_time.h"
#include "server/dialects/registry.h"
#include "server/kube/write/pod_writes.h"
#include "test/support/dialects.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::one_at_a_time_test {
namespace {

using namespace std::chrono_literals;
using test::FakeApiServer;
using test::FakeNode;
using test::FakePod;
using Json = nlohmann::json;

const std::string kPodsPath = "/api/v1/pods";

class OneAtATimeTest : public testing::Test, protected WriteFence {
 protected:
  OneAtATimeTest() {
    api_.Put("/api/v1/nodes", FakeNode("n1", 0));
    api_.Put(kPodsPath, FakePod("p", {{"aliyun.com/gpu-mem", "3"}}));
    api_.fault = [this](const ApiRequest& request) {
      if (before_) before_(request);
      return forbidden_ && request.method == "GET" ? test::Fault::kForbidden : test::Fault::kNone;
    };
    node_.name = "n1";
    node_.share_agent = "gpushare";
    node_.gpus.assign(2, GpuSpec{"", 15'360, true});
  }

  Status Bind(Duration within = 10s) {
    PodRequest pod;
    pod.id = {"uid-p", "ns", "p"};
    pod.shape.gpus = GpuShare{0, 3072};
    pod.containers.push_back({"main", pod.shape.gpus, false});
    pod.container_count = 1;
    const Placement placement{node_.name, 1000, 0, {{1, 200, 3072}}};
    return binder_.Bind({pod, placement, node_, clock_.Now() + within, "0123456789abcdef"});
  }
  // Another pod of the node that waits since so long before now.
  void PutWaiting(Duration since, const std::string& assigned = "false",
                  const std::string& phase = "Pending") {
    Json pod = FakePod("other", asks_);
    pod["spec"]["nodeName"] = "n1";
    pod["status"]["phase"] = phase;
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(
        (clock_.Wall() - since).time_since_epoch());
    pod["metadata"]["annotations"] = {
        {"ALIYUN_COM_GPU_MEM_ASSIGNED", assigned},
        {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", std::to_string(time.count())}};
    api_.Put(kPodsPath, pod);
  }

  [[nodiscard]] Instant WritableUntil() const override { return Instant::max(); }

  FakeApiServer api_;
  bool forbidden_ = false;
  Json asks_ = {{"aliyun.com/gpu-mem", "3"}};  // of the other pod
  std::function<void(const ApiRequest&)> before_;
  SimClock clock_;
  NodeSpec node_;
  const wire::PodRules rules_{test::AllDialects(), DefaultConfig().resources};
  const WriteContext write_{
      .client = api_, .clock = clock_, .fence = *this, .sleep = [this](Duration time) {
        clock_.Advance(time);
      }};
  dialects::OneAtATime one_{write_, dialects::GpushareHandover()};
  ApiBinder binder_{{.write = write_,
                     .rules = rules_,
                     .surround = [this](const BindOrder& order, const auto& bind) {
                       return one_.AroundBind(order, bind);
                     }}};
};

TEST_F(OneAtATimeTest, BindsWhereNobodyWaits) {
  ASSERT_TRUE(Bind());
  const Json annotations = api_.Get(kPodsPath, "ns/p")["metadata"]["annotations"];
  EXPECT_EQ(annotations["ALIYUN_COM_GPU_MEM_IDX"], "1");
  EXPECT_EQ(annotations["ALIYUN_COM_GPU_MEM_ASSIGNED"], "false");
}

TEST_F(OneAtATimeTest, WaitsUntilTheOtherPodHasBeenServed) {
  PutWaiting(1s);
  int looks = 0;
  before_ = [&](const ApiRequest& request) {
    if (request.method == "GET" && ++looks == 4) PutWaiting(1s, "true");
  };
  EXPECT_TRUE(Bind());
  EXPECT_EQ(looks, 4);
}

TEST_F(OneAtATimeTest, GivesUpAtTheDeadlineAndNamesThePod) {
  PutWaiting(1s);
  const Status bound = Bind();
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, Errc::kDeadline);
  EXPECT_NE(bound.error().message.find("the agent of node n1 has not served pod ns/other yet"),
            std::string::npos)
      << bound.error().message;
  EXPECT_EQ(api_.bindings(), 0);
  PutWaiting(1s, "true");
  EXPECT_TRUE(Bind()) << "the failed one has left the node to others";
}

TEST_F(OneAtATimeTest, PassesOverPodsThatAreOverOrWereNotServedForLong) {
  PutWaiting(1s, "false", "Failed");
  EXPECT_TRUE(Bind());
  api_.Put(kPodsPath, FakePod("p", {{"aliyun.com/gpu-mem", "3"}}));
  PutWaiting(6min);
  EXPECT_TRUE(Bind());
}

// Anybody who may write a pod may write its annotations, at any time of its life.
TEST_F(OneAtATimeTest, WaitsForNoPodThatAsksForNothingOfTheAgent) {
  asks_ = {{"cpu", "1"}};
  PutWaiting(1s);
  EXPECT_TRUE(Bind());
  asks_ = {{"cpu", "1"}, {"aliyun.com/gpu-mem", "0"}};
  api_.Put(kPodsPath, FakePod("p", {{"aliyun.com/gpu-mem", "3"}}));
  PutWaiting(1s);
  EXPECT_TRUE(Bind());
}

TEST_F(OneAtATimeTest, WaitsForAPodOnceAndNoLongerThanItExpires) {
  PutWaiting(-std::chrono::hours(24 * 365 * 200));  // in two hundred years
  EXPECT_FALSE(Bind()) << "as if it were now";
  clock_.Advance(4min);
  EXPECT_FALSE(Bind());
  clock_.Advance(2min);
  PutWaiting(0s);  // it says another time, and was seen long ago
  EXPECT_TRUE(Bind());
  api_.Put(kPodsPath, FakePod("p", {{"aliyun.com/gpu-mem", "3"}}));
  PutWaiting(0s, "true");
  EXPECT_TRUE(Bind());
  api_.Put(kPodsPath, FakePod("p", {{"aliyun.com/gpu-mem", "3"}}));
  PutWaiting(0s);
  EXPECT_TRUE(Bind()) << "served, and waiting again: it has had its time";
}

TEST_F(OneAtATimeTest, RemembersABoundedNumberOfPods) {
  constexpr std::size_t kMost = dialects::OneAtATime::kMostSeen;
  Json pod = FakePod("w", asks_);
  pod["metadata"]["annotations"] = {{"ALIYUN_COM_GPU_MEM_ASSIGNED", "false"},
                                    {"ALIYUN_COM_GPU_MEM_ASSUME_TIME", "9000000000000000000"}};
  for (std::size_t i = 0; i < kMost + 50; ++i) {
    const std::string name = "w" + std::to_string(i);
    pod["metadata"]["name"] = name;
    pod["metadata"]["uid"] = name;
    pod["spec"]["nodeName"] = "n1";
    api_.Put(kPodsPath, pod);
  }
  EXPECT_FALSE(Bind(40ms));
  EXPECT_EQ(one_.seen(), kMost);
  node_.name = "n2";  // the server lists the same ones for it
  EXPECT_FALSE(Bind(40ms));
  EXPECT_EQ(one_.seen(), kMost) << "those of the other node are forgotten";
}

TEST_F(OneAtATimeTest, LetsNoBindPassThatItCannotJudge) {
  forbidden_ = true;
  EXPECT_FALSE(Bind());
  EXPECT_EQ(api_.bindings(), 0);
}

TEST_F(OneAtATimeTest, AsksNothingOnOtherNodes) {
  node_.share_agent.clear();
  int asked = 0;
  before_ = [&](const ApiRequest&) { ++asked; };
  EXPECT_TRUE(Bind());
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace berth::kube::one_at_a_time_test
