// SPDX-License-Identifier: Apache-2.0
//
// What a well-behaved extender answers: the edge cases of filter, by the numbers under which the
// protocol's notes list them.
#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "scoring/reason.h"
#include "test/support/wire_fixture.h"

namespace berth::test::protocol_filter_test {
namespace {

constexpr const char* kVerbs[] = {"filter", "prioritize", "preempt", "bind"};

std::vector<NodeSpec> ThreeMachines() {
  return {MachineWith("n1", 2), MachineWith("n2", 2), MachineWith("cpu-only", 0)};
}

Json FullNode(const std::string& name) { return {{"metadata", {{"name", name}}}}; }

TEST(ExtenderProtocol, Case01_MalformedJsonIs400) {
  const TestService service(ThreeMachines());
  for (const char* body :
       {"{", "{\"Pod\":", "{\"Pod\":{}", "hello", "{\"Pod\" {}}", "{]", "\x01"}) {
    for (const char* verb : kVerbs) EXPECT_EQ(service.StatusOf(verb, body), 400) << body;
  }
}

TEST(ExtenderProtocol, Case01_AFieldOfTheWrongTypeIs400AndNamesTheField) {
  const TestService service(ThreeMachines());
  const http::HttpResponse response =
      service.Call("POST", "/extender/filter", R"({"Pod":{},"NodeNames":"n1"})");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("NodeNames"), std::string::npos) << response.body;
  EXPECT_TRUE(Json::parse(response.body).contains("error"));
  for (const char* body : {R"({"Pod":5})", R"({"Pod":[]})", R"({"Nodes":[],"Pod":{}})",
                           R"({"NodeNames":[1],"Pod":{}})", R"({"Pod":{"metadata":{"uid":7}}})",
                           R"({"Nodes":{"items":{}},"Pod":{}})"}) {
    EXPECT_EQ(service.StatusOf("filter", body), 400) << body;
  }
}

TEST(ExtenderProtocol, Case02_AnEmptyBodyIs400) {
  const TestService service(ThreeMachines());
  for (const char* body : {"", " ", "\n\t "}) {
    for (const char* verb : kVerbs) EXPECT_EQ(service.StatusOf(verb, body), 400);
  }
}

TEST(ExtenderProtocol, Case03_TheBodyNullIs400) {
  const TestService service(ThreeMachines());
  for (const char* verb : kVerbs) EXPECT_EQ(service.StatusOf(verb, "null"), 400) << verb;
}

TEST(ExtenderProtocol, Case04_AnythingButOneObjectIs400) {
  const TestService service(ThreeMachines());
  for (const char* body : {"[]", "[{}]", "7", "\"Pod\"", "true", "{}{}", "{} x", "{},"}) {
    for (const char* verb : kVerbs) EXPECT_EQ(service.StatusOf(verb, body), 400) << body;
  }
}

TEST(ExtenderProtocol, Case05_FilterWithoutAPodIsAnErrorIn200) {
  const TestService service(ThreeMachines());
  for (const char* body : {R"({"Nodes":null,"NodeNames":["n1"]})",
                           R"({"Pod":null,"Nodes":null,"NodeNames":["n1"]})", "{}"}) {
    const Json answer = service.Ask("filter", body);
    EXPECT_EQ(answer["Error"], "Pod: want a pod, got none") << body;
    EXPECT_TRUE(answer["NodeNames"].is_null()) << body;
    EXPECT_EQ(answer.size(), 5u) << body;
  }
}

TEST(ExtenderProtocol, Case05_PrioritizeWithoutAPodHasNoOpinion) {
  const TestService service(ThreeMachines());
  EXPECT_EQ(service.Ask("prioritize", R"({"Pod":null,"NodeNames":["n1"]})"), Json::array());
  EXPECT_EQ(service.Ask("prioritize", "{}"), Json::array());
}

TEST(ExtenderProtocol, Case05_PreemptWithoutAPodIs400) {
  const TestService service(ThreeMachines());
  EXPECT_EQ(service.StatusOf("preempt", R"({"Pod":null,"NodeNameToMetaVictims":{}})"), 400);
  EXPECT_EQ(service.StatusOf("preempt", "{}"), 400);
}

TEST(ExtenderProtocol, Case06_APodWithoutUidIsKeyedByNamespaceAndName) {
  TestService service(ThreeMachines());
  Json pod = PodWithGpus("1", 1);
  pod["metadata"].erase("uid");
  EXPECT_EQ(service.Ask("filter", ArgsWithNames(pod, {"n1"}))["NodeNames"], Json({"n1"}));
  const char bind[] = R"({"PodName":"pod-1","PodNamespace":"ns","PodUID":"","Node":"n1"})";
  EXPECT_EQ(service.Ask("bind", bind)["Error"], "");
  EXPECT_TRUE(service.state().FindPod("ns/pod-1"));
}

TEST(ExtenderProtocol, Case07_NodesAndNodeNamesTogetherAreAnsweredInBothForms) {
  const TestService service(ThreeMachines());
  const Json body = {{"Pod", PodWithGpus("1", 2)},
                     {"Nodes", {{"items", {FullNode("n1"), FullNode("n2"), FullNode("cpu-only")}}}},
                     {"NodeNames", {"n2", "cpu-only"}}};
  const Json answer = service.Ask("filter", body.dump());
  EXPECT_EQ(answer["NodeNames"], Json({"n2"}));
  EXPECT_EQ(answer["Nodes"]["items"], Json::array({FullNode("n2")}));
  EXPECT_EQ(answer["FailedNodes"], Json::object());
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 1u);
}

