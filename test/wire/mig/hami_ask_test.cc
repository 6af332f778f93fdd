// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_dialect.h"

#include <string>

#include <gtest/gtest.h>

#include "server/wire/pod/pod_object.h"
#include "test/support/builders.h"
#include "test/support/dialects.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::hami_ask_test {
namespace {

using test::Json;

Json Container(const std::string& name, const Json& limits) {
  return {{"name", name}, {"resources", {{"limits", limits}}}};
}

// A pod of mode mig with these containers.
Json PodOf(const Json& containers) {
  Json pod = test::PodAsking("u", Json::object());
  pod["metadata"]["annotations"]["nvidia.com/vgpu-mode"] = "mig";
  pod["spec"]["containers"] = containers;
  return pod;
}

PodRequest Read(const Json& pod) {
  static const PodRules rules(test::AllDialects(), DefaultConfig().resources);
  auto observed = DecodeObservedPod(test::Padded(pod.dump()), rules);
  EXPECT_TRUE(observed) << observed.error().message;
  return observed ? std::move(observed->pod) : PodRequest();
}

const Json kTen = {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "10000"}};

GpuAsk Devices(int count, std::int64_t memory_mib) { return test::MigWith(0, memory_mib, count); }

TEST(HamiAsk, OfModeMigIsDevicesWithSoMuchMemoryEach) {
  const PodRequest pod = Read(PodOf(Json::array({Container("main", kTen)})));
  EXPECT_EQ(pod.refusal, "");
  EXPECT_EQ(pod.shape.gpus, Devices(1, 10'000));
  Json two = kTen;
  two["nvidia.com/gpu"] = "2";
  two["nvidia.com/gpucores"] = "30";
  const PodRequest several = Read(PodOf(Json::array(
      {Container("plain", {{"cpu", "1"}}), Container("a", two), Container("b", kTen)})));
  EXPECT_EQ(several.shape.gpus, Devices(3, 10'000));
  ASSERT_EQ(several.containers.size(), 2U);
  EXPECT_EQ(several.containers[0].gpus, Devices(2, 10'000));
  EXPECT_EQ(several.containers[0].index, 1);
  EXPECT_EQ(several.containers[1].index, 2);
  EXPECT_EQ(several.container_count, 3);
}

TEST(HamiAsk, ForAShareIsRefusedWithTheReasonAndCountsWhereItRuns) {
  const auto read = [](const Json& limits) {
    Json pod = PodOf(Json::array({Container("main", limits)}));
    pod["metadata"].erase("annotations");
    return Read(pod);
  };
  EXPECT_EQ(read(kTen).refusal,
            "container main: nvidia.com/gpumem asks for a GPU share that only HAMi's scheduler "
            "assigns; want the annotation nvidia.com/vgpu-mode: mig, or berth.dev/gpu-milli or "
            "berth.dev/gpu-memory-mib instead of nvidia.com/gpu");
  EXPECT_EQ(read(kTen).shape.gpus, GpuAsk(WholeGpus{1}));
  for (const char* resource : {"nvidia.com/gpumem-percentage", "nvidia.com/gpucores"}) {
    const PodRequest half = read({{"nvidia.com/gpu", "1"}, {resource, "50"}});
    EXPECT_TRUE(half.refusal.starts_with("container main: " + std::string(resource) + " asks"))
        << half.refusal;
    EXPECT_EQ(read({{"nvidia.com/gpu", "1"}, {resource, "100"}}).refusal, "") << "a whole GPU";
  }
  EXPECT_NE(read({{"nvidia.com/gpumem", "3000"}}).refusal, "") << "HAMi's webhook makes it one GPU";
}

TEST(HamiAsk, OfAnotherModeOrForAProfileIsRefused) {
  const auto refusal = [](const char* key, const char* value, const Json& limits) {
    Json pod = PodOf(Json::array({Container("main", limits)}));
    pod["metadata"]["annotations"] = {{key, value}};
    return Read(pod).refusal;
  };
  const Json whole = {{"nvidia.com/gpu", "1"}};
  EXPECT_EQ(refusal("nvidia.com/vgpu-mode", "hami-core", whole),
            "annotation nvidia.com/vgpu-mode: want mig, got \"hami-core\", which only HAMi's "
            "scheduler assigns");
  EXPECT_EQ(refusal("nvidia.com/vgpu-mode", "", whole), "");
  EXPECT_EQ(refusal("nvidia.com/mig-profile-preference", "1g.10gb", whole),
            "annotation nvidia.com/mig-profile-preference: not understood; want a resource with "
            "the profile, nvidia.com/mig-PROFILE");
  for (const char* const key : {"nvidia.com/use-gpuuuid", "nvidia.com/nouse-gpuuuid"}) {
    EXPECT_EQ(refusal(key, "GPU-a", {{"nvidia.com/mig-1g.10gb", "1"}}),
              "annotation " + std::string(key) +
                  ": not understood for MIG devices; leave it to a node selector or affinity");
  }
  const Json none = PodOf(Json::array({Container("main", {{"cpu", "1"}})}));
  EXPECT_EQ(Read(none).shape.gpus, GpuAsk(NoGpu{}));
  EXPECT_EQ(Read(none).refusal, "");
}

TEST(HamiAsk, TypesAreThePartsOfTheNamesOfModels) {
  const auto admits = [](const char* key, const char* types, const char* model,
                         const Json& limits = {{"nvidia.com/gpu", "1"}}) {
    Json pod = PodOf(Json::array({Container("main", limits)}));
    pod["metadata"]["annotations"] = {{key, types}};
    const PodRequest read = Read(pod);
    EXPECT_EQ(read.refusal, "");
    return read.shape.Admits(model);
  };
  const char* const use = "nvidia.com/use-gputype";
  EXPECT_TRUE(admits(use, "A100,H100", "NVIDIA-A100-SXM4-80GB"));
  EXPECT_TRUE(admits(use, " h100 , a100", "NVIDIA-H100-80GB-HBM3")) << "whatever the case";
  EXPECT_FALSE(admits(use, "A100,H100", "Tesla-T4"));
  EXPECT_FALSE(admits(use, "A100", "")) << "not known to be one";
  EXPECT_TRUE(admits(use, "", "Tesla-T4"));
  const char* const not_use = "nvidia.com/nouse-gputype";
  EXPECT_FALSE(admits(not_use, "t4", "Tesla-T4"));
  EXPECT_TRUE(admits(not_use, "T4", "NVIDIA-A100-SXM4-80GB"));
  EXPECT_FALSE(admits(use, "A100", "Tesla-T4", {{"volcano.sh/vgpu-number", "1"}}))
      << "Volcano's users choose by it too";
}

TEST(HamiAsk, UuidsAreTheGpusThatAreTakenOrAreNot) {
  Json pod = PodOf(Json::array({Container("main", {{"nvidia.com/gpu", "1"}})}));
  pod["metadata"]["annotations"] = {{"nvidia.com/use-gpuuuid", "GPU-b, GPU-a,,GPU-b"},
                                    {"nvidia.com/nouse-gpuuuid", "GPU-a"}};
  const PodRequest read = Read(pod);
  EXPECT_EQ(read.refusal, "");
  EXPECT_EQ(read.shape.gpu_rules,
            (std::vector<GpuRule>{{false, "GPU-a"}, {false, "GPU-b"}, {true, "GPU-a"}}));
  EXPECT_TRUE(read.shape.AdmitsGpu("GPU-b"));
  EXPECT_FALSE(read.shape.AdmitsGpu("GPU-a")) << "refused";
  EXPECT_FALSE(read.shape.AdmitsGpu("GPU-c")) << "not accepted";
  EXPECT_FALSE(read.shape.AdmitsGpu("")) << "not known to be one of them";
  pod["metadata"]["annotations"] = {{"nvidia.com/nouse-gpuuuid", "GPU-a"}};
  EXPECT_TRUE(Read(pod).shape.AdmitsGpu("GPU-c"));
  EXPECT_FALSE(Read(pod).shape.AdmitsGpu("")) << "it may be that one";
  pod["metadata"]["annotations"] = {{"nvidia.com/use-gpuuuid", " ,"}};
  EXPECT_TRUE(Read(pod).shape.gpu_rules.empty());
}

TEST(HamiAsk, TypesOfBothSortsAndOwnModelsHoldTogether) {
  Json pod = PodOf(Json::array({Container("main", {{"nvidia.com/gpu", "1"}})}));
  pod["metadata"]["annotations"] = {{"nvidia.com/use-gputype", "A100"},
                                    {"nvidia.com/nouse-gputype", "40GB"}};
  EXPECT_TRUE(Read(pod).shape.Admits("NVIDIA-A100-SXM4-80GB"));
  EXPECT_FALSE(Read(pod).shape.Admits("NVIDIA-A100-SXM4-40GB"));
  pod["metadata"]["annotations"]["berth.dev/gpu-model"] = "NVIDIA-A100-PCIE-80GB";
  EXPECT_FALSE(Read(pod).shape.Admits("NVIDIA-A100-SXM4-80GB"));
  EXPECT_TRUE(Read(pod).shape.Admits("NVIDIA-A100-PCIE-80GB"));
}

TEST(HamiAsk, NumaBindIsOneNumaNodeForAllGpus) {
  const auto numa = [](const char* gpus, const char* value) {
    Json pod = PodOf(Json::array({Container("main", {{"nvidia.com/gpu", gpus}})}));
    pod["metadata"]["annotations"] = {{"nvidia.com/numa-bind", value}};
    EXPECT_EQ(Read(pod).refusal, "");
    return Read(pod).shape.links.numa;
  };
  EXPECT_EQ(numa("2", "true"), NumaWish::kRequired);
  EXPECT_EQ(numa("2", "false"), NumaWish::kAmongEquals);
  EXPECT_EQ(numa("1", "true"), NumaWish::kAmongEquals) << "one GPU is in one";
  Json own = PodOf(Json::array({Container("main", {{"nvidia.com/gpu", "2"}})}));
  own["metadata"]["annotations"] = {{"nvidia.com/numa-bind", "true"},
                                    {"berth.dev/numa", "preferred"}};
  EXPECT_EQ(Read(own).shape.links.numa, NumaWish::kPreferred) << "Berth's own word goes first";
}

TEST(HamiAsk, BerthsOwnAnnotationsGoBeforeIt) {
  Json pod = PodOf(Json::array({Container("main", {{"nvidia.com/gpu", "1"}})}));
  pod["metadata"]["annotations"]["berth.dev/mig-min-slices"] = "2";
  EXPECT_EQ(Read(pod).refusal, "");
  EXPECT_EQ(Read(pod).shape.gpus, GpuAsk(test::MigWith(2)));
}

TEST(HamiAsk, WhatIsNotUnderstoodIsRefused) {
  const auto refusal = [](const Json& containers) { return Read(PodOf(containers)).refusal; };
  EXPECT_EQ(refusal(Json::array({Container("main", {{"nvidia.com/gpu", "1"}})})),
            "container main: want nvidia.com/gpumem beside nvidia.com/gpu with vgpu-mode mig, got "
            "none");
  Json percent = kTen;
  percent["nvidia.com/gpumem-percentage"] = "50";
  EXPECT_EQ(refusal(Json::array({Container("main", percent)})),
            "container main: want nvidia.com/gpumem with vgpu-mode mig, got "
            "nvidia.com/gpumem-percentage, which depends on the size of the GPU");
  Json more = kTen;
  more["nvidia.com/gpumem"] = "20000";
  EXPECT_EQ(refusal(Json::array({Container("a", kTen), Container("b", more)})),
            "container b: want as much nvidia.com/gpumem as in the containers before it (10000), "
            "got 20000");
  Json pod = PodOf(Json::array({Container("main", kTen)}));
  pod["metadata"]["annotations"]["nvidia.com/use-gpuuuid"] = "GPU-a";
  EXPECT_EQ(Read(pod).refusal,
            "annotation nvidia.com/use-gpuuuid: not understood for MIG devices; leave it to a node "
            "selector or affinity");
  pod = PodOf(
      Json::array({Container("main", {{"nvidia.com/gpu", "1"}, {"nvidia.com/gpumem", "x"}})}));
  EXPECT_NE(Read(pod).refusal.find("containers[0].resources.limits.nvidia.com/gpumem"),
            std::string::npos)
      << Read(pod).refusal;
}

}  // namespace
}  // namespace berth::wire::hami_ask_test
