// SPDX-License-Identifier: Apache-2.0
//
// Binds to nodes of HAMi's agent: under its lock, and without it once they have failed.
#include <chrono>
#include <deque>
#include <string>

#include <gtest/gtest.h>

#include "bench/replay/time/sim_clock.h"
#include "config/config.h"
#include "server/dialects/hami/hami_binding.h"
#include "server/kube/write/pod_writes.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/fake_api_server.h"
#include "test/support/mig_nodes.h"

namespace berth::kube::hami_bind_test {
namespace {

using namespace std::chrono_literals;
using test::FakeApiServer;
using test::FakeNode;
using test::FakePod;
using test::Fault;
using Json = nlohmann::json;

const std::string kPods = "/api/v1/pods";
const std::string kNodes = "/api/v1/nodes";
const std::string kLock = "hami.io/mutex.lock";

bool IsBinding(const ApiRequest& request) {
  return request.path.find("/binding?") != std::string::npos;
}

class HamiBindTest : public testing::Test, protected WriteFence {
 protected:
  HamiBindTest() {
    api_.Put(kNodes, FakeNode("n1", 0));
    api_.Put(kNodes, FakeNode("n2", 0));
    api_.Put(kPods, FakePod("p", {{"nvidia.com/gpu", "1"}}));
    pod_.id = {"uid-p", "ns", "p"};
    pod_.shape.gpus = test::MigWith(1);
    pod_.containers.push_back({"main", pod_.shape.gpus, false});
    pod_.container_count = 1;
    MigSpec mig = test::DynamicMig(1, "H100-80GB");
    mig.agent = "hami";
    mig.gpus[0].uuid = "GPU-a";
    node_.mig = NodeMig(mig);
    api_.fault = [this](const ApiRequest& request) {
      if (before_) before_(request);
      return TakeFirst(IsBinding(request) ? binding_faults_ : other_faults_);
    };
  }

  Status Bind(const std::string& node = "n1") {
    node_.name = node;
    Placement placement{node, 1000, 0, {}};
    placement.mig = {test::AGrant(0, "1g.10gb", 6)};
    return binder_.Bind({pod_, placement, node_, clock_.Now() + 10s, "0123456789abcdef"});
  }

  // "" where there is none.
  [[nodiscard]] std::string Lock(const std::string& node = "n1") const {
    const Json metadata = api_.Get(kNodes, node)["metadata"];
    return metadata.value("annotations", Json::object()).value(kLock, "");
  }
  void PutLock(const std::string& text, const std::string& node = "n1") {
    Json object = api_.Get(kNodes, node);
    object["metadata"]["annotations"][kLock] = text;
    api_.Put(kNodes, object);
  }
  void TakeLockAway(const std::string& node = "n1") {
    Json object = api_.Get(kNodes, node);
    object["metadata"]["annotations"].erase(kLock);
    api_.Put(kNodes, object);
  }
  // hamis: HAMi's scheduler has chosen a node for it, bound or not.
  void PutPod(const std::string& name, const std::string& node, const std::string& phase,
              bool hamis = true) {
    Json pod = FakePod(name, Json::object());
    if (hamis) pod["metadata"]["annotations"]["hami.io/vgpu-node"] = "n1";
    if (!node.empty()) pod["spec"]["nodeName"] = node;
    pod["status"]["phase"] = phase;
    api_.Put(kPods, pod);
  }
  [[nodiscard]] bool IsBound() const {
    return api_.Get(kPods, "ns/p")["spec"].contains("nodeName");
  }

  [[nodiscard]] Instant WritableUntil() const override { return writable_until_; }

