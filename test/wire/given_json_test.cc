// SPDX-License-Identifier: Apache-2.0
//
// What a pod was given, by the status that the kubelet writes and by the annotation of the agent.
#include "server/wire/pod/given_json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/config.h"
#include "server/wire/pod/pod_object.h"
#include "test/support/dialects.h"

namespace berth::test::given_json_test {
namespace {

using wire::DecodeGiven;
using wire::ObservedPod;

bool IsGpus(std::string_view resource) { return resource == "nvidia.com/gpu"; }

using Ids = std::vector<std::string>;

Ids IdsOf(const ObservedPod& pod) { return pod.given == nullptr ? Ids() : pod.given->ids; }

std::string Device(const std::string& id, const std::string& health = "Healthy") {
  return R"({"resourceID":")" + id + R"(","health":")" + health + R"("})";
}

std::string Container(const std::string& resource, const std::string& devices) {
  return R"({"name":"main","state":{"waiting":{}},"allocatedResourcesStatus":[{"name":")" +
         resource + R"(","resources":[)" + devices + "]}]}";
}

class GivenStatusTest : public testing::Test {
 protected:
  // statuses: fields of the status.
  ObservedPod Read(const std::string& statuses, const std::string& annotations = "{}",
                   const std::string& phase = "Pending", const std::string& node = "n1") {
    const std::string text =
        R"({"metadata":{"name":"p","namespace":"ns","uid":"u","annotations":)" + annotations +
        R"(},"spec":{"nodeName":")" + node +
        R"(","containers":[{"name":"main","resources":{"limits":{"nvidia.com/gpu":"2"}}}]},)" +
        R"("status":{"phase":")" + phase + "\"" + statuses + "}}";
    auto pod = wire::DecodeObservedPod(PaddedText(text), rules_);
    EXPECT_TRUE(pod.has_value()) << pod.error().message;
    return *std::move(pod);
  }

  const wire::PodRules rules_{AllDialects(), DefaultConfig().resources};
};

TEST_F(GivenStatusTest, ReadsTheGpusOfAllContainers) {
  const std::string statuses =
      R"(,"containerStatuses":[)" + Container("nvidia.com/gpu", Device("GPU-b")) +
      R"(,{"name":"log"}],"initContainerStatuses":[)" +
      Container("nvidia.com/gpu", Device("GPU-a", "Unhealthy") + "," + Device("GPU-b", "Unknown")) +
      "]";
  const ObservedPod pod = Read(statuses);
  EXPECT_EQ(IdsOf(pod), (Ids{"GPU-a", "GPU-b"}));
  EXPECT_EQ(pod.given->unwell, Ids{"GPU-a"}) << "unknown is not unwell";
  EXPECT_EQ(pod.given->by, Evidence::kKubelet);
  EXPECT_EQ(pod.problem, "");
}

TEST_F(GivenStatusTest, OnlyGpusOfAPodThatIsThereCount) {
  const auto status = [](const std::string& resource, const std::string& devices) {
    return R"(,"containerStatuses":[)" + Container(resource, devices) + "]";
  };
  EXPECT_EQ(IdsOf(Read(status("nvidia.com/gpu", Device("GPU-a::3")))), Ids{"GPU-a"}) << "a replica";
  EXPECT_EQ(IdsOf(Read(status("example.com/nic", Device("nic-a")))), Ids());
  const std::string gpus = status("nvidia.com/gpu", Device("GPU-a"));
  EXPECT_EQ(IdsOf(Read(gpus, "{}", "Running")), Ids{"GPU-a"});
  EXPECT_EQ(IdsOf(Read(gpus, "{}", "Succeeded")), Ids());
  EXPECT_EQ(IdsOf(Read(gpus, "{}", "Failed")), Ids());
  EXPECT_EQ(IdsOf(Read(gpus, "{}", "Pending", "")), Ids()) << "it has no node";
  EXPECT_EQ(IdsOf(Read(R"(,"containerStatuses":[{"name":"main"}])")), Ids());
  EXPECT_EQ(IdsOf(Read(R"(,"containerStatuses":null)")), Ids());
}

TEST_F(GivenStatusTest, ReadsReplicasMigDevicesAndDevicesOfClaims) {
  const auto status = [](const std::string& resource, const std::string& devices) {
    return R"(,"initContainerStatuses":[)" + Container(resource, devices) +
           R"(],"containerStatuses":[)" + Container(resource, devices) + "]";
  };
  const ObservedPod replicas = Read(status(
      "nvidia.com/gpu", Device("GPU-b::0") + "," + Device("GPU-a::3") + "," + Device("GPU-b::7")));
  EXPECT_EQ(IdsOf(replicas), (Ids{"GPU-a", "GPU-b"}));
  EXPECT_EQ(replicas.given->replicas, (std::vector<int>{1, 2}))
      << "that of an init container goes on to the next one";
  EXPECT_TRUE(Read(status("nvidia.com/gpu", Device("GPU-a"))).given->replicas.empty());
  const ObservedPod mig =
      Read(status("nvidia.com/mig-1g.10gb", Device("MIG-a", "Unhealthy") + "," + Device("MIG-b")));
  EXPECT_EQ(mig.given->mig, (Ids{"MIG-a", "MIG-b"}));
  EXPECT_EQ(mig.given->unwell, Ids{"MIG-a"});
  EXPECT_EQ(IdsOf(mig), Ids());
  const std::string cdi = "k8s.gpu.nvidia.com/claim=" + std::string(80, 'u') + "-gpu-1";
  const ObservedPod claimed = Read(status("claim:g/req", Device(cdi, "Unhealthy")));
  EXPECT_EQ(claimed.given->claimed, Ids{cdi});
  EXPECT_EQ(claimed.given->unwell, Ids{cdi});
  const ObservedPod longer = Read(status("claim:g", Device(std::string(129, 'x'))));
  EXPECT_EQ(longer.given, nullptr);
  EXPECT_EQ(longer.problem,
            "pod ns/p: status.containerStatuses: want device IDs of 1..128 bytes, got one of 129");
  const ObservedPod replica =
      Read(status("nvidia.com/gpu", Device("GPU-a::" + std::string(1000, '9'))));
  EXPECT_EQ(replica.given, nullptr);
}

