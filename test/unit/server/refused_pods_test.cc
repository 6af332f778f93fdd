// SPDX-License-Identifier: Apache-2.0
#include "server/extender/waiting/refused_pods.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "cluster/state/cluster_state.h"
#include "test/support/builders.h"

namespace berth::refused_pods_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Names = std::vector<std::string>;

class RefusedPodsTest : public testing::Test {
 protected:
  RefusedPodsTest() {
    AddNode("n1");
    AddNode("n2");
    Take("holder-1", "n1");
    Take("holder-2", "n2");
  }

  void Apply(const ClusterEvent& event) { ASSERT_TRUE(state_.Apply(std::span(&event, 1))); }
  void AddNode(const std::string& name) {
    NodeSpec spec;
    spec.name = name;
    spec.cpu_milli = 64'000;
    spec.memory_bytes = std::int64_t{1} << 40;
    spec.gpus.assign(1, GpuSpec{"", 80'000, true});
    Apply(NodeUpserted{spec});
  }
  static PodRequest Pod(const std::string& uid) {
    PodRequest pod;
    pod.id = {uid, "ns", uid};
    pod.shape.gpus = WholeGpus{1};
    return pod;
  }
  void Take(const std::string& uid, const std::string& node) {
    Apply(PodBound{Pod(uid), {node, 0, 0, {{0, kMilliPerGpu, 0}}}});
  }
  void Free(const std::string& uid) { Apply(PodGone{uid}); }
  void Refuse(const PodRequest& pod, std::optional<std::uint64_t> kept_out = {}) {
    refused_.Refused(std::make_shared<const PodRequest>(pod), state_.Current(), now_, kept_out);
  }
  Names Wakeable() {
    Names names;
    refused_.WakeThoseWithRoom(state_.Current(), now_, [&](const PodId& id) {
      if (queue_ == 0) return false;
      --queue_;
      names.push_back(id.uid);
      return true;
    });
    return names;
  }

  ClusterState state_;
  PodGroups groups_;
  bool fits_ = false;              // pods of groups with a domain
  std::size_t queue_ = 1'000'000;  // so many more pods does the waker take
  DeviceRooms rooms_;
  RefusedPods refused_{
      &groups_, rooms_,
      [this](const std::shared_ptr<const Snapshot>&, const PodRequest&) { return fits_; }};
  Instant now_ = Instant() + minutes(60);
};

TEST_F(RefusedPodsTest, APodIsNamedOnceWhenThereIsRoom) {
  Refuse(Pod("a"));
  EXPECT_EQ(Wakeable(), Names{});
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{"a"});
  Free("holder-2");
  EXPECT_EQ(Wakeable(), Names{}) << "it was named, and not refused since";
}

// kube-scheduler saw the same pod go, and asks: nothing needs to be written.
TEST_F(RefusedPodsTest, ALongWaitingPodIsWokenOnlyIfKubeSchedulerStopsAsking) {
  Refuse(Pod("asked"));
  Refuse(Pod("forgotten"));
  now_ += minutes(1);
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{});
  refused_.Found("asked");
  now_ = refused_.next();
  EXPECT_EQ(Wakeable(), Names{"forgotten"});
}

TEST_F(RefusedPodsTest, RoomThatCameBetweenTheAnswerAndTheNewsOfItCounts) {
  const auto before = state_.Current();
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{});
  refused_.Refused(std::make_shared<const PodRequest>(Pod("late")), before, now_);
  EXPECT_EQ(Wakeable(), Names{"late"});
}

