// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "node/pods/own_pods.h"
#include "node/pods/plan_chooser.h"

namespace berth::test::matching_test {
namespace {

using node::ListedPod;
using node::OwnPod;
using node::OwnPods;
using node::PreferredQuestion;
using Names = std::vector<std::string>;

const std::string kGpu = "nvidia.com/gpu";
const auto kNeverServed = [](const OwnPod&, const std::string&) { return false; };

PreferredQuestion Ask(std::size_t size, Names available = {"g0", "g1", "g2", "g3"},
                      Names must = {}) {
  return {kGpu, std::move(available), std::move(must), size, {}};
}

struct Container {
  std::string name;
  std::size_t gpus;
  bool ends_first = false;
};

void Add(OwnPods::Pods& own, const std::string& name, const std::vector<Container>& containers,
         const std::string& devices = "") {
  auto pod = std::make_shared<OwnPod>();
  pod->namespace_name = "default";
  pod->name = name;
  pod->uid = "uid-" + name;
  for (const Container& c : containers) {
    pod->containers.push_back({c.name, c.ends_first, {{kGpu, c.gpus}}});
  }
  if (!devices.empty()) pod->plan = *node::ParsePlan(devices, "n1");
  own["default/" + name] = std::move(pod);
}

ListedPod Listed(const std::string& name, const std::map<std::string, Names>& containers) {
  ListedPod pod = {"default", name, {}};
  for (const auto& [container, devices] : containers) {
    pod.containers.push_back({container, {}});
    if (!devices.empty()) pod.containers.back().devices[kGpu] = devices;
  }
  return pod;
}

Names CandidatesOf(const node::Matched& matched) {
  Names names;
  for (const node::Turn& turn : matched.candidates) {
    names.push_back(turn.pod->name + "/" + turn.container);
  }
  return names;
}

TEST(MatchPods, FindsTheOneThatIsListedWithoutDevices) {
  OwnPods::Pods own;
  Add(own, "has", {{"main", 2}});
  Add(own, "asks", {{"main", 2}});
  Add(own, "later", {{"main", 2}});  // bound, and not yet in the kubelet's list
  const std::vector<ListedPod> listed = {Listed("has", {{"main", {"g0", "g1"}}}),
                                         Listed("asks", {{"main", {}}})};
  const node::Matched matched = MatchPods(Ask(2), own, &listed, kNeverServed);
  EXPECT_EQ(CandidatesOf(matched), Names{"asks/main"});
  EXPECT_TRUE(matched.unknown.empty());
}

TEST(Waiting, AreThoseThatAreNotKnownToHaveTheirs) {
  OwnPods::Pods own;
  Add(own, "new", {{"main", 1}});
  Add(own, "half", {{"first", 1}, {"second", 1}});
  Add(own, "served", {{"first", 1}});
  Add(own, "none", {});
  auto running = std::make_shared<OwnPod>(*own["default/new"]);
  running->containers[0].running = true;
  own["default/running"] = running;
  auto over = std::make_shared<OwnPod>(*own["default/new"]);
  over->over = true;
  own["default/over"] = over;
  const auto waiting = Waiting(kGpu, own, [](const OwnPod& /*pod*/, const std::string& container) {
    return container == "first";
  });
  ASSERT_EQ(waiting.size(), 2U);
  EXPECT_EQ(waiting[0]->name, "half");
  EXPECT_EQ(waiting[1]->name, "new");
}

TEST(TurnOfNext, IsThatOfAPodThatCameAnew) {
  OwnPods::Pods own;
  Add(own, "a", {{"main", 2}});
  auto pod = std::make_shared<OwnPod>(*own["default/a"]);
  const Instant now = Instant::clock::now();
  PreferredQuestion question = Ask(2);
  question.since = now - std::chrono::seconds(10);
  EXPECT_FALSE(TurnOfNext(question, pod, now, kNeverServed));  // it was there before the watch
  pod->bound = now - std::chrono::seconds(20);
  EXPECT_FALSE(TurnOfNext(question, pod, now, kNeverServed));  // others may have served it
  pod->bound = now - std::chrono::seconds(5);
  EXPECT_FALSE(TurnOfNext(question, pod, now, kNeverServed));  // it waits for long
  pod->bound = now - std::chrono::milliseconds(5);
  const auto turn = TurnOfNext(question, pod, now, kNeverServed);
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->container, "main");
  EXPECT_FALSE(TurnOfNext(Ask(1), pod, now, kNeverServed));
  pod->ending = true;
  EXPECT_FALSE(TurnOfNext(question, pod, now, kNeverServed));
}

TEST(MatchPods, GoesByTheNumberAndByTheTurnOfContainers) {
  OwnPods::Pods own;
  Add(own, "asks", {{"first", 1}, {"second", 2}});
  std::vector<ListedPod> listed = {Listed("asks", {{"first", {}}, {"second", {}}})};
  EXPECT_EQ(CandidatesOf(MatchPods(Ask(1), own, &listed, kNeverServed)), Names{"asks/first"});
  listed = {Listed("asks", {{"first", {"g0"}}, {"second", {}}})};
  EXPECT_EQ(CandidatesOf(MatchPods(Ask(2), own, &listed, kNeverServed)), Names{"asks/second"});
  EXPECT_TRUE(CandidatesOf(MatchPods(Ask(3), own, &listed, kNeverServed)).empty());
}

TEST(MatchPods, InitContainersComeFirstAndAreNotListed) {
  OwnPods::Pods own;
  Add(own, "asks", {{"init", 1, true}, {"main", 1}});
  const std::vector<ListedPod> listed = {Listed("asks", {{"main", {}}})};
  EXPECT_EQ(CandidatesOf(MatchPods(Ask(1), own, &listed, kNeverServed)), Names{"asks/init"});
  const auto served = [](const OwnPod&, const std::string& name) { return name == "init"; };
  EXPECT_EQ(CandidatesOf(MatchPods(Ask(1), own, &listed, served)), Names{"asks/main"});
  // What must be in the answer is what an init container had.
  EXPECT_EQ(CandidatesOf(MatchPods(Ask(1, {"g0"}, {"g0"}), own, &listed, kNeverServed)),
            Names{"asks/main"});
}

TEST(MatchPods, NamesPodsThatTheWatchHasNotBrought) {
  const std::vector<ListedPod> listed = {Listed("new", {{"main", {}}}),
                                         Listed("old", {{"main", {"g0"}}})};
  const node::Matched matched = MatchPods(Ask(1), {}, &listed, kNeverServed);
  EXPECT_EQ(matched.unknown, Names{"default/new"});
}

TEST(MatchPods, OfTwoEntriesOfOneNameTheOneWithoutDevicesCounts) {
  OwnPods::Pods own;
  Add(own, "web-0", {{"main", 1}});
  const std::vector<ListedPod> listed = {Listed("web-0", {{"main", {"g0"}}}),
                                         Listed("web-0", {{"main", {}}})};
  EXPECT_EQ(CandidatesOf(MatchPods(Ask(1), own, &listed, kNeverServed)), Names{"web-0/main"});
}

const std::string kPlan12 =
    R"({"version":1,"node":"n1","containers":{"main":{"gpus":[{"index":1,"uuid":"g1","milli":1000},)"
    R"({"index":2,"uuid":"g2","milli":1000}]}}})";
const std::string kShare3 =
    R"({"version":1,"node":"n1","containers":{"main":{"gpus":[{"index":3,"uuid":"g3","milli":500}]}}})";

TEST(PlannedForOthers, AreThoseOfPodsThatWait) {
  OwnPods::Pods own;
  Add(own, "waits", {{"main", 2}}, kPlan12);
  EXPECT_EQ(PlannedForOthers(Ask(1), own, {}, {}), (Names{"g1", "g2"}));
  const std::vector<ListedPod> listed = {Listed("waits", {{"main", {"g0", "g3"}}})};
  EXPECT_TRUE(PlannedForOthers(Ask(1), own, listed, {}).empty());
}

TEST(Shared, IsEveryReplicaOfAGpuWithShares) {
  OwnPods::Pods own;
  Add(own, "share", {}, kShare3);
  EXPECT_EQ(Shared(Ask(1), own, {}), Names{"g3"});
  EXPECT_EQ(Shared(Ask(1, {"g3::0", "g3::1", "g2::0"}), own, {}), (Names{"g3::0", "g3::1"}));
}

TEST(DevicesOf, GoesByTheUuidThenByTheIndexAndTakesAnyReplica) {
  node::ContainerPlan plan;
  plan.gpus = {{1, "g1", 1000}, {2, "", 1000}};
  node::NodeFacts facts;
  facts.gpus = {{1, "x1", "", {}}, {2, "g2", "", {}}};
  EXPECT_EQ(DevicesOf(plan, {"g1", "g2", "g3"}, facts), (Names{"g1", "g2"}));
  EXPECT_EQ(DevicesOf(plan, {"g1::3", "g2::7", "g2::8"}, facts), (Names{"g1::3", "g2::7"}));
  EXPECT_EQ(DevicesOf(plan, {"g3"}, facts), Names{});
  EXPECT_EQ(DevicesOf(plan, {"x1", "g2"}, facts), (Names{"x1", "g2"}));
}

TEST(DevicesOf, TakesAsManyReplicasOfAGpuAsThePlanHas) {
  const auto plan = *node::ParsePlan(
      R"({"version":1,"node":"n1","containers":{
          "a":{"places":[{"index":0,"uuid":"g0"}]},"b":{"places":[{"index":0,"uuid":"g0"}]}}})",
      "n1");
  const Names available = {"g0::1", "g0::2", "g0::3", "g1::0"};
  EXPECT_EQ(DevicesOf(plan.containers.at("a"), available, {}).size(), 1U);
  const Names both = DevicesOf(plan.Whole(), available, {});
  EXPECT_EQ(both.size(), 2U);
  for (const std::string& id : both) EXPECT_TRUE(id.starts_with("g0::")) << id;
}

