// SPDX-License-Identifier: Apache-2.0
#include "server/kube/lead/leader_elector.h"

#include <chrono>
#include <utility>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::leader_elector_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeApiServer;
using test::Fault;

const std::string kLeases = "/apis/coordination.k8s.io/v1/leases";

class LeaderElectorTest : public testing::Test {
 protected:
  LeaderElectorTest() { PutReleasedLease(); }

  LeaderElector Candidate(const std::string& identity) {
    return {api_, clock_, {"berth-system", "berth", identity, seconds(15)}};
  }
  void PutReleasedLease() {
    api_.Put(kLeases, {{"metadata", {{"name", "berth"}, {"namespace", "berth-system"}}},
                       {"spec", {{"holderIdentity", ""}, {"leaseDurationSeconds", 1}}}});
  }
  void DeleteLease() { ASSERT_TRUE(api_.Delete(kLeases, "berth-system/berth")); }
  [[nodiscard]] std::string Holder() const {
    return api_.Get(kLeases, "berth-system/berth")["spec"]["holderIdentity"];
  }

  FakeApiServer api_;
  SimClock clock_;
};

TEST_F(LeaderElectorTest, LeadsOnceItHasTakenTheLease) {
  LeaderElector a = Candidate("a");
  EXPECT_FALSE(a.leading());
  ASSERT_TRUE(a.Step());
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.term(), 1u);
  const auto lease = api_.Get(kLeases, "berth-system/berth")["spec"];
  EXPECT_EQ(lease["holderIdentity"], "a");
  EXPECT_EQ(lease["leaseDurationSeconds"], 15);
  EXPECT_EQ(lease["leaseTransitions"], 1);
  EXPECT_EQ(lease["renewTime"].get<std::string>().size(), 27u);
}

