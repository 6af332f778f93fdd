// SPDX-License-Identifier: Apache-2.0
#include "server/kube/write/pod_writes.h"

#include <chrono>
#include <deque>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "config/config.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::api_binder_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeApiServer;
using test::FakeNode;
using test::FakePod;
using test::Fault;
using Json = nlohmann::json;

const std::string kPods = "/api/v1/pods";

class ApiBinderTest : public testing::Test, protected WriteFence {
 protected:
  ApiBinderTest() {
    api_.Put(kPods, FakePod("p", {{"cpu", "1"}, {"nvidia.com/gpu", "2"}}));
    pod_.id = {"uid-p", "ns", "p"};
    pod_.shape.cpu_milli = 1000;
    pod_.shape.gpus = WholeGpus{2};
    pod_.containers.push_back({"main", WholeGpus{2}, false});
    node_.name = "n1";
    node_.gpus.assign(4, GpuSpec{"", 81'920, true});
    node_.gpus[3].uuid = "GPU-3";
    api_.fault = [this](const ApiRequest&) { return TakeFirst(faults_); };
  }

  Status Bind(const std::string& node = "n1") {
    node_.name = node;
    const Placement placement{node, 1000, 0, {{1, 1000, 81'920}, {3, 1000, 81'920}}};
    return binder_.Bind({pod_, placement, node_, clock_.Now() + seconds(10), "0123456789abcdef"});
  }
  [[nodiscard]] Json Pod() const { return api_.Get(kPods, "ns/p"); }

  [[nodiscard]] Instant WritableUntil() const override { return writable_until_; }
  std::size_t WriteBegins(const NoteOfWrite& note) override {
    note_ = note ? note() : "";
    return static_cast<std::size_t>(++writes_);
  }
  void WriteEnds(std::size_t, bool answered) override {
    --writes_;
    if (!answered) ++unanswered_;
  }

  FakeApiServer api_;
  std::deque<Fault> faults_;
  SimClock clock_;
  Instant writable_until_ = Instant::max();
  int writes_ = 0, unanswered_ = 0;
  std::string note_;  // of the last write
  PodRequest pod_;
  NodeSpec node_;
  const wire::PodRules rules_{test::AllDialects(), DefaultConfig().resources};
  ApiBinder binder_{{.write = {.client = api_,
                               .clock = clock_,
                               .fence = *this,
                               .sleep = [this](Duration time) { clock_.Advance(time); }},
                     .rules = rules_}};
};

TEST_F(ApiBinderTest, AnInvalidNameNeverBecomesPartOfAPath) {
  int requests = 0;
  api_.fault = [&](const ApiRequest&) {
    ++requests;
    return Fault::kNone;
  };
  for (const PodId& id : {PodId{"u", "ns", "../nodes/n1"}, PodId{"u", "ns", "p?dryRun=All"},
                          PodId{"u", "ns/pods/x", "p"}, PodId{"u", "", "p"}, PodId{"u", "ns", ".."},
                          PodId{"u", "ns", "P"}}) {
    pod_.id = id;
    const Status bound = Bind();
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code, Errc::kInvalidArgument) << bound.error().message;
    EXPECT_EQ(binder_.Find(id).error().code, Errc::kInvalidArgument);
  }
  EXPECT_EQ(requests, 0);
}

TEST_F(ApiBinderTest, AWriteIsOnItsWayUntilItsOutcomeIsKnown) {
  api_.fault = [this](const ApiRequest&) {
    EXPECT_EQ(writes_, 1);
    return TakeFirst(faults_);
  };
  ASSERT_TRUE(Bind());
  EXPECT_EQ(writes_, 0);
  EXPECT_EQ(unanswered_, 0);
  faults_ = {Fault::kNeverCame};
  writable_until_ = clock_.Now() + milliseconds(10);
  EXPECT_EQ(Bind().error().code, Errc::kUnavailable);
  EXPECT_EQ(writes_, 0);
  EXPECT_EQ(unanswered_, 1);
}

TEST_F(ApiBinderTest, NotesWhatItGivesBeforeItIsWritten) {
  api_.fault = [this](const ApiRequest&) {
    EXPECT_NE(note_, "");
    return TakeFirst(faults_);
  };
  pod_.gang.id = GangId::Of("coscheduling:ns/g");
  pod_.priority = 7;
  ASSERT_TRUE(Bind());
  const wire::NodeRules rules(DefaultConfig(), test::AllDialects());
  auto bound = BindOfNote(note_, rules);
  ASSERT_TRUE(bound) << bound.error().message;
  ASSERT_TRUE(*bound);
  EXPECT_EQ((*bound)->pod.id, pod_.id);
  EXPECT_EQ((*bound)->pod.shape, pod_.shape);
  EXPECT_EQ((*bound)->pod.gang.id, pod_.gang.id);
  EXPECT_EQ((*bound)->pod.priority, 7);
  EXPECT_EQ((*bound)->placement,
            (Placement{"n1", 1000, 0, {{1, 1000, 81'920}, {3, 1000, 81'920}}}));
  pod_.shape.gpus = NoGpu();
  const Placement no_devices{"n1", 1000, 0, {}};
  api_.Put(kPods, FakePod("q", {{"cpu", "1"}}));
  pod_.id = {"uid-q", "ns", "q"};
  ASSERT_TRUE(
      binder_.Bind({pod_, no_devices, node_, clock_.Now() + seconds(10), "0123456789abcdef"}));
  bound = BindOfNote(note_, rules);
  ASSERT_TRUE(bound);
  EXPECT_FALSE(*bound);
  for (const char* const text :
       {"", "{}", "[", R"({"version":1,"observed":true,"nodes":[],"pods":[]})"}) {
    EXPECT_FALSE(BindOfNote(text, rules)) << text;
  }
}

TEST_F(ApiBinderTest, WritesNodeAndDevicesInOneStep) {
  ASSERT_TRUE(Bind());
  EXPECT_EQ(Pod()["spec"]["nodeName"], "n1");
  const Json annotations = Pod()["metadata"]["annotations"];
  EXPECT_EQ(annotations["berth.dev/decision"], "0123456789abcdef");
  const Json devices = Json::parse(annotations["berth.dev/devices"].get<std::string>());
  EXPECT_EQ(devices["version"], 1);
  EXPECT_EQ(devices["node"], "n1");
  const Json& gpus = devices["containers"]["main"]["gpus"];
  ASSERT_EQ(gpus.size(), 2u);
  EXPECT_EQ(gpus[0]["index"], 1);
  EXPECT_EQ(gpus[1]["uuid"], "GPU-3");
  EXPECT_EQ(api_.bindings(), 1);
}

// The node has lost GPUs, or another one came under its name: nothing else is written in its place.
TEST_F(ApiBinderTest, ADeviceThatTheNodeDoesNotHaveIsWrittenNowhere) {
  for (const std::size_t gpus : {0U, 1U, 3U}) {
    node_.gpus.resize(gpus);
    const Status bound = Bind();
    ASSERT_FALSE(bound);
    EXPECT_EQ(bound.error().code, Errc::kInternal);
    const std::string missing = gpus < 2 ? "1" : "3";
    EXPECT_EQ(bound.error().message, "node n1: want a node with GPU " + missing +
                                         ", got one with " + std::to_string(gpus) + " GPUs");
  }
  EXPECT_EQ(api_.bindings(), 0);
}

// A request that waits at the API server must not be carried out when another process leads.
TEST_F(ApiBinderTest, ABindingTimesOutWhenTheLeaseEnds) {
  std::vector<std::string> paths;
  api_.fault = [&](const ApiRequest& request) {
    paths.push_back(request.path);
    EXPECT_EQ(request.timeout, paths.size() == 1 ? milliseconds(3'000) : request.timeout);
    return paths.size() == 1 ? Fault::kInternal : Fault::kNone;
  };
  writable_until_ = clock_.Now() + milliseconds(3'000);
  ASSERT_TRUE(Bind());
  ASSERT_EQ(paths.size(), 2U);
  const std::string path = "/api/v1/namespaces/ns/pods/p/binding?timeout=";
  EXPECT_EQ(paths[0], path + "3000ms");
  const auto left = std::stoi(paths[1].substr(path.size()));
  EXPECT_EQ(paths[1], path + std::to_string(left) + "ms");
  EXPECT_LT(left, 3'000) << "the second attempt has less time";
  EXPECT_GT(left, 0);
}

TEST_F(ApiBinderTest, SendsAgainWhatIsRefusedForNow) {
  faults_ = {Fault::kTooMany, Fault::kInternal, Fault::kNeverCame};
  EXPECT_TRUE(Bind());
  EXPECT_EQ(binder_.stats().retries, 3u);
  EXPECT_EQ(Pod()["spec"]["nodeName"], "n1");
}

TEST_F(ApiBinderTest, ALostAnswerEndsInAConflictThatFindExplains) {
  faults_ = {Fault::kLostAnswer};
  const Status bound = Bind();
  EXPECT_EQ(bound.error().code, Errc::kConflict);
  const auto truth = binder_.Find(pod_.id);
  ASSERT_TRUE(truth && truth->placement);
  EXPECT_EQ(truth->placement->node, "n1");
  EXPECT_EQ(truth->placement->grants,
            (std::vector<DeviceGrant>{{1, 1000, 81'920}, {3, 1000, 81'920, "GPU-3"}}));
  EXPECT_EQ(api_.bindings(), 1);
}

TEST_F(ApiBinderTest, ARefusalDoesNotSayWhatBecameOfTheAttemptBefore) {
  faults_ = {Fault::kLostAnswer, Fault::kForbidden};
  EXPECT_EQ(Bind().error().code, Errc::kUnavailable);
  EXPECT_EQ(binder_.stats().in_doubt, 1u);
  EXPECT_EQ(Pod()["spec"]["nodeName"], "n1");
}

TEST_F(ApiBinderTest, ARefusalAloneLeavesNoDoubt) {
  faults_ = {Fault::kForbidden};
  EXPECT_EQ(Bind().error().code, Errc::kInvalidArgument);
  EXPECT_EQ(binder_.stats().in_doubt, 0u);
}

TEST_F(ApiBinderTest, NobodyKnowsWhenNoAnswerComesUntilTheDeadline) {
  faults_.assign(1000, Fault::kNeverCame);
  const Instant start = clock_.Now();
  const Status bound = Bind();
  EXPECT_EQ(bound.error().code, Errc::kUnavailable);
  EXPECT_LE(clock_.Now() - start, seconds(10));
  EXPECT_GE(clock_.Now() - start, seconds(7)) << "it used its time";
  EXPECT_EQ(binder_.stats().in_doubt, 1u);
}

TEST_F(ApiBinderTest, WhatWasOnlyEverRefusedIsNotInDoubt) {
  faults_.assign(1000, Fault::kTooMany);
  EXPECT_EQ(Bind().error().code, Errc::kDeadline);
  EXPECT_EQ(binder_.stats().in_doubt, 0u);
}

TEST_F(ApiBinderTest, APodThatIsGoneOrReplacedIsNotBound) {
  pod_.id.uid = "another";
  EXPECT_EQ(Bind().error().code, Errc::kConflict);
  EXPECT_EQ(binder_.Find(pod_.id).error().code, Errc::kNotFound);
  EXPECT_FALSE(Pod()["spec"].contains("nodeName"));
  api_.Delete(kPods, "ns/p");
  EXPECT_EQ(Bind().error().code, Errc::kNotFound);
  EXPECT_EQ(binder_.Find(pod_.id).error().code, Errc::kNotFound);
}

TEST_F(ApiBinderTest, BoundElsewhereIsAConflictWithTheServersWords) {
  ASSERT_TRUE(Bind("n2"));
  const Status bound = Bind("n1");
  EXPECT_EQ(bound.error().code, Errc::kConflict);
  EXPECT_NE(bound.error().message.find("already assigned to node \"n2\""), std::string::npos)
      << bound.error().message;
}

TEST_F(ApiBinderTest, WritesNothingOnceItDoesNotLead) {
  writable_until_ = clock_.Now();
  EXPECT_EQ(Bind().error().code, Errc::kDeadline);
  EXPECT_EQ(api_.bindings(), 0);
  writable_until_ = clock_.Now() + milliseconds(60);
  faults_.assign(1000, Fault::kTooMany);
  EXPECT_EQ(Bind().error().code, Errc::kDeadline);
  EXPECT_LE(clock_.Now(), writable_until_);
}

TEST_F(ApiBinderTest, FindTellsOfAPodThatIsNotBoundWhatItAsksFor) {
  const auto truth = binder_.Find(pod_.id);
  ASSERT_TRUE(truth);
  EXPECT_FALSE(truth->placement);
  EXPECT_EQ(truth->pod.shape.gpus, GpuAsk(WholeGpus{2}));
  faults_ = {Fault::kInternal};
  EXPECT_EQ(binder_.Find(pod_.id).error().code, Errc::kUnavailable);
}

}  // namespace
}  // namespace berth::kube::api_binder_test