  FakeApiServer api_;
  std::deque<Fault> binding_faults_, other_faults_;
  std::function<void(const ApiRequest&)> before_;  // runs outside of the server's lock
  SimClock clock_;
  Instant writable_until_ = Instant::max();
  PodRequest pod_;
  NodeSpec node_;
  const wire::PodRules rules_{test::AllDialects(), DefaultConfig().resources};
  const WriteContext write_{
      .client = api_, .clock = clock_, .fence = *this, .sleep = [this](Duration time) {
        clock_.Advance(time);
      }};
  dialects::HamiBinds hami_{write_, rules_};
  ApiBinder binder_{{.write = write_,
                     .rules = rules_,
                     .surround = [this](const BindOrder& order, const auto& bind) {
                       return hami_.AroundBind(order, bind);
                     }}};
};

TEST_F(HamiBindTest, TakesTheLockAndLeavesItToTheAgent) {
  std::string lock_at_binding;
  before_ = [&](const ApiRequest& request) {
    if (IsBinding(request)) lock_at_binding = Lock();
  };
  ASSERT_TRUE(Bind());
  EXPECT_EQ(lock_at_binding, "2026-08-21T10:00:00Z,ns,p");
  EXPECT_EQ(Lock(), lock_at_binding);
  const Json annotations = api_.Get(kPods, "ns/p")["metadata"]["annotations"];
  EXPECT_EQ(annotations["hami.io/vgpu-devices-to-allocate"], "GPU-a,NVIDIA,9984,14:;");
  EXPECT_EQ(annotations["hami.io/bind-phase"], "allocating");
  EXPECT_EQ(annotations["hami.io/bind-time"], "1787306400");
  EXPECT_TRUE(annotations.contains("berth.dev/devices"));
}

TEST_F(HamiBindTest, OtherNodesAreNotLockedOrAskedAbout) {
  MigSpec mig = *node_.mig;
  mig.agent.clear();
  node_.mig = NodeMig(mig);
  int asked = 0;
  before_ = [&](const ApiRequest&) { ++asked; };
  ASSERT_TRUE(Bind());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(Lock(), "");
}

TEST_F(HamiBindTest, WaitsForTheLockOfAPodThatIsStillServed) {
  PutPod("other", "n1", "Pending");
  PutLock("2026-08-21T09:59:00Z,ns,other");
  int looks = 0;
  before_ = [&](const ApiRequest& request) {
    if (request.path == kNodes + "/n1" && request.method == "GET" && ++looks == 4) TakeLockAway();
  };
  EXPECT_TRUE(Bind());
  EXPECT_EQ(looks, 4);
  EXPECT_TRUE(Lock().ends_with(",ns,p"));
}

TEST_F(HamiBindTest, GivesUpAtTheDeadlineAndLeavesTheLockOfTheOther) {
  PutPod("other", "", "Pending");
  PutLock("2026-08-21T09:59:00Z,ns,other");
  const Instant start = clock_.Now();
  const Status bound = Bind();
  EXPECT_EQ(bound.error().code, Errc::kDeadline);
  EXPECT_EQ(bound.error().message, "HAMi's lock on the node is held for another pod");
  EXPECT_LE(clock_.Now() - start, 10s);
  EXPECT_GE(clock_.Now() - start, 9s);
  EXPECT_EQ(Lock(), "2026-08-21T09:59:00Z,ns,other");
  EXPECT_FALSE(IsBound());
}

TEST_F(HamiBindTest, TakesOverALockThatBindsNobody) {
  PutPod("waiting", "", "Pending");
  PutPod("elsewhere", "n2", "Running");
  PutPod("over", "n1", "Failed");
  for (const char* lock : {"2026-08-21T09:54:59Z,ns,waiting",    // expired
                           "2026-08-21T09:54:59Z",               // and of an old release
                           "2026-08-21T10:00:00Z,ns,gone",       //
                           "2026-08-21T10:00:00Z,ns,elsewhere",  //
                           "2026-08-21T10:00:00Z,ns,over",       //
                           "2026-08-21T10:00:00Z,ns,p"}) {       // our own
    PutLock(lock);
    api_.Put(kPods, FakePod("p", {{"nvidia.com/gpu", "1"}}));
    const Instant start = clock_.Now();
    EXPECT_TRUE(Bind()) << lock;
    EXPECT_EQ(clock_.Now(), start) << lock << ": without waiting";
    EXPECT_EQ(Lock(), "2026-08-21T10:00:00Z,ns,p");
  }
}

// Another process of Berth took it and was killed before the Binding.
TEST_F(HamiBindTest, TakesOverALockThatBerthHasLeftBehind) {
  PutPod("ours", "", "Pending", false);
  PutLock("2026-08-21T09:59:49Z,ns,ours");
  const Instant start = clock_.Now();
  EXPECT_TRUE(Bind());
  EXPECT_EQ(clock_.Now(), start) << "without waiting";
  EXPECT_TRUE(Lock().ends_with(",ns,p"));
}

TEST_F(HamiBindTest, WaitsUntilAnAbandonedLockIsOldEnough) {
  PutPod("ours", "", "Pending", false);
  PutLock("2026-08-21T09:59:53Z,ns,ours");  // its Binding may still be on the way
  const Instant start = clock_.Now();
  EXPECT_TRUE(Bind());
  EXPECT_GE(clock_.Now() - start, 3s);
  EXPECT_LE(clock_.Now() - start, 5s);
}

TEST_F(HamiBindTest, LeavesTheLockOfAPodThatItBindsItself) {
  PutPod("q", "", "Pending", false);
  // While the Binding of q goes on, somebody else's pod comes to the node.
  PodRequest q = pod_;
  q.id = {"uid-q", "ns", "q"};
  Placement placement{"n1", 1000, 0, {}};
  placement.mig = {test::AGrant(0, "1g.10gb", 5)};
  node_.name = "n1";
  const BindOrder order{q, placement, node_, clock_.Now() + 60s, "0123456789abcdef"};
  Status other;
  ASSERT_TRUE(hami_.AroundBind(order, [&]() -> Status {
    clock_.Advance(11s);
    other = Bind();
    EXPECT_TRUE(Lock().ends_with(",ns,q"));
    Json bound = api_.Get(kPods, "ns/q");
    bound["spec"]["nodeName"] = "n1";
    api_.Put(kPods, bound);
    return {};
  }));
  EXPECT_EQ(other.error().message, "HAMi's lock on the node is held for another pod");
}

TEST_F(HamiBindTest, OfTwoWhoTakeItAtOnceOneWaits) {
  PutPod("faster", "n1", "Pending");
  bool once = false;
  before_ = [&](const ApiRequest& request) {
    if (request.method != "PATCH" || std::exchange(once, true)) return;
    PutLock("2026-08-21T10:00:00Z,ns,faster");  // after we have looked
  };
  EXPECT_EQ(Bind().error().code, Errc::kDeadline);
  EXPECT_EQ(Lock(), "2026-08-21T10:00:00Z,ns,faster");
}

TEST_F(HamiBindTest, ALockThatCannotBeReadIsNamedAndLeftAlone) {
  PutLock("yesterday");
  const Status bound = Bind();
  EXPECT_EQ(bound.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(bound.error().message,
            "node n1: annotation hami.io/mutex.lock: want TIME,NAMESPACE,POD with the time as "
            "2026-08-21T10:00:00Z, got \"yesterday\"");
  EXPECT_EQ(Lock(), "yesterday");
}

TEST_F(HamiBindTest, WithoutTheRightToLockNothingIsBound) {
  other_faults_ = {Fault::kNone, Fault::kForbidden};
  const Status bound = Bind();
  EXPECT_EQ(bound.error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(bound.error().message.starts_with("HAMi's lock on the node: the API server answered"))
      << bound.error().message;
  EXPECT_FALSE(IsBound());
}

TEST_F(HamiBindTest, ReleasesTheLockOfABindThatWasRefused) {
  binding_faults_ = {Fault::kForbidden};
  EXPECT_EQ(Bind().error().code, Errc::kInvalidArgument);
  EXPECT_EQ(Lock(), "");
  pod_.id.uid = "another";
  EXPECT_EQ(Bind().error().code, Errc::kConflict);
  EXPECT_EQ(Lock(), "");
}

TEST_F(HamiBindTest, ReleasesNoLockThatIsNotItsOwnAnyMore) {
  binding_faults_ = {Fault::kForbidden};
  before_ = [&](const ApiRequest& request) {
    if (IsBinding(request)) PutLock("2026-08-21T10:00:00Z,ns,other");
  };
  EXPECT_FALSE(Bind());
  EXPECT_EQ(Lock(), "2026-08-21T10:00:00Z,ns,other");
}

// The Binding was carried out: the agent is about to look for the lock.
TEST_F(HamiBindTest, KeepsTheLockWhereOnlyTheAnswerWasLost) {
  binding_faults_ = {Fault::kLostAnswer};
  EXPECT_EQ(Bind().error().code, Errc::kConflict);
  EXPECT_TRUE(IsBound());
  EXPECT_EQ(Lock(), "2026-08-21T10:00:00Z,ns,p");
  hami_.Upkeep();
  EXPECT_EQ(Lock(), "2026-08-21T10:00:00Z,ns,p");
}

TEST_F(HamiBindTest, ReleasesTheLockOncePodIsKnownNotToBeThere) {
  binding_faults_.assign(1000, Fault::kNeverCame);
  before_ = [&](const ApiRequest& request) {
    if (IsBinding(request)) other_faults_.assign(1000, Fault::kNeverCame);
  };
  EXPECT_EQ(Bind().error().code, Errc::kUnavailable);
  EXPECT_NE(Lock(), "");
  before_ = nullptr;
  hami_.Upkeep();  // still nobody knows
  EXPECT_NE(Lock(), "");
  other_faults_.clear();
  hami_.Upkeep();
  EXPECT_EQ(Lock(), "");
}

TEST_F(HamiBindTest, TheLockThatALaterBindTookAgainIsThatOnes) {
  binding_faults_.assign(1000, Fault::kNeverCame);
  before_ = [&](const ApiRequest& request) {
    if (IsBinding(request)) other_faults_.assign(1000, Fault::kNeverCame);
  };
  EXPECT_EQ(Bind().error().code, Errc::kUnavailable);
  before_ = nullptr;
  binding_faults_.clear();
  other_faults_.clear();
  ASSERT_TRUE(Bind());
  api_.Put(kPods, FakePod("p", {{"nvidia.com/gpu", "1"}}));  // as if it were not bound
  hami_.Upkeep();
  EXPECT_TRUE(Lock().ends_with(",ns,p"));
}

TEST_F(HamiBindTest, ALockOfWhichTheAnswerWasLostIsNotLeftBehind) {
  // Carried out, not answered; then nobody answers until the deadline is near.
  other_faults_ = {Fault::kNone, Fault::kLostAnswer};
  writable_until_ = clock_.Now() + 40ms;
  EXPECT_EQ(Bind().error().code, Errc::kDeadline);
  EXPECT_FALSE(IsBound());
  EXPECT_EQ(Lock(), "");
  // With time left it is simply taken again.
  writable_until_ = Instant::max();
  other_faults_ = {Fault::kNone, Fault::kLostAnswer};
  EXPECT_TRUE(Bind());
}

TEST_F(HamiBindTest, LocksNothingOnceItDoesNotLead) {
  writable_until_ = clock_.Now();
  EXPECT_EQ(Bind().error().code, Errc::kDeadline);
  EXPECT_EQ(Lock(), "");
  // Leadership ends between lock and Binding.
  writable_until_ = Instant::max();
  before_ = [&](const ApiRequest& request) {
    if (request.method == "PATCH") writable_until_ = clock_.Now();
  };
  EXPECT_EQ(Bind().error().code, Errc::kDeadline);
  EXPECT_FALSE(IsBound());
  EXPECT_EQ(Lock(), "");
}

TEST_F(HamiBindTest, ANodeThatIsGoneIsSaidSo) {
  EXPECT_EQ(Bind("n3").error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace berth::kube::hami_bind_test