TEST(ExtenderProtocol, Case08_NeitherNodesNorNamesGivesEmptyListsInBothForms) {
  const TestService service(ThreeMachines());
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), nullptr));
  EXPECT_EQ(answer["NodeNames"], Json::array());
  EXPECT_EQ(answer["Nodes"]["items"], Json::array());
  EXPECT_EQ(answer["Error"], "");
}

TEST(ExtenderProtocol, Case09_ItemsNullIsAnEmptyList) {
  const TestService service(ThreeMachines());
  const Json body = {{"Pod", PodWithGpus("1", 1)},
                     {"Nodes", {{"metadata", Json::object()}, {"items", nullptr}}},
                     {"NodeNames", nullptr}};
  const Json answer = service.Ask("filter", body.dump());
  EXPECT_EQ(answer["Nodes"]["items"], Json::array());
  EXPECT_TRUE(answer["NodeNames"].is_null());
}

TEST(ExtenderProtocol, Case10_ZeroNodesGiveEmptyListsAndNoError) {
  const TestService service(ThreeMachines());
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), Json::array()));
  EXPECT_EQ(answer["NodeNames"], Json::array());
  EXPECT_EQ(answer["FailedNodes"], Json::object());
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"], Json::object());
  EXPECT_EQ(answer["Error"], "");
  EXPECT_EQ(service.Ask("prioritize", ArgsWithNames(PodWithGpus("1", 1), Json::array())),
            Json::array());
}

TEST(ExtenderProtocol, Case11_FullNodesComeBackUnchangedWhateverTheyLookLike) {
  const TestService service(ThreeMachines());
  const std::string odd =
      "{ \"metadata\" : {\n \"name\":\"n2\", \"uid\" : \"\\u0041\\n\" },\t\"a\":1e400, \"a\":[ ] }";
  const std::string body = R"({"Pod":)" + PodWithGpus("1", 1).dump() +
                           R"(,"Nodes":{"items":[{"x":"}]","metadata":{"name":"cpu-only"}} , )" +
                           odd + " ]},\"NodeNames\":null}";
  const http::HttpResponse response = service.Call("POST", "/extender/filter", body);
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.body.starts_with(R"({"Nodes":{"metadata":{},"items":[)" + odd +
                                        R"(]},"NodeNames":null,)"))
      << response.body;
}

TEST(ExtenderProtocol, Case12_FiveThousandNamesEachGetOneVerdict) {
  std::vector<NodeSpec> nodes;
  Json names = Json::array();
  for (int i = 0; i < 5000; ++i) {
    const std::string name = "node-" + std::to_string(i);
    nodes.push_back(MachineWith(name, i % 3));
    names.push_back(name);
  }
  const TestService service(nodes);
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 2), names));
  EXPECT_EQ(answer["NodeNames"].size(), 1666u);
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 3334u);
  for (std::size_t i = 0; i < answer["NodeNames"].size(); ++i) {
    ASSERT_EQ(answer["NodeNames"][i], names[i * 3 + 2]);  // in the order in which they came
  }
}