TEST(DevicesOf, FindsMigDevicesByGpuProfileAndStart) {
  node::ContainerPlan plan;
  plan.mig = {{2, "1g.10gb", 4}, {2, "1g.10gb", -1}};
  node::NodeFacts facts;
  facts.mig = {{2, "1g.10gb", 0, "m0"}, {2, "1g.10gb", 4, "m4"}, {3, "1g.10gb", 4, "other"}};
  EXPECT_EQ(DevicesOf(plan, {"m0", "m4", "other"}, facts), (Names{"m4", "m0"}));
}

TEST(ParsePlan, RefusesOthersAndSkipsWhatItCannotRead) {
  EXPECT_FALSE(node::ParsePlan("{", "n1"));
  EXPECT_FALSE(node::ParsePlan(R"({"version":2,"node":"n1","containers":{}})", "n1"));
  EXPECT_FALSE(node::ParsePlan(kPlan12, "n2"));
  EXPECT_FALSE(node::ParsePlan(std::string(node::kMostPlanBytes + 1, ' '), "n1"));
  const auto odd = node::ParsePlan(
      R"({"version":1,"node":"n1","containers":{"main":{"gpus":[7,{"index":"x"},null]}}})", "n1");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->containers.at("main").gpus.size(), 3U);
  EXPECT_TRUE(DevicesOf(odd->Whole(), {"g0"}, {}).empty());
}

TEST(Answer, IsAlwaysExactlyThatManyWithWhatMustBe) {
  const PreferredQuestion question = Ask(2, {"g0", "g1", "g2"}, {"g1"});
  EXPECT_TRUE(IsAnswer(question, {"g0", "g1"}));
  for (const Names& wrong :
       {Names{"g0", "g2"}, Names{"g1"}, Names{"g1", "g1"}, Names{"g1", "g9"}}) {
    EXPECT_FALSE(IsAnswer(question, wrong));
  }
  EXPECT_EQ(AnyAnswer(question, {}, {}), (Names{"g1", "g0"}));
  const Names wanted = {"g2", "g9"};
  EXPECT_EQ(AnyAnswer(question, wanted, {}), (Names{"g1", "g2"}));
  const Names avoid = {"g0", "g2"};
  EXPECT_EQ(AnyAnswer(question, {}, avoid), (Names{"g1", "g0"}));
  EXPECT_EQ(Without(question, avoid), Names{"g1"});
  EXPECT_EQ(AnyAnswer(Ask(3, {"g0"}), {}, {}), Names{"g0"});
}

}  // namespace
}  // namespace berth::test::matching_test
