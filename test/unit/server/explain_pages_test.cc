// SPDX-License-Identifier: Apache-2.0
#include "server/why/explain_pages.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/extender/inquiry.h"
#include "server/why/waiting_whys.h"
#include "test/support/builders.h"
#include "test/support/wire_fixture.h"

namespace berth::test::explain_pages_test {
namespace {

class ExplainPages : public testing::Test {
 protected:
  Json Pod(const std::string& name, const std::string& query = "") {
    const http::HttpResponse response = ExplainPodPage(live_, "/debug/pods/" + name, query);
    EXPECT_EQ(response.status, 200) << response.body;
    return Json::parse(response.body, nullptr, false);
  }
  void Waits(const APod& pod, std::chrono::seconds age = std::chrono::seconds(60),
             bool gated = false) {
    Waits(pod.Request(), age, gated);
  }
  void Waits(const PodRequest& pod, std::chrono::seconds age = std::chrono::seconds(60),
             bool gated = false) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod),
                  .held_back = gated ? "scheduling gates hold it back"
                                       ": a/b"
                                     : "",
                  .unschedulable = true,
                  .created = std::chrono::system_clock::now() - age});
  }

  TestService service_{{MachineWith("n1", 2), MachineWith("n2", 4)}};
  WaitingPods& waiting_ = service_.waiting();
  const Live& live_ = service_.live();
};

TEST_F(ExplainPages, APodThatWaitsIsToldWhatItLacks) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 4), "n2"), "");
  Waits(APod("p").Whole(4));
  const Json told = Pod("default/p");
  EXPECT_EQ(told["version"], 1);
  EXPECT_EQ(told["state"], "waiting");
  EXPECT_EQ(told["pod"], "default/p");
  EXPECT_EQ(told["asks"]["gpus"], 4);
  EXPECT_EQ(told["nodes"], 2);
  EXPECT_EQ(told["fitting"], 0);
  EXPECT_GE(told["age_seconds"], 60);
  EXPECT_EQ(told["nearest"][0]["node"], "n2");
  EXPECT_EQ(told["nearest"][0]["fits"][0]["change"], "pods_end");
  EXPECT_EQ(told["nearest"][0]["fits"][0]["pods"], Json::array({"ns/pod-1"}));
  EXPECT_EQ(told["nearest"][0]["has"]["gpus"][3]["held_by"], Json::array({"ns/pod-1"}));
  EXPECT_EQ(told["models"][0]["largest_hole"], 2);
  EXPECT_EQ(told["preemption"]["helps"], false);
  EXPECT_NE(told["sentence"].get<std::string>().find("nearest is n2: 0 of 4 GPUs idle, needs 4; "
                                                     "fits when ns/pod-1 ends"),
            std::string::npos)
      << told["sentence"];
}

// Two nodes with a pod of one GPU each that may be moved.
class ExplainRoom : public testing::Test {
 protected:
  ExplainRoom() {
    for (const char* node : {"n1", "n2"}) {
      APod pod(std::string("on-") + node);
      pod.Whole(1).Mobile(Mobility::kMoves);
      const PodBound bound{pod.Request(), pod.On(node, {0}), false};
      EXPECT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{bound}));
    }
  }
  std::string Text(const APod& pod) {
    service_.waiting().Put({.pod = std::make_shared<const PodRequest>(pod.Request()),
                            .unschedulable = true,
                            .created = std::chrono::system_clock::now()});
    return ExplainPodPage(service_.live(), "/debug/pods/" + pod.Request().id.full_name(), "text")
        .body;
  }
  TestService service_{{MachineWith("n1", 2), MachineWith("n2", 2)}};
};

TEST_F(ExplainRoom, SaysHowManyMovesWouldLetItIn) {
  const std::string text = Text(APod("big").Whole(2));
  EXPECT_NE(text.find("Room: 1 move would let it in: berth plan --make-room --for default/big\n"),
            std::string::npos)
      << text;
  const Json told =
      Json::parse(ExplainPodPage(service_.live(), "/debug/pods/default/big", "").body);
  EXPECT_EQ(told["room"], (Json{{"for", "default/big"}, {"moves", 1}, {"least_moves", 1}}));
}

