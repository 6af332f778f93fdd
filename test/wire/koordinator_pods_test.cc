// SPDX-License-Identifier: Apache-2.0
//
// GPUs that Koordinator's scheduler has given out, from its annotation to what Berth gives beside.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/node/node.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/wire_fixture.h"

namespace berth::wire::koordinator_pods_test {
namespace {

using test::Json;
using test::PodAsking;
using test::PodWithGpus;
using test::TestService;

class KoordinatorPods : public testing::Test {
 protected:
  static constexpr std::int64_t kGpuMib = 81920;

  // A part of a GPU in percent, as Koordinator writes it.
  static Json Part(int minor, int percent) {
    return {{"minor", minor},
            {"id", "GPU-" + std::to_string(minor)},
            {"resources",
             {{"koordinator.sh/gpu-core", std::to_string(percent)},
              {"koordinator.sh/gpu-memory", std::to_string(kGpuMib * percent / 100) + "Mi"},
              {"koordinator.sh/gpu-memory-ratio", std::to_string(percent)}}}};
  }

  static Json Saying(const std::string& name, const std::string& allocated) {
    Json pod = PodAsking(name, {{"cpu", "1"}, {"koordinator.sh/gpu-core", "50"}});
    pod["metadata"]["annotations"]["scheduling.koordinator.sh/device-allocated"] = allocated;
    pod["spec"]["nodeName"] = "n1";
    pod["spec"]["schedulerName"] = "koord-scheduler";
    return pod;
  }
  // With these parts, for which it asks so.
  static Json Bound(const std::string& name, const std::vector<Json>& gpus, const Json& asks) {
    Json pod = Saying(name, Json{{"gpu", gpus}}.dump());
    pod["spec"]["containers"][0]["resources"]["requests"] = asks;
    return pod;
  }

  static NodeSpec FourGpus() {
    NodeSpec spec;
    spec.name = "n1";
    spec.cpu_milli = 64'000;
    spec.memory_bytes = std::int64_t{256} << 30;
    spec.gpus.assign(4, GpuSpec{"", kGpuMib, true});
    spec.agents = {"koordinator"};
    return spec;
  }

  ObservedPod Show(const Json& pod) {
    auto observed = DecodeObservedPod(test::Padded(pod.dump()), service_.rules());
    EXPECT_TRUE(observed) << observed.error().message;
    EXPECT_TRUE(service_.state().Apply(
        std::vector<ClusterEvent>{PodBound{observed->pod, observed->placement}}));
    return *std::move(observed);
  }
  std::span<const GpuFree> Free() {
    snapshot_ = service_.state().Current();
    return snapshot_->node(0).gpus();
  }
  bool Passes(const Json& pod) {
    const Json answer = service_.Ask("filter", test::ArgsWithNames(pod, Json::array({"n1"})));
    return answer["NodeNames"] == Json::array({"n1"});
  }

