// SPDX-License-Identifier: Apache-2.0
//
// What pods ask for in MIG devices, and what they learn that they have.
#include "server/wire/pod/pod_parts.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/random.h"
#include "server/wire/extender/extender_v1.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/pod/devices_annotation.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/mig_nodes.h"

namespace berth::wire::pod_mig_test {
namespace {

using Object = nlohmann::json;
using test::AGrant;
using test::AGrantOf;
using test::APod;

Object Container(const std::string& name, const Object& requests) {
  return {{"name", name}, {"resources", {{"requests", requests}}}};
}

Object PodObject(const Object& containers, const Object& annotations = Object::object(),
                 const Object& init = Object::array()) {
  return {{"metadata",
           {{"name", "p"}, {"namespace", "ns"}, {"uid", "u"}, {"annotations", annotations}}},
          {"spec", {{"nodeName", "n1"}, {"containers", containers}, {"initContainers", init}}}};
}

ObservedPod Read(const Object& pod, const DeviceClasses* classes = nullptr) {
  const PodRules rules(test::AllDialects(), DefaultConfig().resources, {}, nullptr, classes);
  const PaddedText text(pod.dump());
  auto read = DecodeObservedPod(text, rules);
  EXPECT_TRUE(read) << read.error().message << pod;
  return read ? *std::move(read) : ObservedPod{};
}

MigWant Want(const std::string& profile, int count, bool shared = false) {
  return {test::ProfileOf(profile), shared, 0, 0, count};
}

TEST(PodMig, ANameThatLacksItsHyphenIsToldAsItIs) {
  const auto refusal = [](const char* resource) {
    return Read(PodObject(Object::array({Container("a", {{resource, "1"}})}))).pod.refusal;
  };
  EXPECT_EQ(refusal("nvidia.com/mig1g.5gb"),
            "containers[0].resources.requests.nvidia.com/mig1g.5gb: no node has this resource, did "
            "you mean nvidia.com/mig-1g.5gb?");
  EXPECT_EQ(refusal("nvidia.com/mig-1g.5gb"), "");
  EXPECT_EQ(refusal("nvidia.com/migration"), "");
}

TEST(PodMig, ReadsTheResourcesOfDeviceClasses) {
  DeviceClasses classes;
  classes.Reset({{"", "small", "example.com/small", "", test::ProfileOf("1g.5gb")},
                 {"", "by-name", "nvidia.com/mig-3g.20gb", "", test::ProfileOf("3g.20gb")},
                 {"", "strange", "nvidia.com/mig-2g.10gb", "", {}},
                 {"", "gpu", "nvidia.com/gpu", "", {}}});
  const Object asked = {
      {"example.com/small", "1"},      {"deviceclass.resource.kubernetes.io/small", "2"},
      {"nvidia.com/mig-1g.5gb", "4"},  {"nvidia.com/mig-3g.20gb", "1"},
      {"nvidia.com/mig-2g.10gb", "1"}, {"deviceclass.resource.kubernetes.io/strange", "1"},
      {"example.com/other", "1"}};
  const ObservedPod pod = Read(PodObject(Object::array({Container("a", asked)})), &classes);
  EXPECT_EQ(pod.pod.refusal, "");
  ASSERT_NE(pod.pod.shape.mig(), nullptr);
  EXPECT_EQ(pod.pod.shape.mig()->wants,
            (std::vector<MigWant>{Want("1g.5gb", 7), Want("3g.20gb", 1)}));
  const ObservedPod left =
      Read(PodObject(Object::array({Container("a", {{"nvidia.com/mig-2g.10gb", "1"}})})), &classes);
  EXPECT_FALSE(left.pod.shape.wants_gpu()) << "kube-scheduler alone knows what that is";
  const ObservedPod whole =
      Read(PodObject(Object::array({Container("a", {{"nvidia.com/gpu", "2"}})})), &classes);
  EXPECT_EQ(whole.pod.shape.gpu_count(), 2) << "a resource of Berth's own";
  const ObservedPod bad =
      Read(PodObject(Object::array({Container("a", {{"example.com/small", "-1"}})})), &classes);
  EXPECT_EQ(bad.pod.refusal,
            "containers[0].resources.requests.example.com/small: want 0 or more, got \"-1\"");
}

TEST(PodMig, ReadsDevicesByTheNameOfTheirProfile) {
  const ObservedPod pod = Read(PodObject(
      {Container("a", {{"nvidia.com/mig-1g.5gb", "2"}, {"nvidia.com/mig-1g.5gb.me", 1}}),
       Container("b", {{"nvidia.com/mig-1g.5gb", "1"}, {"nvidia.com/mig-2g.10gb.shared", "1"}})}));
  EXPECT_EQ(pod.pod.refusal, "");
  ASSERT_NE(pod.pod.shape.mig(), nullptr);
  EXPECT_EQ(
      pod.pod.shape.mig()->wants,
      (std::vector<MigWant>{Want("1g.5gb", 3), Want("1g.5gb+me", 1), Want("2g.10gb", 1, true)}));
  ASSERT_EQ(pod.pod.containers.size(), 2U);
  EXPECT_EQ(std::get<MigSlices>(pod.pod.containers[0].gpus).count(), 3);
  EXPECT_TRUE(pod.pod.shape.wants_gpu());
  EXPECT_EQ(pod.pod.shape.gpu_count(), 0);
}

TEST(PodMig, AnInitContainerCountsOnlyAsFarAsItNeedsMore) {
  const ObservedPod pod = Read(PodObject(
      Object::array({Container("a", {{"nvidia.com/mig-1g.5gb", "2"}})}), Object::object(),
      Object::array(
          {Container("i", {{"nvidia.com/mig-1g.5gb", "1"}, {"nvidia.com/mig-7g.40gb", "1"}})})));
  EXPECT_EQ(pod.pod.shape.mig()->wants,
            (std::vector<MigWant>{Want("1g.5gb", 2), Want("7g.40gb", 1)}));
}

TEST(PodMig, ReadsDevicesByWhatTheyMustHave) {
  const ObservedPod pod =
      Read(PodObject(Object::array({Container("a", {{"nvidia.com/gpu", "2"}})}),
                     {{"berth.dev/mig-min-slices", "2"}, {"berth.dev/mig-min-memory-gib", "10"}}));
  EXPECT_EQ(pod.pod.refusal, "");
  const MigSlices want = test::MigWith(2, 10 * 1024, 2);
  ASSERT_NE(pod.pod.shape.mig(), nullptr);
  EXPECT_EQ(*pod.pod.shape.mig(), want);
  EXPECT_EQ(std::get<MigSlices>(pod.pod.containers[0].gpus), want);
}

TEST(PodMig, RefusesWhatMakesNoSense) {
  const auto refusal = [](const Object& requests, const Object& annotations = Object::object()) {
    return Read(PodObject(Object::array({Container("a", requests)}), annotations)).pod.refusal;
  };
  EXPECT_EQ(refusal({{"nvidia.com/mig-1g", "1"}}),
            "containers[0].resources.requests.nvidia.com/mig-1g: want a resource such as "
            "nvidia.com/mig-1g.5gb or "
            "nvidia.com/mig-1g.5gb.me, got \"nvidia.com/mig-1g\"");
  EXPECT_EQ(refusal({{"nvidia.com/mig-1g.5gb", "1"}, {"nvidia.com/gpu", "1"}}),
            "pod asks for MIG devices and for GPUs: want one of the two");
  EXPECT_EQ(refusal({{"nvidia.com/mig-1g.5gb", "65"}}),
            "pod asks for more MIG devices than any node has");
  EXPECT_EQ(refusal({{"nvidia.com/mig-1g.5gb", "1"}}, {{"berth.dev/mig-min-slices", "1"}}),
            "annotation berth.dev/mig-min-slices: want a pod that also asks for whole GPUs "
            "(nvidia.com/gpu)");
  EXPECT_EQ(refusal({{"nvidia.com/gpu", "1"}}, {{"berth.dev/mig-min-memory-gib", "10Gi"}}),
            "annotation berth.dev/mig-min-memory-gib: want an integer from 1 to 100000, got "
            "\"10Gi\"");
}

TEST(DevicesAnnotation, HasTheMigDevices) {
  NodeSpec node = test::ANode("n1").Mig(test::DynamicMig(3)).Spec();
  MigSpec mig = *node.mig;
  mig.gpus[2].uuid = "GPU-2";
  node.mig = NodeMig(mig);
  APod pod("p");
  pod.Mig("1g.10gb", 2).Container("main", MigSlices{{Want("1g.10gb", 2)}});
  Placement placement = pod.On("n1");
  placement.mig = {AGrant(1, "1g.10gb", 6), AGrant(2, "1g.10gb", 4)};
  EXPECT_EQ(EncodeDevices(pod.Request(), placement, node),
            R"({"version":1,"node":"n1","containers":{"main":{"mig":[)"
            R"({"gpu":1,"profile":"1g.10gb","start":6},)"
            R"({"gpu":2,"uuid":"GPU-2","profile":"1g.10gb","start":4}]}}})");
  placement.mig = {AGrantOf("1g.10gb"), AGrantOf("1g.10gb")};
  EXPECT_EQ(EncodeDevices(pod.Request(), placement, node),
            R"({"version":1,"node":"n1","containers":{"main":{"mig":[)"
            R"({"profile":"1g.10gb"},{"profile":"1g.10gb"}]}}})");
}

// Containers that ask for a few profiles, and devices that they could have been given.
TEST(DevicesAnnotation, GivesBackTheMigDevicesOfEveryPod) {
  const std::vector<std::string> profiles = {"1g.5gb", "1g.10gb", "2g.10gb"};
  const NodeSpec node = test::ANode("n1").Mig(test::DynamicMig(8)).Spec();
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const bool exact = random.Below(2) == 0;
    APod pod("p");
    std::map<std::string, int> running, peak;
    const std::uint64_t containers = 1 + random.Below(4);
    for (std::uint64_t i = 0; i < containers; ++i) {
      const std::string profile = profiles[random.Below(profiles.size())];
      const int count = 1 + static_cast<int>(random.Below(3));
      const bool ends_first = i + 1 < containers && random.Below(3) == 0;
      const MigSlices ask{{Want(profile, count)}};
      const std::string name = "c" + std::to_string(i);
      ends_first ? pod.InitContainer(name, ask) : pod.Container(name, ask);
      peak[profile] = std::max(peak[profile], running[profile] + count);
      if (!ends_first) running[profile] += count;
    }
    Placement placement = pod.On("n1");
    int gpu = 0;
    for (const auto& [profile, count] : peak) {
      pod.Mig(profile, count);
      for (int i = 0; i < count; ++i, gpu = (gpu + 3) % 32) {
        placement.mig.push_back(exact ? AGrant(gpu, profile, 2 * (i % 3)) : AGrantOf(profile));
      }
    }
    std::ranges::sort(placement.mig);
    const std::string text = EncodeDevices(pod.Request(), placement, node);
    const auto read = DecodeDevices(text, pod.Request(), "n1");
    ASSERT_TRUE(read) << read.error().message << "\n" << text;
    ASSERT_EQ(read->mig, placement.mig) << text;
    ASSERT_TRUE(read->grants.empty());
  }
}

TEST(DevicesAnnotation, RefusesMigDevicesThatThePodDidNotAskFor) {
  const PodRequest pod =
      APod("p").Mig("1g.5gb").Container("main", MigSlices{{Want("1g.5gb", 1)}}).Request();
  const auto error = [&pod](const std::string& devices) {
    const auto read = DecodeDevices(
        R"({"version":1,"node":"n1","containers":{"main":{"mig":[)" + devices + "]}}}", pod, "n1");
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(error(R"({"profile":"1g.5gb"})"), "");
  EXPECT_EQ(error(R"({"profile":"2g.10gb"})"), "containers.main: want no MIG device, got 2g.10gb");
  EXPECT_EQ(error(R"({"profile":"1g.5gb"},{"profile":"1g.5gb"})"),
            "containers.main: want 1g.5gb, got 1g.5gb, 1g.5gb");
  EXPECT_EQ(error(""), "containers: want 1 MIG devices, got 0");
}

TEST(ClusterFile, HasNodesAndPodsWithMigDevices) {
  ClusterState state;
  APod pod("p");
  pod.Mig("1g.5gb").Container("main", MigSlices{{Want("1g.5gb", 1)}});
  Placement placement = pod.On("n1");
  placement.mig = {AGrant(1, "1g.5gb", 6)};
  APod need = APod("q").MigNeeding(3, 100);
  Placement other = need.On("n2");
  other.mig = {AGrantOf("3g.20gb")};
  const std::vector<ClusterEvent> events = {
      NodeUpserted{test::ANode("n1").Gpus(1).Mig(test::DynamicMig(2)).Spec()},
      NodeUpserted{test::ANode("n2").Mig(test::StaticMig(2, test::kBalanced)).Spec()},
      PodBound{pod.Request(), placement}, PodBound{need.Request(), other}};
  ASSERT_TRUE(state.Apply(events));
  const std::string text = EncodeCluster(state.Everything());
  const auto file = DecodeCluster(text, NodeRules(DefaultConfig(), test::AllDialects()));
  ASSERT_TRUE(file) << file.error().message;
  ClusterState again;
  ASSERT_TRUE(again.Apply(file->events));
  EXPECT_EQ(EncodeCluster(again.Everything()), text);
  EXPECT_TRUE(*again.Current() == *state.Current());
}

}  // namespace
}  // namespace berth::wire::pod_mig_test
