// SPDX-License-Identifier: Apache-2.0
//
// Filters that find no node, on a service without sockets: how long their answers are held back,
// and who is woken.
#include "server/service/second_look.h"
#include "server/extender/inquiry.h"

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/eventually.h"
#include "test/support/wire_fixture.h"

namespace berth::test::second_look_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

class WakeList final : public PodWaker {
 public:
  bool Wake(const PodId& pod) override {
    const std::lock_guard lock(mutex_);
    uids_.push_back(pod.uid);
    return true;
  }
  std::vector<std::string> uids() {
    const std::lock_guard lock(mutex_);
    return uids_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> uids_;
};

class SecondLookTest : public testing::Test {
 protected:
  SecondLookTest() { EXPECT_EQ(service_.Place(PodWithGpus("low", 1), "n1"), ""); }
  void Start(const SecondLook::Waits& waits) {
    const auto fits = [this](const std::shared_ptr<const Snapshot>& snapshot,
                             const PodRequest& pod) {
      return Inquiry(service_.extender(), {snapshot, service_.extender().policy()}).WouldFit(pod);
    };
    second_look_.emplace(SecondLook::Parts{service_.state(), waker_, nullptr, rooms_, fits}, waits);
    service_.verbs().LookTwice(*second_look_);
  }
  std::future<http::HttpResponse> Filter(const Json& pod, const Json& names) {
    http::HttpResponse response =
        service_.Call("POST", "/extender/filter", ArgsWithNames(pod, names));
    auto answered = std::make_shared<std::promise<http::HttpResponse>>();
    std::future<http::HttpResponse> answer = answered->get_future();
    was_held_ = response.later != nullptr;
    if (response.later) {
      response.later(http::Reply(
          [answered](http::HttpResponse later) { answered->set_value(std::move(later)); }));
    } else {
      answered->set_value(std::move(response));
    }
    return answer;
  }
  void Free(const std::string& uid) {
    const ClusterEvent event = PodGone{uid};
    ASSERT_TRUE(service_.state().Apply(std::span(&event, 1)));
  }
  static Json NodesIn(std::future<http::HttpResponse>& answer) {
    return Json::parse(answer.get().body)["NodeNames"];
  }
  static Json High() {
    Json pod = PodWithGpus("high", 1);
    pod["spec"]["priority"] = 100;
    return pod;
  }
  void AgreeToEvictLow() {
    const Json victims = {{"n1", {{"Pods", {{{"UID", "low"}}}}}}};
    const Json kept =
        service_.Ask("preempt", Json{{"Pod", High()}, {"NodeNameToMetaVictims", victims}}.dump());
    ASSERT_TRUE(kept["NodeNameToMetaVictims"].contains("n1")) << kept;
  }

  static constexpr SecondLook::Waits kLong{minutes(1), minutes(1), minutes(1), 0};
  static constexpr SecondLook::Waits kNone{milliseconds(1), milliseconds(1), milliseconds(0), 0};