TEST_F(ExplainRoom, SaysNothingWhereMovesDoNotHelpOrNoneIsNeeded) {
  EXPECT_EQ(Text(APod("large").Whole(3)).find("Room:"), std::string::npos);
  EXPECT_EQ(Text(APod("small").Whole(1)).find("Room:"), std::string::npos);
}

TEST(RoomAdviceText, LeavesOutANameThatAShellWouldNotTakeAsItIs) {
  EXPECT_EQ(TextOf(RoomAdvice{.name = "ml/a;reboot", .is_gang = true, .moves = 2}),
            "2 moves would let its gang in: berth plan --make-room");
}

TEST_F(ExplainPages, APodThatIsBoundIsToldItsNodeAndDevices) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 2), "n1"), "");
  const Json told = Pod("ns/pod-1");
  EXPECT_EQ(told["state"], "bound");
  EXPECT_EQ(told["node"], "n1");
  EXPECT_EQ(told["devices"]["gpus"].size(), 2u);
  EXPECT_EQ(told["devices_known"], true);
  EXPECT_EQ(told["best"][0]["node"], "n1");
  EXPECT_EQ(told["best"][0]["scores"][0]["scorer"], "best-fit");
}

// Berth binds a pod before the API server shows it on its node.
TEST_F(ExplainPages, APodThatWasBoundJustNowIsNotToldAsOneThatWaits) {
  PodRequest pod = APod("pod-1").Uid("1").Namespace("ns").Whole(2).Request();
  Waits(pod);
  ASSERT_EQ(service_.Place(PodWithGpus("1", 2), "n1"), "");
  EXPECT_EQ(Pod("ns/pod-1")["state"], "bound");
  EXPECT_EQ(ReportOn(live_, live_.extender.Now(), *waiting_.FindNamed("ns", "pod-1"))
                .told.placed->placement.node,
            "n1");
  const Json top = Json::parse(TopPage(live_, "/debug/top", "").body);
  EXPECT_TRUE(top["waiting"].empty()) << top;
}

TEST_F(ExplainPages, AnExplanationIsOfItsMomentWhateverComesAfter) {
  const PodRequest pod = APod("pod-1").Uid("1").Namespace("ns").Whole(2).Request();
  const Extender::Moment before = service_.extender().Now();
  ASSERT_EQ(service_.Place(PodWithGpus("1", 2), "n1"), "");
  Extender::Policy other = *before.policy;
  other.guard = NodeGuard::kRefuse;
  service_.extender().Use(other);
  const PodExplanation then = Inquiry(service_.extender(), before).Explain(pod);
  EXPECT_FALSE(then.placed);
  EXPECT_EQ(then.fitting, 2u);
  const wire::WaitingWhy why =
      WhyWaiting(live_, before, {.pod = std::make_shared<const PodRequest>(pod)});
  EXPECT_EQ(why.text, "fits 2 of 2 nodes now, best is n1");
  EXPECT_TRUE(Inquiry(service_.extender(), service_.extender().Now()).Explain(pod).placed);
}

TEST_F(ExplainPages, APodThatWasAskedAboutIsKnownWhereNoneAreWatched) {
  service_.Ask("filter", ArgsWithNames(PodWithGpus("9", 8), Json::array({"n1", "n2"})));
  EXPECT_EQ(Pod("ns/pod-9")["reasons"][0]["reason"], "too_few_gpus");
}

TEST_F(ExplainPages, APodThatSchedulingGatesKeepIsToldSo) {
  Waits(APod("p").Whole(1), std::chrono::seconds(1), true);
  EXPECT_TRUE(Pod("default/p")["sentence"].get<std::string>().starts_with(
      "scheduling gates hold it back: a/b"));
}

