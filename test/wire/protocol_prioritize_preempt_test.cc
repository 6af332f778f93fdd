// SPDX-License-Identifier: Apache-2.0
//
// What a well-behaved extender answers: the edge cases of prioritize and preempt, by the numbers
// under which the protocol's notes list them.
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::test::protocol_prioritize_preempt_test {
namespace {

Json MetaVictims(const std::vector<std::string>& uids, int violations = 0) {
  Json pods = Json::array();
  for (const std::string& uid : uids) pods.push_back({{"UID", uid}});
  return {{"Pods", pods}, {"NumPDBViolations", violations}};
}

std::string PreemptionArgs(const Json& pod, const Json& meta_victims) {
  return Json{{"Pod", pod}, {"NodeNameToVictims", nullptr}, {"NodeNameToMetaVictims", meta_victims}}
      .dump();
}

// Two nodes of two GPUs, both taken: "v1" holds n1, "v2" and "v3" hold n2.
class Preemption : public testing::Test {
 protected:
  Preemption() : service_({MachineWith("n1", 2), MachineWith("n2", 2)}) {
    EXPECT_EQ(service_.Place(PodWithGpus("v1", 2), "n1"), "");
    EXPECT_EQ(service_.Place(PodWithGpus("v2", 1), "n2"), "");
    EXPECT_EQ(service_.Place(PodWithGpus("v3", 1), "n2"), "");
  }

  Json Preempt(int gpus, const Json& meta_victims) {
    const Json answer =
        service_.Ask("preempt", PreemptionArgs(PodWithGpus("p", gpus), meta_victims));
    EXPECT_EQ(answer.size(), 1u);
    return answer["NodeNameToMetaVictims"];
  }

  TestService service_;
};

using ExtenderProtocolPreempt = Preemption;

TEST(ExtenderProtocol, Case45_EveryNodeThatWasSentGetsOneIntegerFrom0To10) {
  std::vector<NodeSpec> nodes;
  Json names = Json::array();
  for (int i = 0; i < 60; ++i) {
    nodes.push_back(MachineWith("n" + std::to_string(i), i % 9));
    names.push_back(nodes.back().name);
  }
  names.push_back("ghost");
  const TestService service(nodes, nullptr, "fragmentation-gradient");
  for (const int gpus : {0, 1, 4, 8, 9}) {
    const Json list = service.Ask("prioritize", ArgsWithNames(PodWithGpus("1", gpus), names));
    std::set<std::string> hosts;
    for (const Json& entry : list) {
      EXPECT_EQ(entry.size(), 2u);
      EXPECT_TRUE(hosts.insert(entry["Host"]).second) << entry;
      ASSERT_TRUE(entry["Score"].is_number_integer()) << entry;
      EXPECT_GE(entry["Score"], 0);
      EXPECT_LE(entry["Score"], 10);
    }
    EXPECT_EQ(hosts, std::set<std::string>(names.begin(), names.end()));
  }
}

TEST(ExtenderProtocol, Case46_WithNothingToSayPrioritizeAnswersAnEmptyArray) {
  const TestService service({MachineWith("n1", 2)});
  EXPECT_EQ(service.Call("POST", "/extender/prioritize", "{}").body, "[]");
  EXPECT_EQ(
      service
          .Call("POST", "/extender/prioritize", ArgsWithNames(PodWithGpus("1", 1), Json::array()))
          .body,
      "[]");
}

TEST(ExtenderProtocol, Case47_PrioritizeNeverAnswersAnObject) {
  const TestService service({MachineWith("n1", 2)});
  Json refused = PodWithGpus("1", 1);
  refused["metadata"]["annotations"]["berth.dev/unheard-of"] = "1";
  for (const Json& pod : {Json(nullptr), PodWithGpus("1", 1), PodWithGpus("1", 65), refused}) {
    EXPECT_TRUE(service.Ask("prioritize", ArgsWithNames(pod, {"n1", "ghost"})).is_array()) << pod;
  }
}

TEST(ExtenderProtocol, Case48_PrioritizeWithFullNodesHasTheSameForm) {
  const TestService service({MachineWith("n1", 2), MachineWith("n2", 0)});
  const Json pod = PodWithGpus("1", 1);
  const Json body = {
      {"Pod", pod},
      {"Nodes", {{"items", {{{"metadata", {{"name", "n2"}}}}, {{"metadata", {{"name", "n1"}}}}}}}},
      {"NodeNames", nullptr}};
  EXPECT_EQ(service.Ask("prioritize", body.dump()),
            service.Ask("prioritize", ArgsWithNames(pod, {"n2", "n1"})));
}

TEST_F(ExtenderProtocolPreempt, Case49_ANodeWithoutVictimsIsKeptOnlyIfThePodFitsNow) {
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{PodGone{"v1"}}));
  const Json placeholder = MetaVictims({});
  EXPECT_EQ(Preempt(2, {{"n1", placeholder}, {"n2", placeholder}}), Json({{"n1", placeholder}}));
}

