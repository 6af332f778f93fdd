// SPDX-License-Identifier: Apache-2.0
//
// Shares of GPUs on nodes where NVIDIA's NRI plugin gives the containers their GPU.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/dialects/nvidia/nvidia_dialect.h"
#include "server/dialects/registry.h"
#include "server/wire/api/api_json.h"
#include "server/wire/node/node_json.h"
#include "test/support/agent_world.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::nri_shares_test {
namespace {

using test::Json;

constexpr const char* kVendor = "k8s.device-plugin.nvidia.com";
const std::string kOfMain = "nvidia.cdi.k8s.io/container.main";

Json TwoT4(const std::string& label, const std::string& uuids = "GPU-a,GPU-b") {
  Json node = {{"kind", "Node"}, {"metadata", {{"name", "t4"}}}};
  node["metadata"]["labels"] = {{"nvidia.com/gpu.memory", "15360"}};
  if (!label.empty()) node["metadata"]["labels"]["berth.dev/nri"] = label;
  if (!uuids.empty()) node["metadata"]["annotations"]["berth.dev/gpu-uuids"] = uuids;
  node["status"]["allocatable"] = {{"cpu", "32"}, {"memory", "64Gi"}, {"nvidia.com/gpu", "2"}};
  return node;
}

NodeSpec SpecOf(const Json& node) { return test::ReadNode(node).spec; }

PodRequest Sharing(const std::vector<std::string>& containers, int milli = 300) {
  PodRequest pod;
  pod.id = {"u", "ns", "p"};
  const int count = static_cast<int>(containers.size());
  pod.shape.gpus = GpuShare{milli * count, 0};
  for (const std::string& name : containers) pod.containers.push_back({name, GpuShare{milli, 0}});
  return pod;
}

// The annotations of NVIDIA's NRI plugin in what is written with the Binding.
std::map<std::string, std::string> Written(const PodRequest& pod, const NodeSpec& node,
                                           const std::vector<DeviceGrant>& grants) {
  Annotations annotations;
  for (const Dialect& dialect : *test::AllDialects()) {
    dialect.WriteGrants(pod, {"t4", 0, 0, grants}, node, WallTime(), annotations);
  }
  std::map<std::string, std::string> nri;
  for (auto& [key, value] : annotations) {
    if (key.starts_with(dialects::kNriPrefix)) nri.emplace(key, value);
  }
  EXPECT_FALSE(annotations.empty()) << "berth.dev/devices is there in any case";
  return nri;
}

using Texts = std::map<std::string, std::string>;

TEST(NriShares, NameTheGpuAsTheNodesCdiSpecificationDoes) {
  const PodRequest pod = Sharing({"main"});
  EXPECT_EQ(Written(pod, SpecOf(TwoT4(kVendor)), {{1, 300, 4608}}),
            (Texts{{kOfMain, "k8s.device-plugin.nvidia.com/gpu=GPU-b"}}));
  EXPECT_EQ(Written(pod, SpecOf(TwoT4("nvidia.com")), {{0, 300, 4608}}),
            (Texts{{kOfMain, "nvidia.com/gpu=GPU-a"}}));
}

TEST(NriShares, EachContainerWithAPartHasItsOwnAnnotation) {
  PodRequest pod = Sharing({"first", "second"});
  pod.containers.push_back({"sidecar", NoGpu{}});
  EXPECT_EQ(Written(pod, SpecOf(TwoT4("nvidia.com")), {{1, 600, 9216}}),
            (Texts{{"nvidia.cdi.k8s.io/container.first", "nvidia.com/gpu=GPU-b"},
                   {"nvidia.cdi.k8s.io/container.second", "nvidia.com/gpu=GPU-b"}}));
}

TEST(NriShares, AreWrittenOnlyWhereTheNodeSaysThatThePluginRuns) {
  const PodRequest pod = Sharing({"main"});
  const std::vector<DeviceGrant> grants = {{1, 300, 4608}};
  EXPECT_EQ(Written(pod, SpecOf(TwoT4("")), grants), Texts{});
  EXPECT_EQ(Written(pod, SpecOf(TwoT4("true")), grants), Texts{}) << "no vendor";
  EXPECT_EQ(Written(pod, SpecOf(TwoT4(kVendor, "")), grants), Texts{}) << "no UUIDs";
  EXPECT_EQ(Written(pod, SpecOf(TwoT4(kVendor, "GPU-a,GPU b")), grants), Texts{}) << "no CDI name";
}

TEST(NriShares, AreWrittenForNothingElse) {
  const NodeSpec node = SpecOf(TwoT4(kVendor));
  PodRequest whole = Sharing({"main"});
  whole.shape.gpus = WholeGpus{1};
  whole.containers[0].gpus = WholeGpus{1};
  EXPECT_EQ(Written(whole, node, {{1, 1000, 15360}}), Texts{});
  NodeSpec of_agent = node;
  of_agent.share_agent = "koordinator";
  EXPECT_EQ(Written(Sharing({"main"}), of_agent, {{1, 300, 4608}}), Texts{})
      << "the agent gives the GPU already";
}

// An annotation with a longer name would be written by the Binding, and no later change of the pod
// would pass the API server's checks.
TEST(NriShares, ThatDoNotFitIntoKeysAreOneAnnotationForThePod) {
  const NodeSpec node = SpecOf(TwoT4("nvidia.com"));
  const std::string fits(53, 'c'), longer(54, 'c');
  const Texts whole_pod = {{"nvidia.cdi.k8s.io/pod", "nvidia.com/gpu=GPU-b"}};
  EXPECT_EQ(Written(Sharing({fits}), node, {{1, 300, 4608}}),
            (Texts{{"nvidia.cdi.k8s.io/container." + fits, "nvidia.com/gpu=GPU-b"}}));
  EXPECT_EQ(Written(Sharing({longer}), node, {{1, 300, 4608}}), whole_pod);
  std::vector<std::string> names;
  while (names.size() < dialects::kMostNriContainers) {
    names.push_back("c" + std::to_string(names.size()));
  }
  EXPECT_EQ(Written(Sharing(names, 10), node, {{1, 160, 2448}}).size(), names.size());
  names.emplace_back("one-more");
  EXPECT_EQ(Written(Sharing(names, 10), node, {{1, 170, 2601}}), whole_pod);
}

TEST(NriLabel, ThatIsNoVendorIsNamedAndTheNodeKeepsItsGpus) {
  const auto problem = [](const std::string& label) {
    const DecodedNode node = test::ReadNode(TwoT4(label));
    EXPECT_EQ(node.spec.gpus.size(), 2U);
    return node.problem;
  };
  EXPECT_EQ(problem(kVendor), "");
  EXPECT_EQ(problem("nvidia.com"), "");
  const std::string want =
      "label berth.dev/nri: want the CDI vendor of the node's GPUs, such as "
      "k8s.device-plugin.nvidia.com, got ";
  EXPECT_EQ(problem("true"), want + "\"true\"");
  EXPECT_EQ(problem("nvidia.com/gpu"), want + "\"nvidia.com/gpu\"");
  EXPECT_EQ(problem("9.com"), want + "\"9.com\"");
  EXPECT_EQ(problem("a.b,management.nvidia.com"), want + "\"a.b,management.nvidia.com\"");
  EXPECT_EQ(problem(std::string(70, 'a') + ".com"), want + "\"" + std::string(63, 'a') + "\"");
}

}  // namespace
}  // namespace berth::wire::nri_shares_test