TEST_F(ExplainPages, APodThatIsRefusedIsToldItsFault) {
  PodRequest pod = APod("p").Request();
  pod.refusal = "annotation berth.dev/link: want required, preferred or none, got \"yes\"";
  Waits(pod);
  const Json told = Pod("default/p");
  EXPECT_EQ(told["sentence"], "the pod must be changed: " + pod.refusal);
  EXPECT_EQ(told["reasons"][0]["reason"], "pod_refused");
  const std::string text = ExplainPodPage(live_, "/debug/pods/default/p", "text").body;
  EXPECT_NE(text.find("2  not tried: the pod must be changed\n"), std::string::npos) << text;
}

TEST_F(ExplainPages, DevicesOfOtherPluginsThatAPodAsksForAreNamed) {
  const auto told = [&](OtherResources others) {
    PodRequest pod = APod("p").Request();
    if (!others.empty()) pod.others = std::make_shared<const OtherResources>(std::move(others));
    Waits(pod);
    return Pod("default/p")["sentence"].get<std::string>();
  };
  EXPECT_EQ(told({{"tencent.com/vcuda-core", 50}, {"tencent.com/vcuda-memory", 8}}),
            "asks for tencent.com/vcuda-core and tencent.com/vcuda-memory, which Berth does not "
            "place: kube-scheduler alone chooses its node");
  for (const OtherResources& others : {OtherResources(), OtherResources{{"hugepages-2Mi", 1}}}) {
    EXPECT_EQ(told(others), "asks for no GPU: kube-scheduler alone chooses its node");
  }
}

TEST_F(ExplainPages, AResourceThatIsNearlyAKnownOneIsNamed) {
  const auto told = [&](const char* resource) {
    PodRequest pod = APod("p").Request();
    pod.others = std::make_shared<const OtherResources>(OtherResources{{resource, 1}});
    Waits(pod);
    return Pod("default/p")["sentence"].get<std::string>();
  };
  EXPECT_EQ(told("berth.dev/gpu-mili"),
            "Berth does not know the resource berth.dev/gpu-mili, did you mean "
            "berth.dev/gpu-milli?");
  EXPECT_EQ(told("example.com/gpu-mili"),
            "asks for example.com/gpu-mili, which Berth does not place: kube-scheduler alone "
            "chooses its node");
}

TEST_F(ExplainPages, DevicesOfClaimsThatBerthDoesNotKnowAreKubeSchedulers) {
  PodRequest pod = APod("p").Request();
  pod.claims = {"c"};
  Waits(pod);
  EXPECT_EQ(Pod("default/p")["sentence"],
            "asks for devices by ResourceClaim alone: kube-scheduler alone chooses its node; Berth "
            "does not choose devices of claims");
}

TEST_F(ExplainPages, WhatKubeSchedulerSaidIsInTheFirstLineOfAPodThatFits) {
  const auto told = [&](const char* said) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(APod("p").Whole(1).Request()),
                  .unschedulable = true,
                  .scheduler_said = said});
    return Pod("default/p")["sentence"].get<std::string>();
  };
  EXPECT_EQ(told("0/2 nodes are available: persistentvolumeclaim \"d\" not found. preemption: 0/2 "
                 "nodes are available: 2 Preemption is not helpful for scheduling."),
            "fits 2 of 2 nodes now, best is n1; kube-scheduler said last: persistentvolumeclaim "
            "\"d\" not found");
  EXPECT_EQ(told("0/2 nodes are available: 2 node(s) had volume node affinity conflict."),
            "fits 2 of 2 nodes now, best is n1; kube-scheduler said last: 2 node(s) had volume "
            "node affinity conflict");
}

TEST_F(ExplainPages, PathsThatNameNoPodAreToldWhatIsWanted) {
  const auto error = [&](const char* path) {
    const http::HttpResponse response = ExplainPodPage(live_, path, "");
    EXPECT_EQ(response.status, 404) << path;
    return Json::parse(response.body)["error"].get<std::string>();
  };
  EXPECT_EQ(error("/debug/pods/a/b/c"), "want NAMESPACE/NAME, got a/b/c");
  EXPECT_EQ(error("/debug/pods/a"), "want NAMESPACE/NAME, got a");
}