  TestService service_{{FourGpus()}};
  std::shared_ptr<const Snapshot> snapshot_;
};

TEST_F(KoordinatorPods, HoldTheVeryGpusThatTheyGot) {
  EXPECT_EQ(
      Show(Bound("two", {Part(3, 100), Part(1, 100)}, {{"koordinator.sh/gpu", "200"}})).problem,
      "");
  EXPECT_EQ(Free()[0].milli, 1000);
  EXPECT_EQ(Free()[1].milli, 0);
  EXPECT_EQ(Free()[3].milli, 0);
  EXPECT_FALSE(Passes(PodWithGpus("three", 3)));
  EXPECT_EQ(service_.Place(PodWithGpus("both", 2), "n1"), "");
  EXPECT_FALSE(Passes(PodAsking("share", {{"berth.dev/gpu-milli", "1"}})));
}

TEST_F(KoordinatorPods, LeaveWhatTheyDoNotHoldOfAGpuToShares) {
  Show(Bound("half", {Part(0, 50)}, {{"koordinator.sh/gpu", "50"}}));
  EXPECT_EQ(Free()[0], (GpuFree{.milli = 500, .memory_mib = kGpuMib / 2}));
  EXPECT_FALSE(Passes(PodWithGpus("four", 4)));
  ASSERT_EQ(service_.Place(PodWithGpus("three", 3), "n1"), "");
  EXPECT_FALSE(Passes(PodAsking("more", {{"berth.dev/gpu-milli", "501"}})));
  EXPECT_FALSE(Passes(PodAsking("memory", {{"berth.dev/gpu-memory-mib", "40961"}})));
  EXPECT_EQ(service_.Place(PodAsking("rest", {{"berth.dev/gpu-milli", "500"}}), "n1"), "");
}

TEST_F(KoordinatorPods, MayHavePartsOfSeveralGpusOrAskByMemoryAlone) {
  Show(Bound("both", {Part(0, 30), Part(2, 30)},
             {{"koordinator.sh/gpu.shared", "2"}, {"koordinator.sh/gpu-memory-ratio", "60"}}));
  Json by_memory = Part(0, 20);
  by_memory["resources"].erase("koordinator.sh/gpu-core");
  by_memory["resources"]["koordinator.sh/gpu-memory-ratio"] = 20;  // Kubernetes reads numbers too
  Show(Bound("memory", {by_memory}, {{"koordinator.sh/gpu-memory", "16Gi"}}));
  EXPECT_EQ(Free()[0].milli, 500);
  EXPECT_EQ(Free()[2].milli, 700);
  EXPECT_TRUE(Passes(PodWithGpus("two", 2)));
  EXPECT_FALSE(Passes(PodWithGpus("three", 3)));
}

TEST_F(KoordinatorPods, ThatAskForNvidiasResourceHaveThemToo) {
  Json pod = PodWithGpus("one", 1);
  pod["metadata"]["annotations"]["scheduling.koordinator.sh/device-allocated"] =
      Json{{"gpu", {Part(2, 100)}}}.dump();
  pod["spec"]["nodeName"] = "n1";
  EXPECT_EQ(Show(pod).problem, "");
  EXPECT_EQ(Free()[2].milli, 0);
}

TEST_F(KoordinatorPods, WithOtherDevicesAloneHoldNoGpu) {
  const std::string rdma =
      R"({"rdma":[{"minor":0,"id":"0000:09:00.0","resources":{"koordinator.sh/rdma":"1"}}]})";
  Json pod = Saying("rdma", rdma);
  pod["spec"]["containers"][0]["resources"]["requests"] = {{"koordinator.sh/rdma", "1"}};
  EXPECT_EQ(Show(pod).problem, "");
  EXPECT_TRUE(Passes(PodWithGpus("four", 4)));
}

TEST_F(KoordinatorPods, ThatGiveTheirGpusBackHoldThemNoMore) {
  Show(Bound("half", {Part(0, 50)}, {{"koordinator.sh/gpu", "50"}}));
  ASSERT_TRUE(service_.state().Apply(std::vector<ClusterEvent>{PodGone{"half"}}));
  EXPECT_TRUE(Passes(PodWithGpus("four", 4)));
}

TEST_F(KoordinatorPods, ThatCannotBeReadAreToldAndHoldSomeGpu) {
  const auto problem = [this](const std::string& allocated) {
    std::string text = Show(Saying("pod", allocated)).problem;
    EXPECT_FALSE(Passes(PodWithGpus("four", 4))) << allocated;
    EXPECT_TRUE(Passes(PodWithGpus("three", 3))) << allocated;
    const std::string key = "annotation scheduling.koordinator.sh/device-allocated: ";
    const std::size_t at = text.find(key);
    return at == std::string::npos ? text : text.substr(at + key.size());
  };
  EXPECT_EQ(problem("GPU-0"), "want JSON, got something else");
  EXPECT_EQ(problem("[]"), "file: want an object");
  EXPECT_EQ(problem(R"({"gpu":[{"minor":64}]})"), "gpu[0].minor: want 0..63, got 64");
  EXPECT_EQ(problem(R"({"gpu":[{}]})"), "gpu[0].minor: want a number, got none");
  const std::string resources = R"({"gpu":[{"minor":0,"resources":)";
  const std::string percent =
      "gpu[0].resources: want 1 to 100 percent of a GPU in koordinator.sh/gpu-core or "
      "koordinator.sh/gpu-memory-ratio, got ";
  EXPECT_EQ(problem(resources + "{}}]}"), percent + "0");
  EXPECT_EQ(problem(resources + R"({"koordinator.sh/gpu-core":"150"}}]})"), percent + "150");
  EXPECT_EQ(problem(resources + R"({"koordinator.sh/gpu-core":"half"}}]})"),
            "gpu[0].resources.koordinator.sh/gpu-core: want a quantity such as \"500m\", \"4\" or "
            "\"16Gi\", got \"half\"");
  EXPECT_EQ(problem(Json{{"gpu", {Part(1, 50), Part(1, 50)}}}.dump()),
            "gpu: want each minor once, got 1 twice");
}

}  // namespace
}  // namespace berth::wire::koordinator_pods_test
