// SPDX-License-Identifier: Apache-2.0
//
// What lists of pods and binds that overlap make of the books, step by step.
#include "server/kube/watch/cluster_sync.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/values/held_bytes.h"
#include "config/config.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/fake_api_server.h"

namespace berth::kube::cluster_sync_test {
namespace {

using test::ANode;
using test::FakePod;
using Json = nlohmann::json;

const Instant kLater = Instant() + std::chrono::hours(1);

// The pod as the API server has it once it is bound to node "n" with that GPU.
Json BoundPod(const std::string& name, int gpu, int version) {
  Json pod = FakePod(name, {{"nvidia.com/gpu", "1"}});
  pod["spec"]["nodeName"] = "n";
  pod["metadata"]["resourceVersion"] = std::to_string(version);
  const Json devices = {{"index", gpu}, {"milli", 1000}, {"memory_mib", 81920}};
  pod["metadata"]["annotations"]["berth.dev/devices"] =
      Json{{"version", 1}, {"node", "n"}, {"containers", {{"main", {{"gpus", {devices}}}}}}}.dump();
  return pod;
}

// The same, not bound yet: a member of a group.
Json WaitingMember(const std::string& name, int version) {
  Json pod = FakePod(name, {{"nvidia.com/gpu", "1"}});
  pod["metadata"]["resourceVersion"] = std::to_string(version);
  pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "g";
  return pod;
}
Json BoundMember(const std::string& name, int gpu, int version) {
  Json pod = BoundPod(name, gpu, version);
  pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "g";
  return pod;
}

class PodSinkTest : public testing::Test {
 protected:
  PodSinkTest() {
    const ClusterEvent up = NodeUpserted{ANode("n").Gpus(2).Spec()};
    EXPECT_TRUE(state_.Apply(std::span(&up, 1)));
  }

  static PaddedText Text(const Json& object) { return PaddedText(object.dump()); }
  void Listed(const Json& pod) { sink_.Listed(Text(pod)); }
  void Changed(const Json& pod) { sink_.Changed(Text(pod)); }
  void Deleted(const Json& pod) { sink_.Deleted(Text(pod)); }
  void List(const std::vector<Json>& pods) {
    sink_.ListBegins();
    for (const Json& pod : pods) Listed(pod);
    sink_.ListEnds();
  }
  // What a bind does first and last.
  void Reserve(const Json& pod, int gpu) {
    const auto observed = wire::DecodeObservedPod(Text(pod), rules_);
    ASSERT_TRUE(observed);
    const Placement placement{"n", 0, 0, {{gpu, 1000, 0}}};
    const auto reserved = state_.Reserve(observed->pod, placement, kLater);
    ASSERT_TRUE(reserved.has_value()) << reserved.error().message;
  }
  [[nodiscard]] std::optional<PodState> StateOf(const std::string& uid) const {
    const auto held = state_.FindPod(uid);
    return held ? std::optional(held->state) : std::nullopt;
  }
  // The members of the group that wait.
  [[nodiscard]] std::vector<std::string> Waiting() const {
    std::vector<std::string> uids;
    for (const auto& member : waiting_.WaitingMembers(GangId::Of("coscheduling:ns/g"))) {
      uids.push_back(member.pod->id.uid);
    }
    return uids;
  }
  [[nodiscard]] std::size_t Overdue() const { return state_.Overdue(Instant()).size(); }

