// SPDX-License-Identifier: Apache-2.0
//
// What HAMi's plugin reads of a pod that Berth bound, and that we read back the same.
#include "server/dialects/hami/hami_binding.h"

#include <chrono>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "server/dialects/hami/hami_dialect.h"
#include "server/wire/api/api_json.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"
#include "test/support/mig_nodes.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::hami_binding_test {
namespace {

using dialects::HamiAnnotations;
using dialects::SpeaksHami;
using namespace std::chrono_literals;
using test::AGrant;
using test::Json;

const WallTime kNow = WallTime() + 1'724'212'800s;

NodeSpec HamiNode() {
  NodeSpec node;
  node.name = "n1";
  MigSpec mig = test::DynamicMig(2, "H100-80GB");
  mig.agent = "hami";
  mig.gpus[0].uuid = "GPU-a";
  mig.gpus[1].uuid = "GPU-b";
  node.mig = NodeMig(mig);
  return node;
}

// An init container and three others; of those the first has no GPU. By need.
Json PodJson() {
  const auto container = [](const char* name, int gpus) {
    Json limits = {{"cpu", "1"}};
    if (gpus > 0) limits["nvidia.com/gpu"] = std::to_string(gpus);
    return Json{{"name", name}, {"resources", {{"limits", limits}}}};
  };
  Json pod = test::PodAsking("u", Json::object());
  pod["kind"] = "Pod";
  pod["metadata"]["annotations"]["berth.dev/mig-min-slices"] = "1";
  pod["spec"]["initContainers"] = Json::array({container("first", 1)});
  pod["spec"]["containers"] = Json::array(
      {container("plain", 0), container("a", 2), container("b", 1), container("last", 0)});
  return pod;
}

PodRequest PodOf(const Json& json) {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  return DecodeObservedPod(test::Padded(json.dump()), rules)->pod;
}

Placement Placed() {
  Placement placement{"n1", 1000, 0, {}};
  placement.mig = {AGrant(0, "3g.40gb", 0), AGrant(0, "1g.10gb", 4), AGrant(1, "1g.10gb", 6)};
  return placement;
}

TEST(HamiBinding, HasTheBytesThatHamisPluginReads) {
  std::map<std::string, std::string> annotations;
  for (auto& [key, value] : HamiAnnotations(PodOf(PodJson()), Placed(), HamiNode(), kNow)) {
    annotations.emplace(key, value);
  }
  // A segment per container, init containers first; what an init container had goes on to others.
  const std::string segments =
      "GPU-a,NVIDIA,40448,42:;;GPU-a,NVIDIA,40448,42:GPU-a,NVIDIA,9984,14:;GPU-b,NVIDIA,9984,14:;;";
  EXPECT_EQ(annotations["hami.io/vgpu-devices-to-allocate"], segments);
  EXPECT_EQ(annotations["hami.io/vgpu-devices-allocated"], segments);
  EXPECT_EQ(annotations["hami.io/vgpu-node"], "n1");
  EXPECT_EQ(annotations["hami.io/vgpu-time"], "1724212800");
  EXPECT_EQ(annotations["hami.io/bind-phase"], "allocating");
  EXPECT_EQ(annotations["hami.io/bind-time"], "1724212800");
  EXPECT_EQ(annotations["hami.io/vgpu-mig-allocations"],
            R"([{"containerIndex":0,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"3g.40gb",)"
            R"("placement":{"start":0,"size":4}},)"
            R"({"containerIndex":2,"deviceIndex":0,"gpuUUID":"GPU-a","profile":"3g.40gb",)"
            R"("placement":{"start":0,"size":4}},)"
            R"({"containerIndex":2,"deviceIndex":1,"gpuUUID":"GPU-a","profile":"1g.10gb",)"
            R"("placement":{"start":4,"size":1}},)"
            R"({"containerIndex":3,"deviceIndex":0,"gpuUUID":"GPU-b","profile":"1g.10gb",)"
            R"("placement":{"start":6,"size":1}}])");
  EXPECT_EQ(annotations.size(), 7U);
}

// The pod as the API server has it once it is bound so.
Json Bound(const Json& pod, const NodeSpec& node) {
  const auto text =
      EncodeBinding(PodOf(pod), Placed(), node, "0123456789abcdef", kNow, *test::AllDialects());
  EXPECT_TRUE(text) << text.error().message;
  const Json binding = Json::parse(text.value_or("{}"));
  Json bound = pod;
  for (const auto& [key, value] : binding["metadata"]["annotations"].items()) {
    bound["metadata"]["annotations"][key] = value;
  }
  bound["spec"]["nodeName"] = binding["target"]["name"];
  return bound;
}

ObservedPod Observe(const Json& pod) {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  return *DecodeObservedPod(test::Padded(pod.dump()), rules);
}

TEST(HamiBinding, IsReadBackAsTheSameDevices) {
  Json bound = Bound(PodJson(), HamiNode());
  const ObservedPod ours = Observe(bound);
  EXPECT_EQ(ours.problem, "");
  EXPECT_EQ(ours.placement.mig, Placed().mig);
  // By HAMi's record alone, as of a pod that its scheduler placed.
  bound["metadata"]["annotations"].erase("berth.dev/devices");
  bound["metadata"]["annotations"].erase("berth.dev/decision");
  const ObservedPod theirs = Observe(bound);
  EXPECT_EQ(theirs.problem, "");
  const NodeSpec node = HamiNode();
  const MigSpec& mig = *node.mig;
  MigUse by_ours(mig), by_theirs(mig);
  for (const MigGrant& grant : ours.placement.mig) by_ours.Take(*SlotOf(mig, grant));
  for (const MigGrant& grant : theirs.placement.mig) by_theirs.Take(*SlotOf(mig, grant));
  EXPECT_EQ(by_ours, by_theirs);
}

TEST(HamiBinding, IsNoPartOfABindingOnOtherNodes) {
  NodeSpec node = HamiNode();
  MigSpec mig = *node.mig;
  mig.agent.clear();
  node.mig = NodeMig(mig);
  EXPECT_EQ(Bound(PodJson(), node)["metadata"]["annotations"].size(), 3U)
      << "its own, devices and decision";
  EXPECT_FALSE(SpeaksHami(Placed(), node));
  Placement plain{"n1", 1000, 0, {}};
  EXPECT_FALSE(SpeaksHami(plain, HamiNode())) << "a pod without devices";
}

}  // namespace
}  // namespace berth::wire::hami_binding_test