TEST(ExtenderProtocol, NodesThatArePassedOverAreInNoList) {
  TestService service({MachineWith("n1", 4), MachineWith("n2", 2), MachineWith("n3", 0)});
  Extender::Policy policy = *service.extender().policy();
  policy.nodes_to_score = 1;
  service.extender().Use(policy);
  const Json names = {"n1", "n2", "n3"};
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), names));
  EXPECT_EQ(answer["NodeNames"].size(), 1u);
  EXPECT_EQ(answer["FailedNodes"], Json::object());
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 1u);
  Json full = {{"Pod", PodWithGpus("2", 1)}, {"Nodes", {{"items", Json::array()}}}};
  for (const char* name : {"n1", "n2", "n3"}) full["Nodes"]["items"].push_back(FullNode(name));
  EXPECT_EQ(service.Ask("filter", full.dump())["Nodes"]["items"].size(), 1u);
}

TEST(ExtenderProtocol, Case13_TwentyMegabytesOfFullNodesAreTaken) {
  const TestService service(ThreeMachines());
  const std::string fat(10 << 20, 'x');
  Json body = {{"Pod", PodWithGpus("1", 1)}, {"Nodes", {{"items", Json::array()}}}};
  for (const char* name : {"n1", "n2"}) {
    Json node = FullNode(name);
    node["metadata"]["annotations"]["fat"] = fat;
    body["Nodes"]["items"].push_back(std::move(node));
  }
  const http::HttpResponse response = service.Call("POST", "/extender/filter", body.dump());
  EXPECT_EQ(response.status, 200);
  EXPECT_GT(response.body.size(), 2 * fat.size());
}

TEST(ExtenderProtocol, Case15_NamesSentTwiceAreAnsweredOnce) {
  const TestService service(ThreeMachines());
  const Json names = {"n1", "n2", "n1", "ghost", "n2", "ghost", "cpu-only", "cpu-only"};
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), names));
  EXPECT_EQ(answer["NodeNames"], Json({"n1", "n2"}));
  EXPECT_EQ(answer["FailedNodes"].size(), 1u);
  EXPECT_EQ(service.Ask("prioritize", ArgsWithNames(PodWithGpus("1", 1), names)).size(), 4u);
  const Json body = {{"Pod", PodWithGpus("1", 1)},
                     {"Nodes", {{"items", {FullNode("n1"), FullNode("n2"), FullNode("n1")}}}}};
  EXPECT_EQ(service.Ask("filter", body.dump())["Nodes"]["items"].size(), 2u);
}

TEST(ExtenderProtocol, Case16_AnUnknownNodeFailsWithAResolvableReason) {
  const TestService service(ThreeMachines());
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {"ghost", "n1"}));
  EXPECT_EQ(answer["NodeNames"], Json({"n1"}));
  EXPECT_EQ(answer["FailedNodes"], Json({{"ghost", TextOf(Reason::kNodeUnknown)}}));
}

TEST(ExtenderProtocol, Case17_NoNodeIsReturnedThatWasNotSent) {
  const TestService service(ThreeMachines());
  for (const Json& names : {Json::array({"n2"}), Json::array({"ghost"}), Json::array()}) {
    const Json answer = service.Ask("filter", ArgsWithNames(PodAsking("1", {{"cpu", "1"}}), names));
    EXPECT_EQ(answer["NodeNames"], names);
  }
}

TEST(ExtenderProtocol, Case18_WhenAllNodesPassAllAreReturnedAndTheMapsAreEmpty) {
  const TestService service(ThreeMachines());
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 2), {"n2", "n1"}));
  EXPECT_EQ(answer["NodeNames"], Json({"n2", "n1"}));
  EXPECT_EQ(answer["FailedNodes"], Json::object());
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"], Json::object());
}

TEST(ExtenderProtocol, Case19_APodWithoutGpuPassesNodesThatAreNotKnown) {
  const TestService service(ThreeMachines());
  const Json names = {"cpu-only", "ghost", "n1"};
  const Json answer = service.Ask("filter", ArgsWithNames(PodAsking("1", {{"cpu", "1"}}), names));
  const Json passed = answer["NodeNames"];
  EXPECT_EQ(std::set<Json>(passed.begin(), passed.end()),
            std::set<Json>(names.begin(), names.end()));
  EXPECT_EQ(answer["FailedNodes"], Json::object());
}