TEST_F(LeaderElectorTest, AMissingLeaseIsTakenAfterALeaseDuration) {
  DeleteLease();
  LeaderElector a = Candidate("a");
  EXPECT_EQ(a.Step().error().message,
            "lease berth was missing: Berth takes it after the time that a deleted one would still "
            "have run");
  EXPECT_EQ(Holder(), "");
  clock_.Advance(milliseconds(14'900));
  EXPECT_EQ(a.Step().error().message, "lease berth is new: a former leader may still write");
  clock_.Advance(milliseconds(100));
  EXPECT_TRUE(a.Step());
  EXPECT_TRUE(a.leading());
}

TEST_F(LeaderElectorTest, ALeaseThatIsDeletedEndsLeadingAtOnce) {
  LeaderElector a = Candidate("a");
  ASSERT_TRUE(a.Step());
  DeleteLease();
  EXPECT_FALSE(a.Step());
  EXPECT_FALSE(a.leading());
}

TEST_F(LeaderElectorTest, ALeaseThatSomebodyElseHasWrittenEndsLeadingAtOnce) {
  LeaderElector a = Candidate("a");
  ASSERT_TRUE(a.Step());
  auto lease = api_.Get(kLeases, "berth-system/berth");
  lease["spec"]["holderIdentity"] = "b";
  bool taken = false;
  api_.fault = [&](const ApiRequest& request) {
    if (request.method == "PUT" && !std::exchange(taken, true)) api_.Put(kLeases, lease);
    return Fault::kNone;
  };
  EXPECT_EQ(a.Step().error().message, "lease berth is held by b");
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(Holder(), "b");
}

TEST_F(LeaderElectorTest, AConflictWithItsOwnWriteIsNoEnd) {
  LeaderElector a = Candidate("a");
  ASSERT_TRUE(a.Step());
  // A request that arrived twice: the answer to the second is a conflict.
  int conflicts = 1;
  api_.fault = [&](const ApiRequest& request) {
    return request.method == "PUT" && conflicts-- > 0 ? Fault::kConflict : Fault::kNone;
  };
  clock_.Advance(seconds(2));
  EXPECT_TRUE(a.Step());
  EXPECT_TRUE(a.leading());
  EXPECT_EQ(a.term(), 1u) << "nobody else has led";
}

TEST_F(LeaderElectorTest, AHolderThatIsErasedByHandIsNotARelease) {
  LeaderElector a = Candidate("a"), b = Candidate("b");
  ASSERT_TRUE(a.Step());
  auto lease = api_.Get(kLeases, "berth-system/berth");
  lease["spec"]["holderIdentity"] = "";
  api_.Put(kLeases, lease);
  EXPECT_FALSE(b.Step());
  EXPECT_TRUE(a.leading()) << "it cannot know yet";
  EXPECT_FALSE(a.Step());
  EXPECT_FALSE(a.leading());
}

TEST_F(LeaderElectorTest, KnowsWhetherAnotherLeads) {
  LeaderElector a = Candidate("a"), b = Candidate("b");
  EXPECT_FALSE(b.another_leads());
  ASSERT_TRUE(a.Step());
  EXPECT_FALSE(a.another_leads());
  EXPECT_FALSE(b.Step());
  EXPECT_TRUE(b.another_leads());
  EXPECT_EQ(b.leader(), "a");
  EXPECT_EQ(a.leader(), "");
  api_.SetUp(false);
  EXPECT_FALSE(b.Step());
  EXPECT_FALSE(b.another_leads()) << "it cannot know";
  EXPECT_EQ(b.leader(), "");
  api_.SetUp(true);
  ASSERT_TRUE(a.Release());
  ASSERT_TRUE(b.Step());
  EXPECT_FALSE(b.another_leads());
}

TEST_F(LeaderElectorTest, ALeaseThatNobodyHoldsYetIsNotAnothers) {
  DeleteLease();
  LeaderElector a = Candidate("a");
  EXPECT_FALSE(a.Step());
  EXPECT_FALSE(a.Step());
  EXPECT_FALSE(a.another_leads());
}

TEST_F(LeaderElectorTest, ASecondWaitsUntilTheLeaseWasUnchangedForItsWholeTime) {
  LeaderElector a = Candidate("a"), b = Candidate("b");
  ASSERT_TRUE(a.Step());
  EXPECT_EQ(b.Step().error().message, "lease berth is held by a");
  clock_.Advance(seconds(14));
  ASSERT_TRUE(a.Step()) << "renewed";
  EXPECT_FALSE(b.Step());
  clock_.Advance(seconds(14));
  EXPECT_FALSE(b.Step()) << "seen to change 14 s ago";
  clock_.Advance(seconds(1));
  EXPECT_TRUE(b.Step());
  EXPECT_TRUE(b.leading());
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(Holder(), "b");
  EXPECT_EQ(api_.Get(kLeases, "berth-system/berth")["spec"]["leaseTransitions"], 2);
  EXPECT_FALSE(a.Step());
}

TEST_F(LeaderElectorTest, LeadsOnAtOnceUnderTheSameIdentity) {
  ASSERT_TRUE(Candidate("a").Step());
  clock_.Advance(seconds(1));
  LeaderElector again = Candidate("a");
  EXPECT_TRUE(again.Step());
  EXPECT_TRUE(again.leading());
}

TEST_F(LeaderElectorTest, ALeaseThatIsGivenUpIsTakenAtOnce) {
  LeaderElector a = Candidate("a"), b = Candidate("b");
  ASSERT_TRUE(a.Step());
  EXPECT_FALSE(b.Step());
  EXPECT_TRUE(a.Release());
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(Holder(), "");
  EXPECT_TRUE(b.Step());
  EXPECT_TRUE(a.Release());
  EXPECT_EQ(Holder(), "b") << "what is not ours is not given up";
}

TEST_F(LeaderElectorTest, ALeaseIsNotGivenUpWhileAWriteIsOnItsWay) {
  LeaderElector a = Candidate("a"), b = Candidate("b");
  ASSERT_TRUE(a.Step());
  EXPECT_FALSE(b.Step());
  {
    const FencedWrite write(a);
    EXPECT_FALSE(a.Release());
    EXPECT_FALSE(a.leading()) << "no other write begins";
    EXPECT_EQ(Holder(), "a");
    EXPECT_FALSE(b.Step());
  }
  EXPECT_TRUE(a.Release());
  EXPECT_TRUE(b.Step());
}

TEST_F(LeaderElectorTest, AWriteWithoutAnAnswerCountsAsOnItsWayForAWhile) {
  LeaderElector a = Candidate("a");
  ASSERT_TRUE(a.Step());
  FencedWrite(a).Unanswered();
  EXPECT_FALSE(a.Release());
  clock_.Advance(seconds(15));
  EXPECT_TRUE(a.Release());
  EXPECT_EQ(Holder(), "");
}

TEST_F(LeaderElectorTest, StopsLeadingBeforeTheOthersMayBegin) {
  LeaderElector a = Candidate("a");
  ASSERT_TRUE(a.Step());
  api_.SetUp(false);
  clock_.Advance(seconds(13));
  EXPECT_EQ(a.Step().error().code, Errc::kUnavailable);
  EXPECT_TRUE(a.leading());
  EXPECT_LE(a.WritableUntil(), clock_.Now() + seconds(2));
  clock_.Advance(seconds(1));
  EXPECT_FALSE(a.leading());
  api_.SetUp(true);
  EXPECT_TRUE(a.Step());
  EXPECT_TRUE(a.leading());
}

TEST_F(LeaderElectorTest, AWriteWhoseAnswerWasLostDoesNotCountButIsFoundAgain) {
  LeaderElector a = Candidate("a");
  api_.fault = [](const ApiRequest& request) {
    return request.method == "GET" ? Fault::kNone : Fault::kLostAnswer;
  };
  EXPECT_FALSE(a.Step());
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(Holder(), "a");
  api_.fault = [](const ApiRequest&) { return Fault::kNone; };
  EXPECT_TRUE(a.Step());
  EXPECT_TRUE(a.leading());
}

}  // namespace
}  // namespace berth::kube::leader_elector_test