// What is left on a node that was kept for others has been room all along.
TEST_F(RefusedPodsTest, APodThatWasKeptOutOfANodeIsNamedOnceTheNodeIsNobodysAgain) {
  Free("holder-1");
  DeviceRoom room{.pod = {"u", "ns", "u"}, .node = "n1"};
  ASSERT_TRUE(rooms_.Put(room));
  Refuse(Pod("kept-out"), rooms_.openings());
  Refuse(Pod("small"));
  EXPECT_EQ(Wakeable(), Names{});
  EXPECT_LE(refused_.next(), now_ + seconds(1)) << "nothing need be published then";
  ASSERT_TRUE(rooms_.Put(room));
  rooms_.Drop("n2");
  EXPECT_EQ(Wakeable(), Names{}) << "the room is as it was, and there is no other";
  rooms_.Drop("n1");
  EXPECT_EQ(Wakeable(), Names{"kept-out"});
  EXPECT_EQ(Wakeable(), Names{});
}

TEST_F(RefusedPodsTest, ANodeIsOpenToOthersOnceItsPodIsPlannedThere) {
  for (const bool own_claims : {false, true}) {
    DeviceRoom room{.pod = {"u", "ns", "u"}, .node = "n1", .own_claims = own_claims};
    ASSERT_TRUE(rooms_.Put(room));
    Refuse(Pod("kept-out"), rooms_.openings());
    room.held = now_;
    ASSERT_TRUE(rooms_.Put(room));
    EXPECT_EQ(Wakeable(), own_claims ? Names{} : Names{"kept-out"});
    rooms_.Drop("n1");
    now_ += minutes(2);
  }
}

TEST_F(RefusedPodsTest, ARoomThatIsOverBeforeTheNewsOfTheAnswerCounts) {
  ASSERT_TRUE(rooms_.Put({.pod = {"u", "ns", "u"}, .node = "n1"}));
  const std::uint64_t asked = rooms_.openings();
  rooms_.Drop("n1");
  EXPECT_EQ(Wakeable(), Names{});
  Refuse(Pod("kept-out"), asked);
  EXPECT_EQ(Wakeable(), Names{"kept-out"});
}

// kube-scheduler has its own reasons not to take a node that fits by our books.
TEST_F(RefusedPodsTest, ANodeThatHadRoomAllAlongIsNoReason) {
  Free("holder-1");
  Refuse(Pod("a"));
  PodRequest small = Pod("small");
  small.shape.gpus = NoGpu{};
  small.shape.cpu_milli = 100;
  Apply(PodBound{small, {"n1", 100, 0, {}}});
  EXPECT_EQ(Wakeable(), Names{});
}

TEST_F(RefusedPodsTest, RoomThatIsTakenAgainIsNoReason) {
  Refuse(Pod("a"));
  Free("holder-1");
  Take("other", "n1");
  EXPECT_EQ(Wakeable(), Names{});
  Free("other");
  EXPECT_EQ(Wakeable(), Names{"a"});
}

TEST_F(RefusedPodsTest, ANodeThatIsNewIsRoom) {
  Refuse(Pod("a"));
  AddNode("n0");
  EXPECT_EQ(Wakeable(), Names{"a"});
}

TEST_F(RefusedPodsTest, APodThatWasWokenInVainIsLeftAloneForLonger) {
  Refuse(Pod("a"));
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{"a"});
  Duration pause{};
  for (int i = 0; i < 5; ++i) {
    Take("holder-1", "n1");
    Refuse(Pod("a"));
    Free("holder-1");
    EXPECT_EQ(Wakeable(), Names{});
    EXPECT_GT(refused_.next() - now_, pause);
    pause = std::min<Duration>(refused_.next() - now_, seconds(7));
    now_ = refused_.next();
    EXPECT_EQ(Wakeable(), Names{"a"}) << "when its time has come";
  }
}

TEST_F(RefusedPodsTest, WakesAsManyPodsAsFitHighestPriorityFirst) {
  constexpr int kPods = 30;
  for (int i = 0; i < kPods; ++i) {
    PodRequest pod = Pod("p" + std::to_string(i));
    pod.priority = i == 20 ? 100 : 0;
    Refuse(pod);
  }
  Free("holder-1");
  const Names first = Wakeable();
  ASSERT_EQ(first.size(), RefusedPods::kMostAtOnce);
  EXPECT_EQ(first[0], "p20");
  EXPECT_EQ(first[1], "p0") << "then the pod that waits longest";
  // The room is still there: the next ones, a little later.
  EXPECT_GT(refused_.next(), now_);
  now_ = refused_.next();
  EXPECT_EQ(Wakeable().size(), RefusedPods::kMostAtOnce);
  Take("taker", "n1");
  now_ = refused_.next();
  EXPECT_EQ(Wakeable(), Names{}) << "it is not any more";
}