TEST(ExtenderProtocol, Case20_NodesBusyWithPodsOfLowerPriorityAreInFailedNodes) {
  TestService service(ThreeMachines());
  ASSERT_EQ(service.Place(PodWithGpus("a", 2), "n1"), "");
  ASSERT_EQ(service.Place(PodWithGpus("b", 1), "n2"), "");
  Json pod = PodWithGpus("1", 2);
  pod["spec"]["priority"] = 1;
  const Json answer = service.Ask("filter", ArgsWithNames(pod, {"n1", "n2"}));
  EXPECT_EQ(answer["NodeNames"], Json::array());
  EXPECT_EQ(answer["FailedNodes"],
            Json({{"n1", TextOf(Reason::kGpusBusy)}, {"n2", TextOf(Reason::kGpusBusy)}}));
  EXPECT_EQ(answer["Error"], "");
}

TEST(ExtenderProtocol, Case20_NodesBusyWithPodsThatMayNotBeEvictedAreUnresolvable) {
  TestService service(ThreeMachines());
  ASSERT_EQ(service.Place(PodWithGpus("a", 2), "n1"), "");
  ASSERT_EQ(service.Place(PodWithGpus("b", 1), "n2"), "");
  const Json busy = {{"n1", TextOf(Reason::kGpusBusy)}, {"n2", TextOf(Reason::kGpusBusy)}};
  Json humble = PodWithGpus("1", 2);
  humble["spec"]["priority"] = 1;
  humble["spec"]["preemptionPolicy"] = "Never";
  for (const Json& pod : {PodWithGpus("1", 2), humble}) {
    const Json answer = service.Ask("filter", ArgsWithNames(pod, {"n1", "n2"}));
    EXPECT_EQ(answer["FailedNodes"], Json::object());
    EXPECT_EQ(answer["FailedAndUnresolvableNodes"], busy);
  }
}

TEST(ExtenderProtocol, ANodeThatThePodMayNotGoToIsUnresolvable) {
  std::vector<NodeSpec> nodes = ThreeMachines();
  for (NodeSpec& node : nodes) {
    if (node.name == "n1") node.taints = {{"maintenance", "", TaintEffect::kNoExecute}};
    if (node.name == "n2") node.labels = {{"zone", "b"}};
  }
  const TestService service(nodes);
  Json pod = PodWithGpus("1", 1);
  pod["spec"]["nodeSelector"] = {{"zone", "a"}};
  EXPECT_EQ(
      service.Ask("filter", ArgsWithNames(pod, {"n1", "n2"}))["FailedAndUnresolvableNodes"],
      Json({{"n1", TextOf(Reason::kTaintNotTolerated)}, {"n2", TextOf(Reason::kNodeNotSelected)}}));
  pod["spec"]["nodeSelector"] = {{"zone", "b"}};
  pod["spec"]["tolerations"] = Json::array({{{"operator", "Exists"}}});
  const Json answer = service.Ask("filter", ArgsWithNames(pod, {"n1", "n2"}));
  EXPECT_EQ(answer["NodeNames"], Json::array({"n2"}));
}

TEST(ExtenderProtocol, Case21_WhatNoEvictionHelpsIsUnresolvable) {
  const TestService service(ThreeMachines());
  const Json answer =
      service.Ask("filter", ArgsWithNames(PodWithGpus("1", 3), {"n1", "n2", "cpu-only"}));
  EXPECT_EQ(answer["FailedNodes"], Json::object());
  EXPECT_EQ(answer["FailedAndUnresolvableNodes"].size(), 3u);
}

TEST(ExtenderProtocol, Case22_NoNodeHasTwoVerdicts) {
  TestService service(ThreeMachines());
  ASSERT_EQ(service.Place(PodWithGpus("a", 2), "n1"), "");
  const Json names = {"n1", "n2", "cpu-only", "ghost"};
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), names));
  std::multiset<std::string> verdicts(answer["NodeNames"].begin(), answer["NodeNames"].end());
  for (const auto& [name, text] : answer["FailedNodes"].items()) verdicts.insert(name);
  for (const auto& [name, text] : answer["FailedAndUnresolvableNodes"].items()) {
    verdicts.insert(name);
  }
  EXPECT_EQ(verdicts, std::multiset<std::string>(names.begin(), names.end()));
}