TEST_F(ExtenderProtocolPreempt, Case50_AllVictimsOfANodeThatIsKeptAreEchoed) {
  const Json asked = {{"n2", MetaVictims({"v3", "v2"}, 2)}};
  EXPECT_EQ(Preempt(2, asked), asked);
}

TEST_F(ExtenderProtocolPreempt, Case50_ANodeIsDroppedWhenItsVictimsDoNotFreeEnough) {
  EXPECT_EQ(Preempt(2, {{"n1", MetaVictims({"v1"})}, {"n2", MetaVictims({"v2"})}}),
            Json({{"n1", MetaVictims({"v1"})}}));
  EXPECT_EQ(Preempt(3, {{"n1", MetaVictims({"v1"})}}), Json::object());
}

TEST_F(ExtenderProtocolPreempt, Case51_NoVictimsAndNoPodInTheAnswerIsNull) {
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{PodGone{"v1"}}));
  const char* const victims[] = {
      R"({"n1":null})", R"({"n1":{"Pods":null,"NumPDBViolations":0}})", R"({"n1":{}})",
      R"({"n1":{"Pods":[null],"NumPDBViolations":null}})", R"({"n1":{"Pods":[]}})"};
  for (const char* const form : {"NodeNameToVictims", "NodeNameToMetaVictims"}) {
    for (const char* const map : victims) {
      const std::string body =
          R"({"Pod":)" + PodWithGpus("p", 2).dump() + ",\"" + form + "\":" + map + "}";
      const http::HttpResponse response = service_.Call("POST", "/extender/preempt", body);
      EXPECT_EQ(response.body,
                R"({"NodeNameToMetaVictims":{"n1":{"Pods":[],"NumPDBViolations":0}}})")
          << body;
    }
  }
}

TEST_F(ExtenderProtocolPreempt, Case52_AVictimOnAnotherNodeDropsTheNode) {
  EXPECT_EQ(Preempt(2, {{"n2", MetaVictims({"v1"})}}), Json::object());
  EXPECT_EQ(Preempt(2, {{"n2", MetaVictims({"nobody"})}}), Json::object());
  EXPECT_EQ(Preempt(1, {{"ghost", MetaVictims({"v1"})}}), Json::object());
}

TEST(ExtenderProtocol, Case52_AVictimNamedTwiceFreesItsDevicesOnce) {
  TestService service({MachineWith("n1", 1)});
  ASSERT_EQ(service.Place(PodAsking("small", {{"berth.dev/gpu-milli", "400"}}), "n1"), "");
  ASSERT_EQ(service.Place(PodAsking("large", {{"berth.dev/gpu-milli", "600"}}), "n1"), "");
  const Json pod = PodAsking("p", {{"berth.dev/gpu-milli", "800"}});
  const Json twice = {{"n1", MetaVictims({"small", "small"})}};
  EXPECT_EQ(service.Ask("preempt", PreemptionArgs(pod, twice)),
            Json({{"NodeNameToMetaVictims", Json::object()}}));
}

TEST_F(ExtenderProtocolPreempt, Case53_BothMapsNullGiveAnEmptyMap) {
  for (const char* rest : {R"(,"NodeNameToVictims":null,"NodeNameToMetaVictims":null})", "}"}) {
    const std::string body = R"({"Pod":)" + PodWithGpus("p", 1).dump() + rest;
    EXPECT_EQ(service_.Call("POST", "/extender/preempt", body).body,
              R"({"NodeNameToMetaVictims":{}})");
  }
}

TEST_F(ExtenderProtocolPreempt, BothMapsNamingANodeAnswerItOnce) {
  const std::string body =
      R"({"Pod":)" + PodWithGpus("p", 2).dump() +
      R"(,"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"v1"}}],"NumPDBViolations":1}},)"
      R"("NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v1"}],"NumPDBViolations":1}}})";
  EXPECT_EQ(service_.Call("POST", "/extender/preempt", body).body,
            R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v1"}],"NumPDBViolations":1}}})");
}

TEST_F(ExtenderProtocolPreempt, APodThatIsRefusedEvictsNobody) {
  Json pod = PodWithGpus("p", 1);
  pod["metadata"]["annotations"]["berth.dev/unheard-of"] = "1";
  EXPECT_EQ(service_.Ask("preempt", PreemptionArgs(pod, {{"n1", MetaVictims({"v1"})}})),
            Json({{"NodeNameToMetaVictims", Json::object()}}));
}

TEST_F(ExtenderProtocolPreempt, AMalformedVictimMapIs400) {
  for (const char* map :
       {R"([])", R"({"n1":[]})", R"({"n1":{"Pods":{}}})", R"({"n1":{"Pods":[{"UID":1}]}})",
        R"({"n1":{"NumPDBViolations":"1"}})", R"({"n1":{"NumPDBViolations":99999999999999999999}})",
        R"({"n1":{"Pods":["v1"]}})"}) {
    const std::string body =
        R"({"Pod":)" + PodWithGpus("p", 1).dump() + R"(,"NodeNameToMetaVictims":)" + map + "}";
    EXPECT_EQ(service_.StatusOf("preempt", body), 400) << map;
  }
}

}  // namespace
}  // namespace berth::test::protocol_prioritize_preempt_test