TEST_F(RefusedPodsTest, APodForWhichANodeWasFoundIsForgotten) {
  Refuse(Pod("a"));
  refused_.Found("a");
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{});
  EXPECT_EQ(refused_.size(), 0u);
}

TEST_F(RefusedPodsTest, ChangedClassesReadWaitingPodsAgain) {
  PodRequest bound = Pod("a");
  bound.shape.nodes.required = {"rdma"};
  PodRequest wishes = Pod("b");
  wishes.shape.nodes.wishes = {{"rdma", 100}};
  Refuse(bound);
  Refuse(wishes);
  EXPECT_EQ(Wakeable(), Names{});
  refused_.ClassesChanged();
  EXPECT_EQ(Wakeable(), Names{"a"}) << "a wish keeps nobody waiting";
  EXPECT_EQ(Wakeable(), Names{});
  Refuse(bound);
  EXPECT_EQ(Wakeable(), Names{}) << "nothing has changed since";
}

TEST_F(RefusedPodsTest, WhatItRemembersIsBounded) {
  for (std::size_t i = 0; i <= RefusedPods::kMostPods; ++i) Refuse(Pod("p" + std::to_string(i)));
  EXPECT_EQ(refused_.size(), RefusedPods::kMostPods);
  Free("holder-1");
  EXPECT_EQ(Wakeable().front(), "p1") << "the first was forgotten";
}

TEST_F(RefusedPodsTest, APodOfAGroupWithADomainIsEvaluatedAfterEachChange) {
  PodRequest pod = Pod("a");
  pod.gang.id = GangId::Of("ns/g");
  pod.gang.total = 2;
  pod.domain.required = 0;
  Refuse(pod);
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{}) << "its group does not fit";
  fits_ = true;
  now_ += seconds(2);
  EXPECT_EQ(Wakeable(), Names{}) << "nothing changed since";
  Free("holder-2");
  EXPECT_EQ(Wakeable(), Names{}) << "kube-scheduler may have seen it too";
  now_ = refused_.next();
  EXPECT_EQ(Wakeable(), Names{"a"});
}

// No Kubernetes event of a PodGroup wakes its pods.
TEST_F(RefusedPodsTest, APodIsNamedWhenItsGroupSaysSomethingElse) {
  PodRequest pod = Pod("a");
  pod.gang = {.id = GangId::Of("kubernetes:ns/g"), .object = Gang::Object::kMissing};
  Refuse(pod);
  EXPECT_EQ(Wakeable(), Names{});
  EXPECT_LE(refused_.next(), now_ + seconds(1)) << "groups are looked at from time to time";
  groups_.Of("kubernetes").Put({"ns", "g", 4, {}});
  EXPECT_EQ(Wakeable(), Names{"a"});
}