TEST(ExtenderProtocol, Case23_ReasonsAreAFewConstantTexts) {
  std::vector<NodeSpec> nodes;
  Json names = Json::array();
  for (int i = 0; i < 300; ++i) {
    nodes.push_back(MachineWith("node-" + std::to_string(i), i % 2, i % 4 == 3 ? "T4" : "A100"));
    nodes.back().cpu_milli = 500 * (i % 5);
    names.push_back(nodes.back().name);
  }
  names.push_back("ghost");
  const TestService service(nodes);
  Json pod = PodWithGpus("1", 1);
  pod["metadata"]["annotations"]["berth.dev/gpu-model"] = "A100";
  const Json answer = service.Ask("filter", ArgsWithNames(pod, names));
  std::set<std::string> texts;
  for (const char* map : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
    for (const auto& [name, text] : answer[map].items()) texts.insert(text.get<std::string>());
  }
  EXPECT_GE(texts.size(), 3u);
  EXPECT_LE(texts.size(), 6u);
  for (const std::string& text : texts) {
    EXPECT_EQ(text.find_first_of("0123456789"), std::string::npos) << text;
  }
}

TEST(ExtenderProtocol, Case24_NoReasonIsLongerThan200Bytes) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(Reason::kCount); ++i) {
    EXPECT_LT(TextOf(static_cast<Reason>(i)).size(), 200u) << CodeOf(static_cast<Reason>(i));
  }
}

TEST(ExtenderProtocol, Case25_ControlCharactersAreEscapedInTheAnswer) {
  const TestService service(ThreeMachines());
  const std::string name = "ghost\n\x01\"\\\xe2\x82\xac";
  const Json answer = service.Ask("filter", ArgsWithNames(PodWithGpus("1", 1), {name}));
  EXPECT_EQ(answer["FailedNodes"].begin().key(), name);
  Json pod = PodWithGpus("2", 1);
  pod["metadata"]["annotations"]["berth.dev/no\"t\n"] = "x";
  const Json refused = service.Ask("filter", ArgsWithNames(pod, {"n1"}));
  EXPECT_EQ(refused["FailedAndUnresolvableNodes"]["n1"],
            "annotation berth.dev/no\"t\n: not known to this version of berth");
}

TEST(ExtenderProtocol, AReasonOfAnyLengthIsSaidShortlyForEachNode) {
  const TestService service(ThreeMachines());
  Json pod = PodWithGpus("1", 1);
  std::string name = "berth.dev/";
  for (int i = 0; i < 10'000; ++i) name += "\u00e4";
  pod["metadata"]["annotations"][name] = "x";
  Json names = Json::array();
  for (int i = 0; i < 1000; ++i) names.push_back("node-" + std::to_string(i));
  const std::string body = ArgsWithNames(pod, names);
  const http::HttpResponse response = service.Call("POST", "/extender/filter", body);
  const Json failed = Json::parse(response.body, nullptr, false)["FailedAndUnresolvableNodes"];
  ASSERT_EQ(failed.size(), 1000u) << response.body.substr(0, 500);
  const std::string reason = failed["node-7"];
  EXPECT_TRUE(reason.starts_with("annotation berth.dev/\u00e4")) << reason;
  EXPECT_TRUE(reason.ends_with("\u00e4...")) << reason;
  EXPECT_LE(reason.size(), wire::kMostReasonBytes);
}

TEST(ExtenderProtocol, Case26_AnUnknownVerbIs404) {
  const TestService service(ThreeMachines());
  const http::HttpResponse response = service.Call("POST", "/extender/filtre", "{}");
  EXPECT_EQ(response.status, 404);
  EXPECT_TRUE(Json::parse(response.body).contains("error"));
}

TEST(ExtenderProtocol, Case27_OtherMethodsOnAVerbAre405) {
  const TestService service(ThreeMachines());
  for (const char* method : {"GET", "PUT", "HEAD", "DELETE"}) {
    const http::HttpResponse response = service.Call(method, "/extender/filter");
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.allow, "POST") << method;
  }
}

}  // namespace
}  // namespace berth::test::protocol_filter_test
