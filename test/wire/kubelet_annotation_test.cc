// SPDX-License-Identifier: Apache-2.0
//
// What a node's agent says of who gives containers their GPUs: what is read, what is passed over,
// and what pods get while it comes and goes.
#include "server/wire/node/agent_annotations.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scoring/reason.h"
#include "server/wire/node/topology_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/annotating_binder.h"
#include "test/support/wire_fixture.h"
#include "test/support/wirings.h"

namespace berth::test::kubelet_annotation_test {
namespace {

constexpr const char* kCarriesOut = "berth.dev/carries-out";
constexpr const char* kKubelet = "berth.dev/kubelet";
constexpr const char* kSingle = R"({"topologyManagerPolicy":"single-numa-node"})";

// Eight GPUs on two NUMA nodes, as NVIDIA's plugin offers them.
Json EightGpus(const Json& annotations = Json::object(), const std::string& name = "n1") {
  Json node = {{"kind", "Node"}, {"metadata", {{"name", name}}}};
  node["metadata"]["annotations"] = annotations;
  node["metadata"]["annotations"][std::string(wire::kTopologyAnnotation)] =
      *wire::TopologyAnnotation(BridgedCards());
  std::string uuids;
  for (int gpu = 0; gpu < 8; ++gpu) {
    uuids +=
        (gpu > 0 ? ",GPU-" : "GPU-") + std::to_string(gpu) + "55d8f70-2051-db6c-0430-ffc457bff834";
  }
  node["metadata"]["annotations"]["berth.dev/gpu-uuids"] = uuids;
  for (const char* amounts : {"allocatable", "capacity"}) {
    node["status"][amounts] = {{"cpu", "64"}, {"memory", "256Gi"}, {"nvidia.com/gpu", "8"}};
  }
  return node;
}

NodeSpec Read(const Json& annotations) { return ReadNode(EightGpus(annotations)).spec; }
std::string ProblemOf(const Json& annotations) { return ReadNode(EightGpus(annotations)).problem; }

TEST(CarriesOut, CountsForTheResourceThatPodsAskFor) {
  EXPECT_FALSE(Read({}).carries_out);
  EXPECT_TRUE(Read({{kCarriesOut, "nvidia.com/gpu,nvidia.com/mig-1g.10gb"}}).carries_out);
  EXPECT_TRUE(Read({{kCarriesOut, " nvidia.com/gpu "}}).carries_out);
  EXPECT_FALSE(Read({{kCarriesOut, "amd.com/gpu"}}).carries_out);
  EXPECT_FALSE(Read({{kCarriesOut, ""}}).carries_out);
  EXPECT_EQ(ProblemOf({{kCarriesOut, ""}}), "");
}

TEST(CarriesOut, ThatCannotBeReadIsToldAndPassedOver) {
  const std::string key = "annotation berth.dev/carries-out: ";
  std::string many = "nvidia.com/gpu";
  for (std::size_t i = 1; i < wire::kMostCarriedOut; ++i) many += ",a.com/r" + std::to_string(i);
  EXPECT_EQ(ProblemOf({{kCarriesOut, many}}), "");
  EXPECT_EQ(ProblemOf({{kCarriesOut, many + ",a.com/one-more"}}),
            key + "want at most 64 resources, got more");
  EXPECT_FALSE(Read({{kCarriesOut, many + ",a.com/one-more"}}).carries_out);
  EXPECT_EQ(ProblemOf({{kCarriesOut, "nvidia.com/gpu,,x"}}),
            key + "[1]: want the name of a resource of 1..317 characters, got \"\"");
  EXPECT_TRUE(ProblemOf({{kCarriesOut, std::string(318, 'x')}})
                  .starts_with(key + "[0]: want the name of a resource of 1..317 characters"));
}

TEST(KubeletAnnotation, SaysThePolicyOfItsTopologyManager) {
  EXPECT_EQ(Read({}).topology_manager, TopologyManager());
  EXPECT_EQ(Read({{kKubelet, kSingle}}).topology_manager,
            (TopologyManager{TopologyPolicy::kSingleNumaNode, false}));
  EXPECT_EQ(Read({{kKubelet, R"({"topologyManagerPolicy":"restricted","topologyManagerScope":"pod",
                                "cpuManagerPolicy":"static","later":[1]})"}})
                .topology_manager,
            (TopologyManager{TopologyPolicy::kRestricted, true}));
  EXPECT_EQ(Read({{kKubelet, R"({"topologyManagerPolicy":"restricted","numa":"lifted"})"}})
                .topology_manager,
            TopologyManager());
  EXPECT_EQ(Read({{kKubelet, "{}"}}).topology_manager, TopologyManager());
}

TEST(KubeletAnnotation, ThatCannotBeReadIsToldAndPassedOver) {
  struct Case {
    std::string text, problem;
  };
  const std::string padded = std::string(kSingle) + std::string(wire::kMostKubeletBytes, ' ');
  for (const Case& c : std::vector<Case>{
           {"x", "want JSON, got something else"},
           {"[]", "want an object, got array"},
           {std::string(4'000, '['), "want JSON, got something else"},
           {padded, "want at most 4096 bytes, got " + std::to_string(padded.size())},
           {R"({"topologyManagerPolicy":7})", "topologyManagerPolicy: want a text, got number"},
           {R"({"topologyManagerPolicy":"strict"})",
            "topologyManagerPolicy: want one of none, best-effort, restricted, single-numa-node, "
            "got \"strict\""},
           {R"({"topologyManagerScope":"node"})",
            "topologyManagerScope: want one of container, pod, got \"node\""},
           {R"({"numa":"off"})", "numa: want \"lifted\" or nothing, got \"off\""},
       }) {
    EXPECT_EQ(ProblemOf({{kKubelet, c.text}}), "annotation berth.dev/kubelet: " + c.problem);
    EXPECT_EQ(Read({{kKubelet, c.text}}).topology_manager, TopologyManager());
  }
}

TEST(CarriesOut, ASickGpuThatAConditionNamesIsClosedAlone) {
  const auto with = [](const Json& annotations) {
    Json node = EightGpus(annotations);
    node["status"]["conditions"] =
        Json::array({{{"type", "Ready"}, {"status", "True"}},
                     {{"type", "GpuXidErrors"},
                      {"status", "True"},
                      {"message", "GPU-355d8f70-2051-db6c-0430-ffc457bff834"}}});
    Config config = DefaultConfig();
    config.gpu_nodes.conditions = {"GpuXidErrors"};
    return ReadNode(node, config).spec;
  };
  EXPECT_EQ(with({}).gpu_condition, "GpuXidErrors=True") << "the plugin may give it to a pod";
  const NodeSpec carried = with({{kCarriesOut, "nvidia.com/gpu"}});
  EXPECT_EQ(carried.gpu_condition, "");
  EXPECT_FALSE(carried.gpus[3].healthy);
  EXPECT_TRUE(carried.gpus[4].healthy);
}

// --- pods

class KubeletOfANode : public testing::Test {
 protected:
  std::string RefusalOf(TestService& service, const Json& pod) {
    const Json answer = service.Ask("filter", ArgsWithNames(pod, Json::array({"n1"})));
    for (const char* list : {"FailedNodes", "FailedAndUnresolvableNodes"}) {
      if (answer[list].is_object() && answer[list].contains("n1")) return answer[list]["n1"];
    }
    return "";
  }
  void Show(TestService& service, const Json& annotations) {
    const ClusterEvent event = NodeUpserted{Read(annotations)};
    ASSERT_TRUE(service.state().Apply(std::span(&event, 1)));
  }
  // "c0: 4,5; c1: 0".
  std::string DevicesOf(const std::string& uid) {
    std::string text;
    const Json devices = Json::parse(binder_.devices[uid]);
    for (const auto& [name, container] : devices["containers"].items()) {
      text += (text.empty() ? "" : "; ") + name + ":";
      for (const Json& gpu : container["gpus"]) {
        text += (text.back() == ':' ? " " : ",") + std::to_string(gpu["index"].get<int>());
      }
    }
    return text;
  }
  static Json InContainers(const std::string& uid, const std::vector<int>& gpus) {
    Json pod = PodWithGpus(uid, gpus.front());
    const Json container = pod["spec"]["containers"][0];
    pod["spec"]["containers"] = Json::array();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      pod["spec"]["containers"].push_back(container);
      pod["spec"]["containers"].back()["name"] = "c" + std::to_string(i);
      pod["spec"]["containers"].back()["resources"]["requests"]["nvidia.com/gpu"] =
          std::to_string(gpus[i]);
    }
    return pod;
  }

  AnnotatingBinder binder_;
};

TEST_F(KubeletOfANode, LimitsPodsFromTheMomentThatItSaysSoUntilItTakesThatBack) {
  TestService service({Read({})}, &binder_);
  const Json six = PodWithGpus("six", 6);
  EXPECT_EQ(RefusalOf(service, six), "") << "as before there was an agent";
  Show(service, {{kKubelet, kSingle}});
  EXPECT_EQ(RefusalOf(service, six), TextOf(Reason::kNumaNever));
  Show(service, {{kKubelet, R"({"topologyManagerPolicy":"single-numa-node","numa":"lifted"})"}});
  EXPECT_EQ(RefusalOf(service, six), "");
  Show(service, {{kKubelet, "no JSON"}});
  EXPECT_EQ(RefusalOf(service, six), "");
}

TEST_F(KubeletOfANode, APodThatWasFilteredBeforeIsBoundWhereItFitStill) {
  TestService service({Read({})}, &binder_);
  const Json four = PodWithGpus("four", 4), six = PodWithGpus("six", 6);
  for (const Json& pod : {four, six}) EXPECT_EQ(RefusalOf(service, pod), "");
  Show(service, {{kKubelet, kSingle}});
  EXPECT_EQ(service.Ask("bind", BindingArgs("four", "n1"))["Error"], "");
  EXPECT_EQ(DevicesOf("four"), "main: 0,1,2,3");
  EXPECT_NE(service.Ask("bind", BindingArgs("six", "n1"))["Error"], "")
      << "the kubelet would refuse it";
}

TEST_F(KubeletOfANode, EachContainerIsPlannedWhereTheKubeletPutsIt) {
  TestService service({Read({{kKubelet, kSingle}})}, &binder_);
  ASSERT_EQ(service.Place(PodWithGpus("three", 3), "n1"), "");
  ASSERT_EQ(DevicesOf("three").size(), std::string("main: 0,1,2").size());
  ASSERT_EQ(service.Place(InContainers("p", {2, 1}), "n1"), "");
  const std::string devices = DevicesOf("p");
  EXPECT_TRUE(devices.starts_with("c0: ") && devices[4] >= '4') << devices;
  EXPECT_TRUE(devices.ends_with("c1: 3") || devices.ends_with("c1: 2") ||
              devices.ends_with("c1: 1") || devices.ends_with("c1: 0"))
      << devices;
}

TEST_F(KubeletOfANode, ADivisionByNumaNodeIsReadBack) {
  TestService service({Read({{kKubelet, kSingle}})}, &binder_);
  ASSERT_EQ(service.Place(PodWithGpus("three", 3), "n1"), "");
  Json pod = InContainers("p", {2, 1});
  ASSERT_EQ(service.Place(pod, "n1"), "");
  pod["metadata"]["annotations"]["berth.dev/devices"] = binder_.devices["p"];
  pod["spec"]["nodeName"] = "n1";
  const auto read = wire::DecodeObservedPod(PaddedText(pod.dump()), service.rules());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->placement.grants.size(), 3U);
  EXPECT_EQ(read->problem, "");
}

// On the most common cluster of all nothing changes.
TEST(PlainNodes, TakeWhatTheyTookBefore) {
  std::vector<NodeSpec> nodes;
  Json names = Json::array();
  for (int i = 0; i < 8; ++i) {
    names.push_back("n" + std::to_string(i));
    nodes.push_back(ReadNode(EightGpus(Json::object(), names.back())).spec);
    EXPECT_FALSE(nodes.back().carries_out);
  }
  TestService service(nodes);
  Json linked = PodWithGpus("linked", 2), near = PodWithGpus("near", 1);
  linked["metadata"]["annotations"]["berth.dev/link"] = "required";
  near["metadata"]["annotations"]["berth.dev/near"] = "app=loader";
  for (const Json& pod : {PodWithGpus("six", 6), PodWithGpus("eight", 8), linked, near}) {
    EXPECT_EQ(service.Ask("filter", ArgsWithNames(pod, names))["NodeNames"], names);
  }
}

}  // namespace
}  // namespace berth::test::kubelet_annotation_test
