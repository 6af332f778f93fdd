// SPDX-License-Identifier: Apache-2.0
//
// Who carries out a share of a GPU: nodes that say their UUIDs, and those that do not.
#include <gtest/gtest.h>

#include <string>

#include "scoring/reason.h"
#include "server/dialects/registry.h"
#include "server/wire/api/api_json.h"
#include "server/wire/node/node_json.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::share_carriers_test {
namespace {

using test::Json;
using test::PodAsking;
using test::TestService;

constexpr const char* kUuidsKey = "berth.dev/gpu-uuids";

Json TwoT4(const std::string& uuids) {
  Json node = {{"kind", "Node"}, {"metadata", {{"name", "t4"}}}};
  node["metadata"]["labels"] = {{"nvidia.com/gpu.memory", "15360"}};
  if (!uuids.empty()) node["metadata"]["annotations"][kUuidsKey] = uuids;
  node["status"]["allocatable"] = {{"cpu", "32"}, {"memory", "64Gi"}, {"nvidia.com/gpu", "2"}};
  return node;
}

DecodedNode Decode(const Json& node, UnenforcedShares unenforced = UnenforcedShares::kAllow) {
  Config config = DefaultConfig();
  config.shares.unenforced = unenforced;
  return test::ReadNode(node, config);
}

std::string Refusal(const TestService& service, const Json& pod) {
  const Json answer = service.Ask("filter", test::ArgsWithNames(pod, Json::array({"t4"})));
  const Json& failed = answer["FailedAndUnresolvableNodes"];
  return failed.is_object() && failed.contains("t4") ? failed["t4"].get<std::string>() : "";
}

TEST(GpuUuids, AreReadFromTheNodesAnnotation) {
  const DecodedNode node = Decode(TwoT4("GPU-a, GPU-b"));
  EXPECT_EQ(node.problem, "");
  ASSERT_EQ(node.spec.gpus.size(), 2U);
  EXPECT_EQ(node.spec.gpus[0].uuid, "GPU-a");
  EXPECT_EQ(node.spec.gpus[1].uuid, "GPU-b");
}

TEST(GpuUuids, ThatCannotBeReadAreToldAndTheNodeDoesWithout) {
  const auto problem = [](const std::string& uuids) {
    const DecodedNode node = Decode(TwoT4(uuids));
    EXPECT_EQ(node.spec.gpus.size(), 2U);
    for (const GpuSpec& gpu : node.spec.gpus) EXPECT_EQ(gpu.uuid, "");
    return node.problem;
  };
  const std::string key = "annotation berth.dev/gpu-uuids: ";
  EXPECT_EQ(problem("GPU-a,GPU-b,GPU-c"), key + "want those of the node's 2 GPUs, got 3");
  EXPECT_EQ(problem("GPU-a,GPU-a"), key + "[1]: \"GPU-a\" is there twice");
  EXPECT_EQ(problem("GPU-a,"), key + "[1]: want a UUID of 1..64 characters, got \"\"");
  EXPECT_TRUE(problem("GPU-a," + std::string(65, 'x')).starts_with(key + "[1]: want a UUID of"));
}

// Who lists the GPUs knows how many there are: two devices of one GPU are replicas of it.
TEST(GpuUuids, OfHalfAsManyGPUsSayThatTheDevicesAreReplicas) {
  const DecodedNode node = Decode(TwoT4("GPU-a"));
  EXPECT_TRUE(node.spec.gpus.empty());
  EXPECT_EQ(node.spec.places.count, 2);
  EXPECT_EQ(node.spec.places.gpus, 1);
}

TEST(VisibleDevices, AreWrittenWithTheBindingOfAShare) {
  const NodeSpec node = Decode(TwoT4("GPU-a,GPU-b")).spec;
  PodRequest pod;
  pod.id = {"u", "ns", "p"};
  pod.shape.gpus = GpuShare{300, 0};
  pod.containers = {{"main", pod.shape.gpus}};
  Annotations annotations;
  for (const Dialect& dialect : *test::AllDialects()) {
    dialect.WriteGrants(pod, {"t4", 0, 0, {{1, 300, 4608}}}, node, WallTime(), annotations);
  }
  ASSERT_EQ(annotations.size(), 2U);
  EXPECT_EQ(annotations[0].first, "berth.dev/devices");
  EXPECT_EQ(annotations[1],
            std::pair(std::string("berth.dev/visible-devices"), std::string("GPU-b")));
}

TEST(VisibleDevices, AreNoAnnotationThatRefusesAPod) {
  Json pod = PodAsking("p", {{"berth.dev/gpu-milli", "300"}});
  pod["metadata"]["annotations"]["berth.dev/visible-devices"] = "GPU-a";
  EXPECT_EQ(Refusal(TestService({Decode(TwoT4("")).spec}), pod), "");
}

TEST(UnenforcedSharesSetting, KeepsSharesOffNodesWhereNobodyCarriesThemOut) {
  const Json share = PodAsking("p", {{"berth.dev/gpu-milli", "300"}});
  const auto told = [&](const std::string& uuids, UnenforcedShares unenforced, const Json& pod) {
    return Refusal(TestService({Decode(TwoT4(uuids), unenforced).spec}), pod);
  };
  const std::string nobody(TextOf(Reason::kSharesNotCarriedOut));
  EXPECT_EQ(told("", UnenforcedShares::kAllow, share), "");
  EXPECT_EQ(told("", UnenforcedShares::kRefuse, share), nobody);
  EXPECT_EQ(told("", DefaultConfig().shares.unenforced, share), nobody);
  EXPECT_EQ(told("GPU-a,GPU-b", UnenforcedShares::kRefuse, share), "");
  EXPECT_EQ(told("", UnenforcedShares::kRefuse, test::PodWithGpus("w", 2)), "") << "no share";
}

}  // namespace
}  // namespace berth::wire::share_carriers_test