  ClusterState state_;
  const wire::PodRules rules_{test::AllDialects(), DefaultConfig().resources};
  std::vector<std::string> problems_;
  WaitingPods waiting_;
  PodSink sink_{state_,
                rules_,
                [this](auto, auto object, const std::string& why) {
                  problems_.push_back(std::string(object) + ": " + why);
                },
                {},
                &waiting_};
};

// The Binding of a leader that stood still was carried out when this process led.
TEST(PodSinkDisputes, AGpuThatAnotherLeaderGaveAgainIsReportedOnce) {
  ClusterState state;
  const ClusterEvent up = NodeUpserted{ANode("n").Gpus(2).Spec()};
  ASSERT_TRUE(state.Apply(std::span(&up, 1)));
  const wire::PodRules rules(test::AllDialects(), DefaultConfig().resources);
  std::vector<std::string> told;
  PodSink sink(
      state, rules, [](auto, auto, auto&) {},
      [&told](const DeviceDispute& dispute) { told.push_back(dispute.pod.name); });
  const auto show = [&sink](const Json& pod) { sink.Changed(PaddedText(pod.dump())); };
  show(BoundPod("ours", 0, 1));
  show(BoundPod("late", 0, 2));
  EXPECT_EQ(told, std::vector<std::string>{"late"});
  EXPECT_EQ(state.DisputeCount(), 1U);
  Json changed = BoundPod("late", 0, 3);
  changed["metadata"]["labels"]["a"] = "b";
  show(changed);
  EXPECT_EQ(told.size(), 1U) << "nothing new is said";
  sink.Deleted(PaddedText(BoundPod("ours", 0, 4).dump()));
  EXPECT_EQ(state.DisputeCount(), 0U);
}

// Whatever brings the news: a status, a list after a restart, or one without a status any more.
TEST_F(PodSinkTest, APodHasTheGpuThatItsStatusNames) {
  const ClusterEvent up = NodeUpserted{ANode("n").Gpus(2).Named("").Spec()};
  ASSERT_TRUE(state_.Apply(std::span(&up, 1)));
  const auto given = [](int version) {
    Json pod = BoundPod("a", 0, version);
    pod["status"]["containerStatuses"] =
        Json::array({{{"name", "main"},
                      {"allocatedResourcesStatus",
                       Json::array({{{"name", "nvidia.com/gpu"},
                                     {"resources", Json::array({{{"resourceID", "GPU-1"}}})}}})}}});
    return pod;
  };
  const auto gpu = [this] { return state_.FindPod("uid-a")->placement.grants.at(0).gpu; };
  Reserve(BoundPod("a", 0, 1), 0);
  EXPECT_TRUE(state_.Confirm("uid-a"));
  Changed(BoundPod("a", 0, 2));
  EXPECT_EQ(gpu(), 0);
  Changed(given(3));
  EXPECT_EQ(gpu(), 1);
  const auto before = state_.Current();
  Changed(given(4));
  EXPECT_EQ(state_.Current(), before) << "the same again is no news";
  Changed(BoundPod("a", 0, 5));
  List({BoundPod("a", 0, 5)});
  EXPECT_EQ(gpu(), 1);
  Json over = given(6);
  over["status"]["phase"] = "Failed";
  Changed(over);
  EXPECT_FALSE(state_.FindPod("uid-a"));
  List({given(7)});
  EXPECT_EQ(gpu(), 1);
  EXPECT_EQ(state_.DisputeCount(), 0U);
}

TEST_F(PodSinkTest, AReservationOutlivesAListThatDoesNotShowItsPod) {
  Reserve(BoundPod("a", 0, 1), 0);
  List({});
  EXPECT_EQ(StateOf("uid-a"), PodState::kReserved);
  EXPECT_TRUE(state_.Confirm("uid-a"));
  Changed(BoundPod("a", 0, 7));
  List({BoundPod("a", 0, 7)});
  EXPECT_EQ(StateOf("uid-a"), PodState::kBound);
}

TEST_F(PodSinkTest, APodThatIsBoundWhileTheListIsOnTheWireIsKept) {
  Reserve(BoundPod("a", 0, 1), 0);
  sink_.ListBegins();
  EXPECT_TRUE(state_.Confirm("uid-a"));
  sink_.ListEnds();
  EXPECT_EQ(StateOf("uid-a"), PodState::kBound);
  EXPECT_EQ(Overdue(), 1U) << "it may have been deleted before the list was made";
  Changed(BoundPod("a", 0, 7));
  EXPECT_EQ(Overdue(), 0U) << "the watch shows it";
}

TEST_F(PodSinkTest, AListKeepsAPodBoundWhileItWasRead) {
  sink_.ListBegins();
  Reserve(BoundPod("a", 0, 1), 0);
  EXPECT_TRUE(state_.Confirm("uid-a"));
  sink_.ListEnds();
  EXPECT_EQ(StateOf("uid-a"), PodState::kBound);
}

TEST_F(PodSinkTest, ABindThatEndsAfterAListThatDidNotShowItsPodIsDoubted) {
  Reserve(BoundPod("a", 0, 1), 0);
  List({});
  EXPECT_EQ(Overdue(), 0U) << "its bind is under way";
  EXPECT_TRUE(state_.Confirm("uid-a"));
  EXPECT_EQ(Overdue(), 1U);
}

TEST_F(PodSinkTest, APodThatASettledDoubtBroughtBackOutlivesTheNextList) {
  const Json pod = BoundPod("a", 0, 7);
  Reserve(pod, 0);
  const auto before = state_.DoubtAbout("uid-a");
  ASSERT_TRUE(before);
  List({});  // the watch broke while the bind was under way
  const auto doubt = state_.DoubtAbout("uid-a");
  ASSERT_TRUE(doubt);
  const PodBound truth{state_.FindPod("uid-a")->pod, {"n", 0, 0, {{0, 1000, 81920}}}};
  EXPECT_FALSE(state_.Settle(*before, truth)) << "asked before the list";
  EXPECT_TRUE(state_.Settle(*doubt, truth));
  for (int hours = 0; hours < 3; ++hours) {
    List({pod});
    EXPECT_EQ(StateOf("uid-a"), PodState::kBound);
  }
}

TEST_F(PodSinkTest, WhatAListShowsIsAliveWhateverWasThoughtGone) {
  Changed(BoundPod("a", 0, 7));
  Deleted(BoundPod("a", 0, 8));
  Changed(BoundPod("a", 0, 7));
  EXPECT_FALSE(StateOf("uid-a")) << "an event that came late";
  List({BoundPod("a", 1, 5)});  // an API server that was restored from a backup
  ASSERT_EQ(StateOf("uid-a"), PodState::kBound);
  EXPECT_EQ(state_.FindPod("uid-a")->placement.grants.at(0).gpu, 1);
  Changed(BoundPod("a", 1, 9));
  Deleted(BoundPod("a", 1, 10));
  EXPECT_FALSE(StateOf("uid-a"));
}

TEST_F(PodSinkTest, PodsThatWereBoundBeforeAListAndAreNotInItAreGone) {
  Changed(BoundPod("watched", 0, 7));
  Reserve(BoundPod("confirmed", 1, 1), 1);
  EXPECT_TRUE(state_.Confirm("uid-confirmed"));
  List({});
  EXPECT_FALSE(StateOf("uid-watched"));
  EXPECT_FALSE(StateOf("uid-confirmed"));
}

TEST_F(PodSinkTest, AListThatBeginsAnewCountsFromItsOwnBegin) {
  Changed(BoundPod("a", 0, 7));
  sink_.ListBegins();
  Listed(BoundPod("a", 0, 7));
  Reserve(BoundPod("b", 1, 1), 1);
  EXPECT_TRUE(state_.Confirm("uid-b"));
  List({});  // the first one broke off; both pods were deleted before the second one
  EXPECT_FALSE(StateOf("uid-a"));
  EXPECT_FALSE(StateOf("uid-b"));
}

using Uids = std::vector<std::string>;

TEST_F(PodSinkTest, APodWaitsUntilItIsBoundToldToEndOrGone) {
  for (const char* name : {"a", "b", "c", "d"}) Changed(WaitingMember(name, 1));
  EXPECT_EQ(Waiting(), (Uids{"uid-a", "uid-b", "uid-c", "uid-d"}));
  Changed(BoundMember("a", 0, 2));
  EXPECT_EQ(StateOf("uid-a"), PodState::kBound);
  EXPECT_EQ(Waiting(), (Uids{"uid-b", "uid-c", "uid-d"}));
  Json ending = WaitingMember("b", 2);
  ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  Changed(ending);
  Deleted(WaitingMember("c", 2));
  EXPECT_EQ(Waiting(), (Uids{"uid-d"}));
  Changed(WaitingMember("a", 1));
  EXPECT_EQ(Waiting(), (Uids{"uid-d"})) << "an event that came late";
  List({WaitingMember("e", 9)});
  EXPECT_EQ(Waiting(), (Uids{"uid-e"}));
}

TEST_F(PodSinkTest, GatedMembersDoNotWait) {
  Json gated = WaitingMember("a", 1);
  gated["spec"]["schedulingGates"] = {{{"name", "kueue.x-k8s.io/admission"}}};
  Changed(gated);
  Json foreign = WaitingMember("b", 1);
  foreign["spec"]["schedulerName"] = "other-scheduler";
  Changed(foreign);
  EXPECT_EQ(Waiting(), Uids{"uid-b"}) << "its gang names it";
  Changed(WaitingMember("a", 2));
  EXPECT_EQ(Waiting(), (Uids{"uid-a", "uid-b"})) << "its gate is gone";
}

TEST_F(PodSinkTest, AReservationOutlivesAListThatShowsItsPodWithoutANode) {
  Changed(WaitingMember("a", 1));
  Reserve(WaitingMember("a", 1), 0);
  List({WaitingMember("a", 1)});
  EXPECT_EQ(StateOf("uid-a"), PodState::kReserved);
  List({});
  EXPECT_FALSE(StateOf("uid-a")) << "it was deleted while the watch was away";
}

TEST_F(PodSinkTest, APodThatIsDeletedBeforeItIsBoundHoldsNothing) {
  Changed(WaitingMember("a", 1));
  Reserve(WaitingMember("a", 1), 0);
  Changed(WaitingMember("a", 2));
  EXPECT_EQ(StateOf("uid-a"), PodState::kReserved);
  Deleted(WaitingMember("a", 3));
  EXPECT_FALSE(StateOf("uid-a"));
}

TEST_F(PodSinkTest, ABoundPodThatIsToldToEndHoldsItsDevicesAndIsLeaving) {
  Changed(BoundMember("a", 0, 1));
  EXPECT_FALSE(state_.FindPod("uid-a")->leaving);
  Json ending = BoundMember("a", 0, 2);
  ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  Changed(ending);
  EXPECT_TRUE(state_.FindPod("uid-a")->leaving);
  EXPECT_EQ(state_.FindPod("uid-a")->placement.grants.size(), 1U);
  List({ending});
  EXPECT_TRUE(state_.FindPod("uid-a")->leaving);
}

// Its binding was undone: the backup is older.
TEST_F(PodSinkTest, APodThatHasLostItsNodeToARestoredBackupHoldsNothing) {
  Changed(BoundMember("a", 0, 7));
  List({WaitingMember("a", 5)});
  EXPECT_FALSE(StateOf("uid-a"));
  EXPECT_EQ(Waiting(), (Uids{"uid-a"}));
  Changed(BoundMember("a", 1, 8));
  EXPECT_EQ(StateOf("uid-a"), PodState::kBound);
}

TEST_F(PodSinkTest, AProblemOfAPodThatAListDoesNotShowIsOver) {
  Json pod = BoundPod("a", 0, 7);
  pod["metadata"]["annotations"]["berth.dev/devices"] = "nonsense";
  Changed(pod);
  EXPECT_EQ(sink_.unreadable(), 1U);
  List({pod});
  EXPECT_EQ(sink_.unreadable(), 1U);
  List({});
  EXPECT_EQ(sink_.unreadable(), 0U);
  EXPECT_EQ(problems_.size(), 1U);
}

// --- pods that are as large as the API server admits

// A pod for each key that can carry a text or a list, by the key.
std::vector<std::pair<std::string, Json>> LargePods() {
  constexpr std::size_t kBytes = 250'000;
  std::vector<std::string> texts = {std::string(kBytes, 'x')};
  for (const std::string word :
       {"a100,", "k=v,", "1,1,1:", "{\"a\":[", "[", "GPU-0,NVIDIA,1,1:;"}) {
    texts.emplace_back();
    while (texts.back().size() < kBytes) texts.back() += word;
  }
  std::vector<std::pair<std::string, Json>> pods;
  const auto add = [&pods](const std::string& what) -> Json& {
    Json pod = FakePod("p" + std::to_string(pods.size()), {{"nvidia.com/gpu", "1"}});
    pod["metadata"]["resourceVersion"] = std::to_string(pods.size() + 1);
    return pods.emplace_back(what, std::move(pod)).second;
  };
  for (const wire::Dialect& dialect : *test::AllDialects()) {
    const wire::DialectKeys keys = dialect.keys();
    for (const auto& list : {keys.of_pods, keys.grants}) {
      for (const auto name : list) {
        std::string key(name);
        if (key.ends_with('/') || key.ends_with('-')) key += "main";
        for (const std::string& text : texts) add(key)["metadata"]["annotations"][key] = text;
      }
    }
  }
  const std::string& text = texts.front();
  const std::vector<std::string> many(20'000, "value");
  add("label")["metadata"]["labels"]["k"] = text;
  Json& labels = add("labels")["metadata"]["labels"];
  for (int i = 0; i < 20'000; ++i) labels["k" + std::to_string(i)] = "";
  Json& spread = add("labels by which pods spread");
  spread["metadata"]["labels"] = labels;
  spread["metadata"]["annotations"]["berth.dev/spread"] = "card";
  add("annotation")["metadata"]["annotations"]["berth.dev/" + text] = "x";
  add("node selector")["spec"]["nodeSelector"]["k"] = text;
  add("node selectors")["spec"]["nodeSelector"] = labels;
  add("toleration")["spec"]["tolerations"] = {{{"key", "k"}, {"value", text}}};
  add("tolerations")["spec"]["tolerations"] = std::vector<Json>(20'000, {{"key", "k"}});
  add("affinity")["spec"]["affinity"]["nodeAffinity"]
                 ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] = {
                     {{"matchExpressions",
                       {{{"key", "k"}, {"operator", "In"}, {"values", many}}}}}};
  add("scheduler")["spec"]["schedulerName"] = text;
  add("class of priority")["spec"]["priorityClassName"] = text;
  add("group")["spec"]["schedulingGroup"]["podGroupName"] = text;
  add("container")["spec"]["containers"][0]["name"] = text;
  add("quantity")["spec"]["containers"][0]["resources"]["requests"]["memory"] = text;
  add("resource")["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/mig-" + text] = "1";
  add("gates")["spec"]["schedulingGates"] = std::vector<Json>(20'000, {{"name", "g"}});
  add("owner")["metadata"]["ownerReferences"] = {
      {{"uid", text}, {"kind", "Job"}, {"controller", true}}};
  add("name")["metadata"]["name"] = text;
  add("UID")["metadata"]["uid"] = text;
  return pods;
}

TEST_F(PodSinkTest, APodComesToThePlaceOfTheOneThatItReplaces) {
  const auto owned = [](Json pod) {
    pod["metadata"]["ownerReferences"] = {{{"kind", "StatefulSet"},
                                           {"name", "s"},
                                           {"uid", "s"},
                                           {"apiVersion", "apps/v1"},
                                           {"controller", true}}};
    pod["status"]["phase"] = "Running";
    return pod;
  };
  const auto places = [this] { return waiting_.FormerNodes("uid-new", WallTime()).size(); };
  Json old = owned(BoundPod("old", 0, 1));
  Changed(owned(FakePod("new", {{"nvidia.com/gpu", "1"}})));
  Changed(old);
  EXPECT_EQ(places(), 0U);
  old["metadata"]["deletionTimestamp"] = "2026-05-04T03:02:01Z";
  old["metadata"]["resourceVersion"] = "2";
  Changed(old);
  EXPECT_EQ(places(), 1U);
  Changed(owned(FakePod("second", {{"nvidia.com/gpu", "1"}})));
  Json next = owned(BoundPod("new", 1, 3));
  next["status"]["phase"] = "Pending";
  Changed(next);
  EXPECT_EQ(waiting_.FormerNodes("uid-second", WallTime()).size(), 0U);
}

class LargePodsTest : public PodSinkTest {
 protected:
  void ExpectShortProblems(const std::string& what) {
    for (const std::string& problem : problems_) EXPECT_LE(problem.size(), 1'100U) << what;
    problems_.clear();
  }
};

TEST_F(LargePodsTest, WhicheverKeyIsLongWhatIsKeptOfOneThatWaitsIsBounded) {
  for (const auto& [what, pod] : LargePods()) {
    Changed(pod);
    for (const WaitingPod& waiting : waiting_.Everybody()) {
      EXPECT_LE(HeldBytes(*waiting.pod), kMostRequestBytes) << what;
      waiting_.Remove(waiting.pod->id.uid);
    }
    ExpectShortProblems(what);
  }
  EXPECT_EQ(waiting_.bytes(), 0U);
}

TEST_F(LargePodsTest, AndOfOneThatIsBound) {
  for (auto& [what, pod] : LargePods()) {
    pod["spec"]["nodeName"] = "n";
    Changed(pod);
    const std::string uid = pod["metadata"]["uid"];
    if (const auto held = state_.FindPod(uid)) {
      EXPECT_LE(HeldBytes(held->pod), kMostRequestBytes) << what;
      EXPECT_LE(HeldBytes(held->placement), kMostRequestBytes) << what;
      Deleted(pod);
    }
    ExpectShortProblems(what);
  }
}

}  // namespace
}  // namespace berth::kube::cluster_sync_test