TEST_F(ExplainPages, PartsOfNamesMayBeEscapedAsClientsDo) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "n1"), "");
  const auto found = [&](const char* query) {
    return Json::parse(FindPodsPage(live_, "/debug/pods", query).body)["pods"].size();
  };
  EXPECT_EQ(found("ns%2Fpod"), 1U);
  EXPECT_EQ(found("ns%2fpod-1"), 1U);
  EXPECT_EQ(found("ns%2"), 0U);
  EXPECT_EQ(found("%"), 0U);
}

TEST_F(ExplainPages, WhatIsNotKnownIs404WithTheReason) {
  const http::HttpResponse pod = ExplainPodPage(live_, "/debug/pods/ns/none", "");
  EXPECT_EQ(pod.status, 404);
  EXPECT_NE(Json::parse(pod.body)["error"].get<std::string>().find("pod ns/none is not known"),
            std::string::npos);
  EXPECT_EQ(ExplainPodPage(live_, "/debug/pods/ns", "").status, 404);
  EXPECT_EQ(ExplainNodePage(live_, "/debug/nodes/none", "").status, 404);
  EXPECT_EQ(ExplainGangPage(live_, "/debug/gangs/ns/none", "").status, 404);
}

TEST_F(ExplainPages, NothingIsExplainedByAProcessThatDoesNotLead) {
  service_.readiness().Set("another process leads");
  EXPECT_EQ(ExplainPodPage(live_, "/debug/pods/ns/p", "").status, 503);
  EXPECT_EQ(TopPage(live_, "/debug/top", "").status, 503);
  EXPECT_EQ(NamespacePage(live_, "/debug/namespaces/ns", "").status, 503);
}

TEST_F(ExplainPages, ANodeIsToldWithItsPods) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "n1"), "");
  const Json told = Json::parse(ExplainNodePage(live_, "/debug/nodes/n1", "").body);
  EXPECT_EQ(told["version"], 1);
  EXPECT_EQ(told["idle_gpus"], 1);
  EXPECT_EQ(told["pods"][0]["pod"], "ns/pod-1");
  const std::string text = ExplainNodePage(live_, "/debug/nodes/n1", "text").body;
  EXPECT_NE(text.find("GPU 0: held by ns/pod-1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("GPU 1: idle\n"), std::string::npos) << text;
}

TEST_F(ExplainPages, ANodeSaysThatItsPluginIsGoneOrThatOthersGiveItsGpus) {
  NodeSpec gone = MachineWith("gone", 2), foreign = MachineWith("foreign", 0);
  gone.missing = 2;
  foreign.places = {.count = 20, .foreign = true};
  TestService service({gone, foreign});
  const auto text_of = [&service](const std::string& node) {
    return ExplainNodePage(service.live(), "/debug/nodes/" + node, "text").body;
  };
  EXPECT_NE(text_of("gone").find("GPU 0,1: not offered\n  its device plugin is gone, or offers "
                                 "no GPU\n"),
            std::string::npos)
      << text_of("gone");
  EXPECT_NE(text_of("foreign").find("20 of 20 GPU replicas free, given by another scheduler\n"),
            std::string::npos)
      << text_of("foreign");
}

TEST_F(ExplainPages, ANamespaceIsToldWithTheNodesOfItsPods) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "n1"), "");
  const Json told = Json::parse(NamespacePage(live_, "/debug/namespaces/ns", "").body);
  EXPECT_EQ(told["version"], 1);
  EXPECT_EQ(told["namespace"], "ns");
  EXPECT_EQ(told["gpus"], 1);
  EXPECT_EQ(told["nodes"], Json::parse(R"([{"node":"n1","gpus":1.0,"mig_devices":0,"pods":1}])"));
  const std::string text = NamespacePage(live_, "/debug/namespaces/ns", "text").body;
  EXPECT_NE(text.find("Namespace ns holds:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("n1"), std::string::npos) << text;
  EXPECT_EQ(ClassPage(live_, "/debug/classes/training", "text").body,
            "Workload class training: no pod holds GPUs\n");
}

TEST_F(ExplainPages, TopTellsModelsAndWhatWaits) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 1), "n1"), "");
  Waits(APod("a").Whole(8), std::chrono::seconds(10));
  Waits(APod("b").Whole(8), std::chrono::seconds(100));
  Waits(APod("c").Share(100));
  Waits(APod("d").Gang("ns/g"));  // asks for no GPU
  const Json told = Json::parse(TopPage(live_, "/debug/top", "").body);
  EXPECT_EQ(told["models"][0]["model"], "A100");
  EXPECT_EQ(told["models"][0]["idle"], 5);
  EXPECT_EQ(told["models"][0]["pods_that_fit"], Json::parse(R"({"1":5,"2":2,"4":1,"8":0})"));
  ASSERT_EQ(told["waiting"].size(), 2u);
  EXPECT_EQ(told["waiting"][0]["asks"], "8 GPUs");
  EXPECT_EQ(told["waiting"][0]["pods"], 2);
  EXPECT_GE(told["waiting"][0]["oldest_seconds"], 100);
  EXPECT_EQ(told["waiting"][1]["asks"], "share");
}