TEST_F(GivenStatusTest, TooManyOrTooLongIdsCountForNothing) {
  std::string devices;
  for (int i = 0; i < 1000; ++i)
    devices += (i == 0 ? "" : ",") + Device("GPU-" + std::to_string(i));
  const auto status = [](const std::string& all) {
    return R"(,"containerStatuses":[)" + Container("nvidia.com/gpu", all) + "]";
  };
  const ObservedPod many = Read(status(devices));
  EXPECT_EQ(many.given, nullptr);
  EXPECT_EQ(many.problem, "pod ns/p: status.containerStatuses: want at most 64 devices, got more");
  const ObservedPod longer = Read(status(Device(std::string(65, 'x'))));
  EXPECT_EQ(longer.given, nullptr);
  EXPECT_EQ(longer.problem,
            "pod ns/p: status.containerStatuses: want device IDs of 1..64 bytes, got one of 65");
  EXPECT_EQ(Read(status(Device("::1"))).given, nullptr);
}

TEST_F(GivenStatusTest, TheAgentsAnnotationCountsWhereTheKubeletSaysNothing) {
  const std::string said =
      R"({"berth.dev/given":"{\"version\":1,\"containers\":{\"main\":{\"nvidia.com/gpu\":[\"GPU-c\"]}}}"})";
  const ObservedPod pod = Read("", said);
  EXPECT_EQ(IdsOf(pod), Ids{"GPU-c"});
  EXPECT_EQ(pod.given->by, Evidence::kAgent);
  const std::string claim =
      R"({"berth.dev/given":"{\"version\":1,\"containers\":{\"main\":{\"claim:c\":[\"gpu-1\"]}}}"})";
  EXPECT_EQ(Read("", claim).given, nullptr) << "who writes annotations says nothing of health";
  const std::string kubelets =
      R"(,"containerStatuses":[)" + Container("nvidia.com/gpu", Device("GPU-a")) + "]";
  EXPECT_EQ(IdsOf(Read(kubelets, said)), Ids{"GPU-a"});
  const ObservedPod waiting = Read("", said, "Pending", "");
  EXPECT_EQ(waiting.pod.refusal, "");
  EXPECT_EQ(waiting.given, nullptr) << "nobody has given it anything yet";
}

TEST_F(GivenStatusTest, ABadAnnotationIsReportedAndThePodKeepsItsPlan) {
  const std::string plan =
      R"("berth.dev/devices":"{\"version\":1,\"node\":\"n1\",\"containers\":{\"main\":{\"gpus\":[{\"index\":0,\"milli\":1000,\"memory_mib\":0},{\"index\":1,\"milli\":1000,\"memory_mib\":0}]}}}")";
  const ObservedPod pod = Read("", "{" + plan + R"(,"berth.dev/given":"[]"})");
  EXPECT_EQ(pod.given, nullptr);
  EXPECT_EQ(pod.problem, "pod ns/p: annotation berth.dev/given: want an object, got array");
  EXPECT_EQ(pod.placement.grants.size(), 2U);
}

TEST(DecodeGivenTest, SaysWhatIsWrongAndWhere) {
  const auto error = [](const std::string& text) {
    const auto given = DecodeGiven(text, IsGpus);
    return given ? std::string() : given.error().message;
  };
  EXPECT_EQ(error(R"({"version":1,"containers":{"a":{"nvidia.com/gpu":["G"]}}})"), "");
  EXPECT_EQ(error("x"), "want JSON, got something else");
  EXPECT_EQ(error(R"({"containers":{}})"), "version: want 1, got none");
  EXPECT_EQ(error(R"({"version":2,"containers":{}})"), "version: want 1..1, got 2");
  EXPECT_EQ(error(R"({"version":1,"containers":{"a":[]}})"),
            "containers.a: want an object, got array");
  EXPECT_EQ(error(R"({"version":1,"containers":{"a":{"nvidia.com/gpu":"G"}}})"),
            "containers.a.nvidia.com/gpu: want a list of IDs, got string");
  EXPECT_EQ(error(R"({"version":1,"containers":{"a":{"nvidia.com/gpu":[1]}}})"),
            "containers.a.nvidia.com/gpu: want IDs as texts, got number");
  EXPECT_EQ(error(R"({"version":1,"containers":{"a":{"example.com/nic":[1]}}})"), "")
      << "these are not GPUs";
  EXPECT_NE(error(R"({"version":1,"containers":{},"more":1})"), "");
}

}  // namespace
}  // namespace berth::test::given_json_test