TEST_F(RefusedPodsTest, BeyondItsBytesItForgetsTheLargestPods) {
  Refuse(Pod("small"));
  for (int i = 0; i < 400; ++i) {
    PodRequest large = Pod("large-" + std::to_string(i));
    large.labels = std::make_shared<const Labels>(Labels{{"k", std::string(200'000, 'x')}});
    Refuse(large);
    ASSERT_LE(refused_.bytes(), RefusedPods::kMostBytes);
  }
  EXPECT_LT(refused_.size(), 200u);
  for (int i = 0; i < 400; ++i) refused_.Found("large-" + std::to_string(i));
  EXPECT_EQ(refused_.size(), 1u);
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{"small"});
  refused_.Found("small");
  EXPECT_EQ(refused_.bytes(), 0u);
}

// 1,500 GPUs come free while each wake takes long: 472 pods were never woken.
TEST_F(RefusedPodsTest, WhatTheWakerHasNoRoomForIsNamedLater) {
  constexpr std::size_t kPods = 1500, kQueue = 1024;
  for (std::size_t i = 0; i < kPods; ++i) Refuse(Pod("p" + std::to_string(i)));
  Free("holder-1");
  std::set<std::string> woken;
  const auto look = [&] {
    for (const std::string& uid : Wakeable()) EXPECT_TRUE(woken.insert(uid).second) << uid;
  };
  queue_ = kQueue;
  for (int i = 0; i < 1000 && queue_ > 0; ++i, now_ = refused_.next()) look();
  EXPECT_EQ(woken.size(), kQueue);
  for (int i = 0; i < 5; ++i, now_ = refused_.next()) look();
  EXPECT_EQ(woken.size(), kQueue) << "it is full";
  EXPECT_LT(refused_.next(), Instant::max()) << "it is tried again though nothing is published";
  for (int i = 0; i < 1000 && woken.size() < kPods; ++i, now_ = refused_.next()) {
    queue_ = 1;
    look();
  }
  EXPECT_EQ(woken.size(), kPods);
}

TEST_F(RefusedPodsTest, APodOfADomainThatTheWakerHasNoRoomForIsNamedLaterToo) {
  PodRequest pod = Pod("a");
  pod.gang.id = GangId::Of("ns/g");
  pod.domain.required = 0;
  Refuse(pod);
  Free("holder-1");
  fits_ = true;
  queue_ = 0;
  EXPECT_EQ(Wakeable(), Names{});
  queue_ = 1;
  now_ = refused_.next();
  EXPECT_EQ(Wakeable(), Names{"a"});
}

// Anybody who may edit a PodGroup may do so all the time.
TEST_F(RefusedPodsTest, AGroupThatIsEditedAllTheTimeWakesItsPodsByTime) {
  constexpr std::size_t kPods = 40;
  const GangId id = GangId::Of("kubernetes:ns/g");
  const auto refuse = [&](const std::string& uid) {
    PodRequest pod = Pod(uid);
    pod.gang = {.id = id, .object = Gang::Object::kMissing};
    if (const auto group = groups_.Find(pod.gang)) pod.gang.minimum = group->min_members;
    Refuse(pod);
  };
  for (std::size_t i = 0; i < kPods; ++i) refuse("p" + std::to_string(i));
  Refuse(Pod("other"));
  std::map<std::string, int> wakes;
  std::map<std::int64_t, std::size_t> in_a_tenth;
  const Instant begin = now_;
  Instant edited{};
  int size = 2;
  for (; now_ - begin < seconds(60); now_ += milliseconds(20)) {
    if (now_ - edited >= milliseconds(300)) {
      edited = now_;
      groups_.Of("kubernetes").Put({"ns", "g", ++size, {}});
    }
    for (const std::string& uid : Wakeable()) {
      ++wakes[uid];
      ++in_a_tenth[(now_ - begin) / milliseconds(100)];
      refuse(uid);  // kube-scheduler asks again
    }
  }
  ASSERT_EQ(wakes.size(), kPods) << "each of them is asked about again";
  for (const auto& [uid, times] : wakes) EXPECT_LE(times, 2) << uid;
  for (const auto& [tenth, count] : in_a_tenth) {
    EXPECT_LE(count, RefusedPods::kMostAtOnce) << tenth;
  }
  Free("holder-1");
  EXPECT_EQ(Wakeable(), Names{}) << "kube-scheduler may have seen it too";
  now_ = refused_.next();
  const Names now = Wakeable();
  EXPECT_NE(std::ranges::find(now, "other"), now.end()) << "others do not wait for that";
}

}  // namespace
}  // namespace berth::refused_pods_test
