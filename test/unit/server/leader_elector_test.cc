// SPDX-License-Identifier: Apache-2.0
#include "server/kube/leader_elector.h"

#include <chrono>

#include <gtest/gtest.h>

#include "test/support/fake_api_server.h"

namespace berth::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FakeApiServer;
using test::Fault;

const std::string kLeases = "/apis/coordination.k8s.io/v1/leases";

class LeaderElectorTest : public testing::Test {
 protected:
  LeaderElector Candidate(const std::string& identity) {
    return {api_, clock_, {"berth-system", "berth", identity, seconds(15)}};
  }
  [[nodiscard]] std::string Holder() const {
    return api_.Get(kLeases, "berth-system/berth")["spec"]["holderIdentity"];
  }

  FakeApiServer api_;
  SimClock clock_;
};

TEST_F(LeaderElectorTest, LeadsOnceItHasCreatedTheLease) {
  LeaderElector a = Candidate("a");
  EXPECT_FALSE(a.leading());
  ASSERT_TRUE(a.Step());
  EXPECT_TRUE(a.leading());
  const auto lease = api_.Get(kLeases, "berth-system/berth")["spec"];
  EXPECT_EQ(lease["holderIdentity"], "a");
  EXPECT_EQ(lease["leaseDurationSeconds"], 15);
  EXPECT_EQ(lease["leaseTransitions"], 0);
  EXPECT_EQ(lease["renewTime"].get<std::string>().size(), 27u);
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
  EXPECT_EQ(api_.Get(kLeases, "berth-system/berth")["spec"]["leaseTransitions"], 1);
  EXPECT_FALSE(a.Step());
}

TEST_F(LeaderElectorTest, TheTwoNeverLeadAtOnce) {
  LeaderElector a = Candidate("a"), b = Candidate("b");
  int handovers = 0;
  bool a_led = false;
  for (int i = 0; i < 4000; ++i) {
    const bool cut_a = i / 400 % 2 == 1;
    api_.fault = [cut_a](const ApiRequest& request) {
      return cut_a && request.body.find("\"a\"") != std::string::npos ? Fault::kNeverCame
                                                                      : Fault::kNone;
    };
    if (i % 9 == 0) (void)a.Step();
    if (i % 11 == 0 && cut_a) (void)b.Step();
    ASSERT_FALSE(a.leading() && b.leading()) << i;
    if (a.leading() != a_led) ++handovers;
    a_led = a.leading();
    clock_.Advance(milliseconds(200));
  }
  EXPECT_GT(handovers, 3);
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
  a.Release();
  EXPECT_FALSE(a.leading());
  EXPECT_EQ(Holder(), "");
  EXPECT_TRUE(b.Step());
  a.Release();
  EXPECT_EQ(Holder(), "b") << "what is not ours is not given up";
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
}  // namespace berth::kube