TEST_F(ExplainPages, TheTextBeginsWithTheSentence) {
  Waits(APod("p").Whole(8));
  const http::HttpResponse response = ExplainPodPage(live_, "/debug/pods/default/p", "text");
  EXPECT_EQ(response.content_type, "text/plain; charset=utf-8");
  EXPECT_TRUE(
      response.body.starts_with("default/p: fits none of 2 nodes; nearest is n2: 4 of 4 GPUs "
                                "idle, needs 8; fits with 4 GPUs instead of 8\n"
                                "Asks for: 8 GPUs\n"))
      << response.body;
  EXPECT_NE(response.body.find("Nearest nodes:\n  n2: 4 of 4 GPUs idle, needs 8\n"),
            std::string::npos)
      << response.body;
}

// --- Groups that start whole

class ExplainGangs : public ExplainPages {
 protected:
  ExplainGangs() { table_.Use({.conventions = {"berth"}}); }

  static APod Member(const std::string& name) {
    return APod(name).Whole(4).Gang("berth:default/train").GangSize(3);
  }
  // kube-scheduler asks about it.
  void Ask(const APod& pod) {
    GangActions actions;
    const std::vector<NodeIndex> nodes = {0, 1};
    table_.Filter(*service_.extender().policy()->engine, service_.state().Current(), pod.Request(),
                  nodes, std::chrono::steady_clock::now(), actions);
    table_.Look(*service_.extender().policy()->engine, std::chrono::steady_clock::now(), actions);
  }

  GangTable& table_ = service_.gangs();
};

TEST_F(ExplainGangs, OfTwoGangsOfOneNameEachIsFoundByItsConvention) {
  table_.Use({.conventions = {"berth", "labels"}});
  for (const APod& pod : {Member("a"), Member("b").Gang("labels:default/train").GangSize(3)}) {
    Waits(pod);
    Ask(pod);
  }
  const auto found = [this](const std::string& name) -> std::string {
    const Json told = Json::parse(ExplainGangPage(live_, "/debug/gangs/" + name, "").body);
    return told.value("gang", "none");
  };
  EXPECT_EQ(found("berth:default/train"), "berth:default/train");
  EXPECT_EQ(found("labels:default/train"), "labels:default/train");
  EXPECT_EQ(found("kueue:default/train"), "none");
  EXPECT_NE(found("default/train"), "none");
}

TEST_F(ExplainGangs, WhyAGangWaitsIsCutShortAndNotLeftOut) {
  NodeConstraints labelled;
  labelled.selector = {{"nvidia.com/gpu.product", LabelOperator::kIn, {std::string(90, 'x')}}};
  for (const char* name : {"a", "b", "c"}) Waits(Member(name).Constrained(labelled));
  Ask(Member("a").Constrained(labelled));
  const Json told = Json::parse(ExplainGangPage(live_, "/debug/gangs/default/train", "").body);
  const std::string line = told["sentence"];
  EXPECT_TRUE(line.starts_with("waiting: never while no node accepts a: ")) << line;
}

