// SPDX-License-Identifier: Apache-2.0
//
// What a bind says of how long its pod had waited.
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "server/extender/extender.h"
#include "test/support/bind_now.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::bind_wait_test {
namespace {

using std::chrono::seconds;

class WaitSink final : public DecisionSink {
 public:
  void Record(const Decision& decision) override {
    if (decision.verb == Verb::kBind) waits.push_back(decision.waited);
  }
  std::vector<std::optional<Duration>> waits;
};

class BindWait : public testing::Test {
 protected:
  BindWait() {
    const ClusterEvent node = NodeUpserted{ANode("n").Gpus(4).Spec()};
    EXPECT_TRUE(state_.Apply(std::span(&node, 1)));
  }
  Status Place(const APod& pod) {
    const std::vector<NodeIndex> nodes = {0};
    EXPECT_TRUE(extender_.Filter(extender_.Now(), pod.Request(), nodes).fits);
    const PodId& id = pod.Request().id;
    return BindNow(extender_, {id.namespace_name, id.name, id.uid, "n"});
  }

  SimClock clock_;
  ClusterState state_;
  WaitingPods waiting_;
  // The watch shows the pod on its node before the bind is answered.
  ScriptedBinder binder_{[this](const PodRequest& pod, const Placement&) {
    waiting_.Remove(pod.id.uid);
    return Status();
  }};
  WaitSink sink_;
  Extender extender_{
      {.state = state_, .binder = binder_, .sink = sink_, .clock = clock_, .waiting = &waiting_},
      {EngineOf("best-fit"), seconds(30)}};
};

TEST_F(BindWait, IsSinceThePodWasCreated) {
  const APod pod = APod("p").Whole(1);
  waiting_.Put(
      {.pod = std::make_shared<const PodRequest>(pod.Request()), .created = clock_.Wall()});
  clock_.Advance(seconds(42));
  ASSERT_TRUE(Place(pod));
  ASSERT_EQ(sink_.waits.size(), 1U);
  EXPECT_EQ(sink_.waits[0], seconds(42));
}

TEST_F(BindWait, IsOfThatPodThoughItsSuccessorWaitsUnderItsName) {
  const APod pod = APod("p").Whole(1);
  waiting_.Put(
      {.pod = std::make_shared<const PodRequest>(pod.Request()), .created = clock_.Wall()});
  clock_.Advance(seconds(42));
  const APod successor = APod("p").Whole(1).Uid("another");
  waiting_.Put(
      {.pod = std::make_shared<const PodRequest>(successor.Request()), .created = clock_.Wall()});
  ASSERT_TRUE(Place(pod));
  EXPECT_EQ(sink_.waits.at(0), seconds(42));
}

TEST_F(BindWait, IsNotGuessed) {
  ASSERT_TRUE(Place(APod("unknown").Whole(1)));
  EXPECT_EQ(sink_.waits.at(0), std::nullopt);
  const APod namesake = APod("q").Whole(1).Uid("another");
  waiting_.Put(
      {.pod = std::make_shared<const PodRequest>(namesake.Request()), .created = clock_.Wall()});
  ASSERT_TRUE(Place(APod("q").Whole(1)));
  EXPECT_EQ(sink_.waits.at(1), std::nullopt) << "a pod of that name that is another one";
}

}  // namespace
}  // namespace berth::test::bind_wait_test
