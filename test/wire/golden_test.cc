// SPDX-License-Identifier: Apache-2.0
//
// The seven message types of k8s.io/kube-scheduler/extender/v1: requests in every casing that Go's
// decoder takes, answers byte for byte as Go would write them.
#include <cctype>
#include <ostream>

#include <gtest/gtest.h>

#include "test/support/wire_fixture.h"

namespace berth::test::golden_test {
namespace {

using KeyCase = std::string (*)(std::string key);

std::string AsGo(std::string key) { return key; }
std::string AllLower(std::string key) {
  for (char& c : key) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return key;
}
std::string Camel(std::string key) {
  if (!key.empty()) key[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(key[0])));
  return key;
}

// The document with every key of every object in another casing.
Json Recased(const Json& json, KeyCase recase) {
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& item : json) list.push_back(Recased(item, recase));
    return list;
  }
  if (!json.is_object()) return json;
  Json object = Json::object();
  for (const auto& [key, value] : json.items()) object[recase(key)] = Recased(value, recase);
  return object;
}

struct Casing {
  const char* description;
  KeyCase recase;
};

// Names of tests must not change from run to run, as printed pointers would.
void PrintTo(const Casing& casing, std::ostream* out) { *out << casing.description; }

class GoldenMessages : public testing::TestWithParam<Casing> {
 protected:
  GoldenMessages() : service_({MachineWith("n1", 2), MachineWith("n2", 1), MachineWith("n3", 0)}) {}

  std::string Answer(std::string_view verb, const char* request) const {
    const std::string body = Recased(Json::parse(request), GetParam().recase).dump();
    const http::HttpResponse response = service_.Answer(verb, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return response.body;
  }

  TestService service_;
};

constexpr char kPod[] = R"({"metadata":{"name":"p","namespace":"ns","uid":"u1","labels":{"a":"b"}},
  "spec":{"initContainers":[{"name":"log","restartPolicy":"Always","resources":{}}],
          "containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"2"},
                                                    "requests":{"cpu":"1","nvidia.com/gpu":"2"}}}]},
  "status":{}})";

TEST_P(GoldenMessages, ExtenderArgsByNamesGivesAnExtenderFilterResult) {
  const std::string request =
      R"({"Pod":)" + std::string(kPod) + R"(,"Nodes":null,"NodeNames":["n3","n1","n9","n2"]})";
  EXPECT_EQ(
      Answer("filter", request.c_str()),
      R"({"Nodes":null,"NodeNames":["n1"],"FailedNodes":{"n9":"node(s) not known to Berth yet"},)"
      R"("FailedAndUnresolvableNodes":{"n3":"node(s) had no GPUs",)"
      R"("n2":"node(s) had fewer healthy GPUs than the pod asks for"},"Error":""})");
}

TEST_P(GoldenMessages, ExtenderArgsByNodesGivesAnExtenderFilterResult) {
  const std::string request = R"({"Pod":)" + std::string(kPod) +
                              R"(,"Nodes":{"metadata":{},"items":[{"metadata":{"name":"n1"}},)"
                              R"({"metadata":{"name":"n2"}}]},"NodeNames":null})";
  const std::string kept =
      Recased(Json::parse(R"({"metadata":{"name":"n1"}})"), GetParam().recase).dump();
  EXPECT_EQ(Answer("filter", request.c_str()),
            R"({"Nodes":{"metadata":{},"items":[)" + kept +
                R"(]},"NodeNames":null,"FailedNodes":{},"FailedAndUnresolvableNodes":)"
                R"({"n2":"node(s) had fewer healthy GPUs than the pod asks for"},"Error":""})");
}

TEST_P(GoldenMessages, ExtenderArgsGivesAHostPriorityList) {
  const std::string request =
      R"({"Pod":)" + std::string(kPod) + R"(,"Nodes":null,"NodeNames":["n2","n1","n9"]})";
  EXPECT_EQ(Answer("prioritize", request.c_str()),
            R"([{"Host":"n2","Score":0},{"Host":"n1","Score":10},{"Host":"n9","Score":0}])");
}

TEST_P(GoldenMessages, ExtenderPreemptionArgsByUidsGivesAnExtenderPreemptionResult) {
  const std::string request = R"({"Pod":)" + std::string(kPod) +
                              R"(,"NodeNameToVictims":null,"NodeNameToMetaVictims":)"
                              R"({"n1":{"Pods":[{"UID":"v1"},{"UID":"v2"}],"NumPDBViolations":1},)"
                              R"("n2":{"Pods":[{"UID":"v3"}],"NumPDBViolations":0}}})";
  EXPECT_EQ(Answer("preempt", request.c_str()),
            R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v1"},{"UID":"v2"}],)"
            R"("NumPDBViolations":1}}})");
}

TEST_P(GoldenMessages, ExtenderPreemptionArgsByPodsGivesAnExtenderPreemptionResult) {
  const std::string request =
      R"({"Pod":)" + std::string(kPod) +
      R"(,"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"name":"a","uid":"v1"},"spec":{}},)"
      R"({"metadata":{"name":"b","namespace":"ns"}}],"NumPDBViolations":2}},)"
      R"("NodeNameToMetaVictims":null})";
  EXPECT_EQ(Answer("preempt", request.c_str()),
            R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v1"},{"UID":"ns/b"}],)"
            R"("NumPDBViolations":2}}})");
}

TEST_P(GoldenMessages, ExtenderBindingArgsGivesAnExtenderBindingResult) {
  const std::string filter =
      R"({"Pod":)" + std::string(kPod) + R"(,"Nodes":null,"NodeNames":["n1"]})";
  Answer("filter", filter.c_str());
  constexpr char kBind[] = R"({"PodName":"p","PodNamespace":"ns","PodUID":"u1","Node":"n1"})";
  EXPECT_EQ(Answer("bind", kBind), R"({"Error":""})");
  constexpr char kElsewhere[] = R"({"PodName":"p","PodNamespace":"ns","PodUID":"u1","Node":"n2"})";
  EXPECT_EQ(Answer("bind", kElsewhere), R"({"Error":"pod is already bound to node n1"})");
}

INSTANTIATE_TEST_SUITE_P(InEveryCasing, GoldenMessages,
                         testing::Values(Casing{"Go", AsGo}, Casing{"AllLower", AllLower},
                                         Casing{"Camel", Camel}),
                         [](const auto& tested) { return tested.param.description; });

TEST(GoldenMessages, AFilterErrorHasEveryKeyAndNothingThatPasses) {
  EXPECT_EQ(wire::EncodeFilterError("so \"it\" is"),
            R"({"Nodes":null,"NodeNames":null,"FailedNodes":null,)"
            R"("FailedAndUnresolvableNodes":null,"Error":"so \"it\" is"})");
}

TEST(GoldenMessages, AnEmptyPreemptionResultIsAMapAndNotNull) {
  EXPECT_EQ(wire::EncodePreemptionResult({}), R"({"NodeNameToMetaVictims":{}})");
}

}  // namespace
}  // namespace berth::test::golden_test