TEST_F(ExplainGangs, AMemberIsToldHowManyAreThere) {
  Waits(Member("a"));
  Waits(Member("b"));
  Ask(Member("a"));
  const Json told = Json::parse(ExplainPodPage(live_, "/debug/pods/default/a", "").body);
  EXPECT_EQ(told["gang"]["waiting"], 2);
  EXPECT_EQ(told["gang"]["minimum"], 3);
  EXPECT_TRUE(told["sentence"].get<std::string>().starts_with(
      "its gang default/train is gathering: 2 of 3 pods exist; alone, it fits 1 of 2 nodes now"))
      << told["sentence"];
}

TEST_F(ExplainGangs, TheGroupIsToldWithItsMembersAndWhatTheWholeLacks) {
  for (const char* name : {"a", "b", "c"}) Waits(Member(name));
  Ask(Member("a"));
  const Json told = Json::parse(ExplainGangPage(live_, "/debug/gangs/default/train", "").body);
  EXPECT_EQ(told["version"], 1);
  EXPECT_EQ(told["state"], "waiting");
  EXPECT_EQ(told["sentence"],
            "waiting: never on these nodes: its pods ask "
            "for 12 GPUs, and the nodes that they accept have 4");
  EXPECT_NE(
      told["why"].get<std::string>().find("; needs room for 3 pods with 4 GPUs each, has room "
                                          "for 1"),
      std::string::npos);
  ASSERT_EQ(told["members"].size(), 3u);
  EXPECT_EQ(told["members"][2]["pod"], "default/c");
  EXPECT_EQ(told["members"][2]["state"], "waiting");
  EXPECT_EQ(told["waiting_member"]["pod"], "default/a");
  const std::string text = ExplainGangPage(live_, "/debug/gangs/default/train", "text").body;
  EXPECT_TRUE(text.starts_with("berth:default/train: waiting: ")) << text;
}

TEST_F(ExplainGangs, AMemberOfAGangThatLostMoreThanOneIsToldWhatItLacks) {
  const APod a = Member("a").Whole(2);
  const PodBound bound{a.Request(), a.On("n1", {0, 1}), false};
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{bound}));
  Waits(Member("b"));
  Ask(Member("b"));
  EXPECT_EQ(Pod("default/b")["sentence"],
            "its gang default/train has begun: 2 of 3 pods exist; alone, it fits 1 of 2 nodes now");
  const auto sentence = [this] {
    return Json::parse(ExplainGangPage(live_, "/debug/gangs/default/train", "").body)["sentence"];
  };
  EXPECT_EQ(sentence(), "begun: 2 of 3 pods that must start together exist");
  ASSERT_EQ(service_.Place(PodWithGpus("1", 4), "n2"), "");
  Waits(Member("c"));
  Ask(Member("c"));
  EXPECT_EQ(
      sentence(),
      "begun: never on these nodes: its pods ask for 8 GPUs, and the nodes that they accept have "
      "4 beside its own");
  EXPECT_EQ(Pod("default/b")["sentence"],
            "its gang default/train has begun: never on these nodes: its pods ask for 8 GPUs, and "
            "the nodes that they accept have 4 beside its own");
}

TEST_F(ExplainGangs, OneOfWhichNobodyWaitsIsFoundByItsPods) {
  const std::string path = "/debug/gangs/default/train";
  EXPECT_EQ(ExplainGangPage(live_, path, "").status, 404);
  Waits(Member("a").Request(), std::chrono::seconds(60), true);
  const std::string text = ExplainGangPage(live_, path, "text").body;
  EXPECT_TRUE(
      text.starts_with("berth:default/train: gathering: 0 of 3 pods that must start "
                       "together exist; scheduling gates hold back a\n"))
      << text;
  EXPECT_NE(text.find("default/a  gated"), std::string::npos) << text;
}