  WakeList waker_;
  DeviceRooms rooms_;
  TestService service_{
      {MachineWith("n1", 1), MachineWith("cpu-only", 0)}, nullptr, "best-fit", true};
  bool was_held_ = false;
  std::optional<SecondLook> second_look_;
};

TEST_F(SecondLookTest, AFilterIsAnsweredOnceTheFreedGpuIsSeen) {
  Start(kLong);
  auto answer = Filter(PodWithGpus("a", 1), {"n1"});
  EXPECT_TRUE(was_held_);
  Free("low");
  EXPECT_EQ(NodesIn(answer), Json{"n1"});
  EXPECT_TRUE(waker_.uids().empty()) << "there was no refusal";
}

TEST_F(SecondLookTest, AnswersThatAreHeldBackDoNotWaitForever) {
  Start({milliseconds(1), milliseconds(1), minutes(1), 0});
  auto answer = Filter(PodWithGpus("a", 1), {"n1"});
  EXPECT_TRUE(was_held_);
  const Json refused = Json::parse(answer.get().body);
  EXPECT_EQ(refused["NodeNames"], Json::array());
  EXPECT_EQ(refused["Error"], "");
  EXPECT_TRUE(refused["FailedNodes"].contains("n1") ||
              refused["FailedAndUnresolvableNodes"].contains("n1"));
}

TEST_F(SecondLookTest, WhatNoFreedGpuCanChangeIsAnsweredAtOnce) {
  Start(kLong);
  auto no_gpu = Filter(PodWithGpus("a", 1), {"cpu-only"});
  EXPECT_FALSE(was_held_);
  auto fits = Filter(PodAsking("b", {{"cpu", "1"}}), {"n1", "cpu-only"});
  EXPECT_FALSE(was_held_);
  EXPECT_EQ(NodesIn(no_gpu), Json::array());
  EXPECT_EQ(NodesIn(fits), (Json{"n1", "cpu-only"}));
}

TEST_F(SecondLookTest, APodThatWasRefusedIsWokenOnceWhenThereIsRoom) {
  Start(kNone);
  auto answer = Filter(PodWithGpus("a", 1), {"n1"});
  EXPECT_EQ(NodesIn(answer), Json::array());
  Free("low");
  ASSERT_TRUE(Eventually([&] { return !waker_.uids().empty(); }));
  EXPECT_EQ(waker_.uids(), std::vector<std::string>{"a"});
  auto again = Filter(PodWithGpus("a", 1), {"n1"});
  EXPECT_EQ(NodesIn(again), Json{"n1"});
}

// While nobody waits the changes of the cluster are not looked at.
TEST_F(SecondLookTest, APodIsWokenAlsoAfterNobodyHasWaitedForAWhile) {
  Start(kNone);
  auto refused = Filter(PodWithGpus("a", 1), {"n1"});
  EXPECT_EQ(NodesIn(refused), Json::array());
  Free("low");
  ASSERT_TRUE(Eventually([&] { return !waker_.uids().empty(); }));
  EXPECT_EQ(service_.Place(PodWithGpus("a", 1), "n1"), "");
  for (int i = 0; i < 20; ++i) {
    Free("a");
    std::this_thread::sleep_for(milliseconds(i % 4));  // the thread may be anywhere
    EXPECT_EQ(service_.Place(PodWithGpus("a", 1), "n1"), "");
    const std::string name = "b" + std::to_string(i);
    refused = Filter(PodWithGpus(name, 1), {"n1"});
    EXPECT_EQ(NodesIn(refused), Json::array());
    Free("a");
    EXPECT_TRUE(Eventually([&] { return waker_.uids().back() == name; })) << name;
    EXPECT_EQ(service_.Place(PodWithGpus(name, 1), "n1"), "");
    Free(name);
    EXPECT_EQ(service_.Place(PodWithGpus("a", 1), "n1"), "");
  }
}

// kube-scheduler saw the victim go; to say that the room is not there would give it to another pod.
TEST_F(SecondLookTest, WhoeverMadeRoomGetsIt) {
  SecondLook::Waits waits = kNone;
  waits.for_evicted = minutes(1);
  Start(waits);
  AgreeToEvictLow();
  auto answer = Filter(High(), {"n1"});
  EXPECT_TRUE(was_held_);
  Free("low");
  EXPECT_EQ(NodesIn(answer), Json{"n1"});
}

// An Error would pass every node where the extender is ignorable.
TEST_F(SecondLookTest, AWellFormedFilterIsNeverAnsweredWithAnError) {
  Start(kNone);
  AgreeToEvictLow();
  for (int i = 0; i < 10; ++i) {
    auto answer = Filter(High(), {"n1", "cpu-only"});
    const Json refused = Json::parse(answer.get().body);
    EXPECT_EQ(refused["Error"], "");
    EXPECT_EQ(refused["NodeNames"], Json::array());
    EXPECT_TRUE(refused["FailedNodes"].contains("n1")) << refused;
  }
}

TEST_F(SecondLookTest, NobodyIsLeftWithoutAnAnswerAtTheEnd) {
  Start(kLong);
  auto answer = Filter(PodWithGpus("a", 1), {"n1"});
  second_look_.reset();
  EXPECT_EQ(NodesIn(answer), Json::array());
}

}  // namespace
}  // namespace berth::test::second_look_test