// Each waits for the other: the Deployment makes the next pod when this one runs.
TEST_F(ExplainGangs, ARolloutThatMakesItsPodsBitByBitIsToldItsCure) {
  const auto of = [](const std::string& name, const std::string& set) {
    return APod(name).Whole(1).Gang("berth:default/" + set).GangSize(2);
  };
  const auto waits = [this](const APod& pod, const std::string& set) {
    waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request()), .replica_set = set});
    Ask(pod);
  };
  waits(of("new", "web-b"), "web-b");
  const auto sentence = [this] { return Pod("default/new")["sentence"].get<std::string>(); };
  EXPECT_EQ(sentence().find("rolling update"), std::string::npos);
  const APod old = of("old", "web-a");
  PodBound bound{old.Request(), old.On("n1", {0}), false};
  bound.life.replica_set = "web-a";
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{bound}));
  EXPECT_TRUE(sentence().starts_with(
      "its gang default/web-b is gathering: 1 of 2 pods exist; set maxSurge of Deployment web to "
      "100%: its rolling update waits for these pods"))
      << sentence();
}

TEST_F(ExplainGangs, ACureIsNeverLeftOutForALongName) {
  const std::string set = "a-service-of-a-long-name-of-llms-b";
  const auto of = [&set](const std::string& name, const char* gang) {
    return APod(name).Whole(1).Gang("berth:default/" + set + gang).GangSize(2);
  };
  const APod pod = of("new", ".0c0c0c0c-1111-2222"), old = of("old", "-a");
  waiting_.Put({.pod = std::make_shared<const PodRequest>(pod.Request()), .replica_set = set});
  Ask(pod);
  PodBound bound{old.Request(), old.On("n1", {0}), false};
  bound.life.replica_set = "a-service-of-a-long-name-of-llms-a";
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{bound}));
  const std::string told = Pod("default/new")["sentence"];
  EXPECT_NE(told.find("set maxSurge of Deployment a-service-of-a-long-name-of-llms to 100%"),
            std::string::npos)
      << told;
}

TEST_F(ExplainGangs, MembersThatEndAreNamed) {
  const APod ending = Member("a");
  PodBound bound{ending.Request(), ending.On("n2", {0, 1, 2, 3}), false};
  bound.leaving = true;
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{bound}));
  for (const char* name : {"b", "c"}) Waits(Member(name));
  Ask(Member("b"));
  const Json told = Json::parse(ExplainGangPage(live_, "/debug/gangs/default/train", "").body);
  EXPECT_EQ(told["members"][0]["state"], "ending");
  EXPECT_NE(told["sentence"].get<std::string>().find("a is ending on n2"), std::string::npos)
      << told["sentence"];
}

TEST_F(ExplainGangs, ItsFirstLineNamesWhoHoldsWhatItWaitsFor) {
  ASSERT_EQ(service_.Place(PodWithGpus("1", 4), "n2"), "");
  const auto member = [](const std::string& name) { return Member(name).Whole(2); };
  for (const char* name : {"a", "b", "c"}) Waits(member(name));
  Ask(member("a"));
  const std::string line =
      "waiting: needs room for 3 pods with 2 GPUs each, has room for 1; ns/pod-1 holds 4 GPUs on "
      "n2";
  const std::string path = "/debug/gangs/default/train";
  EXPECT_EQ(Json::parse(ExplainGangPage(live_, path, "").body)["sentence"], line);
  const std::string all = WaitingPage(live_, "/debug/waiting", "text").body;
  EXPECT_NE(all.find(line), std::string::npos) << all;
}

TEST_F(ExplainGangs, OneBeyondTheMinimumIsToldThatTheOthersStart) {
  const auto member = [](const std::string& name) {
    APod pod(name);
    pod.Whole(2).Gang("berth:default/train").GangSize(4).GangMinimum(2);
    return pod;
  };
  for (const char* name : {"a", "b", "c", "d"}) Waits(member(name));
  Ask(member("a"));
  EXPECT_EQ(Pod("default/d")["sentence"],
            "its gang default/train starts without it; alone, it fits none of 2 nodes; 2 nodes had "
            "too few idle GPUs");
}

}  // namespace
}  // namespace berth::test::explain_pages_test
