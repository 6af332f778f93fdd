// SPDX-License-Identifier: Apache-2.0
//
// Workload classes, from the configuration and the JSON of nodes and pods to the answers that
// kube-scheduler gets.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.h"
#include "scoring/reason.h"
#include "server/wire/node/node_json.h"
#include "server/wire/node/node_traits.h"
#include "test/support/build_paths.h"
#include "test/support/dialects.h"
#include "test/support/read_text.h"
#include "test/support/wire_fixture.h"

namespace berth::test::workload_classes_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config Load(const std::string& text) {
  auto config = LoadConfig(text, "test");
  EXPECT_TRUE(config) << config.error().message;
  return config ? *config : DefaultConfig();
}

struct Sort {
  const char* type;
  int gpus;
  Json labels = Json::object();
  Json resources = Json::object();
};

Json NodeOf(const std::string& name, const Sort& sort) {
  Json node = {{"metadata", {{"name", name}, {"labels", sort.labels}}}};
  if (*sort.type != '\0') {
    node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = sort.type;
  }
  for (const char* list : {"capacity", "allocatable"}) {
    node["status"][list] = sort.resources;
    node["status"][list].update(
        {{"cpu", "96"}, {"memory", "900Gi"}, {"nvidia.com/gpu", std::to_string(sort.gpus)}});
  }
  return node;
}

wire::DecodedNode Decoded(const Json& node, const Config& config = DefaultConfig()) {
  auto decoded = wire::DecodeNode(Padded(node.dump()), wire::NodeRules(config, AllDialects()));
  EXPECT_TRUE(decoded) << decoded.error().message;
  return decoded ? *decoded : wire::DecodedNode();
}

NodeSpec Read(const std::string& name, const Sort& sort, const Config& config = DefaultConfig()) {
  return Decoded(NodeOf(name, sort), config).spec;
}

const Json kAksSpot = {{"kubernetes.azure.com/scalesetpriority", "spot"}};

// --- Traits

TEST(NodeTraits, AreWhatMachineTypesAndLabelsSay) {
  EXPECT_THAT(Read("n", {"Standard_ND96isr_H100_v5", 8}).traits,
              ElementsAre("family=ND", "nvlink", "nvme", "nvswitch", "rdma"));
  EXPECT_THAT(Read("n", {"Standard_NC4as_T4_v3", 1, kAksSpot}).traits,
              ElementsAre("family=NC", "spot"));
  EXPECT_THAT(Read("n", {"", 1}).traits, IsEmpty()) << "a plain node of a plain cluster";
  EXPECT_THAT(Read("n", {"", 1, {{"cloud.google.com/gke-spot", "true"}}}).traits,
              ElementsAre("spot"));
  EXPECT_THAT(Read("n", {"", 1, {{"cloud.google.com/gke-spot", "false"}}}).traits, IsEmpty());
  EXPECT_THAT(Read("n", {"", 1, {{"karpenter.k8s.aws/instance-local-nvme", "3800"}}}).traits,
              ElementsAre("nvme"));
  EXPECT_THAT(Read("n", {"", 1, {{"feature.node.kubernetes.io/rdma.capable", "true"}}}).traits,
              ElementsAre("rdma"));
}

TEST(NodeTraits, SayThatTheCloudTakesTheNodeAway) {
  Json event = NodeOf("n", {"", 1});
  event["status"]["conditions"] = {{{"type", "Ready"}, {"status", "True"}},
                                   {{"type", "VMEventScheduled"}, {"status", "False"}}};
  EXPECT_THAT(Decoded(event).spec.traits, IsEmpty());
  event["status"]["conditions"][1]["status"] = "True";
  EXPECT_THAT(Decoded(event).spec.traits, ElementsAre("leaving"));
  for (const char* effect : {"NoSchedule", "PreferNoSchedule"}) {
    Json tainted = NodeOf("n", {"", 1});
    tainted["spec"]["taints"] = {
        {{"key", "aws-node-termination-handler/spot-itn"}, {"value", "7"}, {"effect", effect}}};
    EXPECT_THAT(Decoded(tainted).spec.traits, ElementsAre("leaving"));
  }
}

TEST(NodeTraits, AreWhatTheNodeOffers) {
  EXPECT_THAT(Read("n", {"", 1, Json::object(), {{"rdma/hca_shared_devices_a", "63"}}}).traits,
              ElementsAre("rdma"));
  EXPECT_THAT(Read("n", {"", 1, Json::object(), {{"rdma/hca_shared_devices_a", "0"}}}).traits,
              IsEmpty());
  EXPECT_THAT(Read("n", {"", 1, Json::object(), {{"vpc.amazonaws.com/efa", "32"}}}).traits,
              ElementsAre("rdma"));
  EXPECT_THAT(Read("n", {"", 0, Json::object(), {{"nvidia.com/gpu.shared", "4"}}}).traits,
              Contains("shared"));
}

TEST(NodeTraits, OfYourOwnAreLabelsAndResources) {
  const Config config = Load(
      "traits:\n"
      "- {name: fast, labels: [disk=nvme, 'zone!=b', '!old']}\n"
      "- {name: bluefield, labels: [dpu], resource: nvidia.com/bf}\n");
  const auto traits = [&](const Json& labels, const Json& resources = Json::object()) {
    return Read("n", {"", 1, labels, resources}, config).traits;
  };
  EXPECT_THAT(traits({{"disk", "nvme"}}), ElementsAre("fast"));
  EXPECT_THAT(traits({{"disk", "nvme"}, {"zone", "b"}}), IsEmpty());
  EXPECT_THAT(traits({{"disk", "nvme"}, {"old", ""}}), IsEmpty());
  EXPECT_THAT(traits({{"disk", "hdd"}}), IsEmpty());
  EXPECT_THAT(traits({{"dpu", "yes"}}), IsEmpty()) << "it offers none";
  EXPECT_THAT(traits({{"dpu", "yes"}}, {{"nvidia.com/bf", "2"}}), ElementsAre("bluefield"));
}

TEST(NodeTraits, APriceIsOfOneGpu) {
  const auto priced = [](const char* price, const Config& config = DefaultConfig()) {
    return Decoded(NodeOf("n", {"", 8, {{"berth.dev/price-per-hour", price}, {"cost", "4"}}}),
                   config);
  };
  EXPECT_DOUBLE_EQ(priced("98.32").spec.gpu_price, 12.29);
  EXPECT_DOUBLE_EQ(priced("x", Load("nodeLabels: {pricePerHour: cost}")).spec.gpu_price, 0.5);
  for (const char* wrong : {"cheap", "-1", "0", "1e9", "12,5", ""}) {
    const wire::DecodedNode node = priced(wrong);
    EXPECT_EQ(node.spec.gpu_price, 0) << wrong;
    EXPECT_EQ(node.problem, std::string("label berth.dev/price-per-hour: want a price above 0 such "
                                        "as 12.5, got \"") +
                                wrong + "\"");
    EXPECT_EQ(node.spec.gpus.size(), 8U) << "the node does without";
  }
}

TEST(NodeTraits, OfAMachineTypeOfYourOwnAreInTheConfiguration) {
  const Config config = Load(
      "machineTypes:\n"
      "- {name: HQ_L40S, gpus: 4, rdma: true, nvmeGib: 3500, pricePerHour: 8}\n"
      "- {name: Standard_NC4as_T4_v3, pricePerHour: 0.6}\n");
  const NodeSpec own = Read("n", {"HQ_L40S", 4}, config);
  EXPECT_THAT(own.traits, ElementsAre("family=HQ_L40S", "nvme", "rdma"));
  EXPECT_DOUBLE_EQ(own.gpu_price, 2);
  EXPECT_DOUBLE_EQ(Read("n", {"Standard_NC4as_T4_v3", 1}, config).gpu_price, 0.6);
  const Json labelled = {{"berth.dev/price-per-hour", "4"}};
  EXPECT_DOUBLE_EQ(Read("n", {"HQ_L40S", 4, labelled}, config).gpu_price, 1)
      << "what the node says goes first";
}

TEST(MachineFamily, IsThePartOfTheNameThatIsOfTheFamily) {
  EXPECT_EQ(wire::MachineFamily("Standard_ND96isr_H100_v5"), "ND");
  EXPECT_EQ(wire::MachineFamily("Standard_NC24ads_A100_v4"), "NC");
  EXPECT_EQ(wire::MachineFamily("p5.48xlarge"), "p5");
  EXPECT_EQ(wire::MachineFamily("g6e.xlarge"), "g6e");
  EXPECT_EQ(wire::MachineFamily("a3-highgpu-8g"), "a3");
  EXPECT_EQ(wire::MachineFamily("BM.GPU.H100.8"), "BM.GPU.H100");
  EXPECT_EQ(wire::MachineFamily("rack7"), "rack7");
}

// --- The class of a pod

const Config& Classes() {
  static const Config config = Load(R"(workloadClasses:
- {name: training, labels: [workload=training], require: [nvlink]}
- {name: night, namespaces: [nightly, weekly], priorityClasses: [low]}
- {name: batch, labels: [workload], forbid: [rdma], spread: node}
)");
  return config;
}

// As filter reads it.
PodRequest RequestOf(const Json& pod, const Config& config) {
  const wire::PodRules rules(AllDialects(), config);
  PaddedText text = Padded(ArgsWithNames(pod, Json::array()));
  auto args = wire::DecodeExtenderArgs(text, rules, NodeNameTable(std::vector<std::string>()));
  EXPECT_TRUE(args && args->pod) << pod;
  return *args->pod;
}

Json Labelled(Json pod, const char* workload) {
  pod["metadata"]["labels"]["workload"] = workload;
  return pod;
}

TEST(WorkloadClasses, APodIsOfTheFirstThatItMatches) {
  const auto classes = [](const Json& pod) { return RequestOf(pod, Classes()); };
  EXPECT_THAT(classes(PodWithGpus("p", 1)).classes, IsEmpty());
  const PodRequest training = classes(Labelled(PodWithGpus("p", 1), "training"));
  EXPECT_THAT(training.classes, ElementsAre("training", "batch"));
  EXPECT_THAT(training.shape.nodes.required, ElementsAre("nvlink"));
  EXPECT_THAT(training.shape.nodes.forbidden, IsEmpty()) << "that is of the other class";

  Json nightly = PodWithGpus("p", 1);
  nightly["metadata"]["namespace"] = "weekly";
  EXPECT_THAT(classes(nightly).classes, IsEmpty()) << "and its PriorityClass";
  nightly["spec"]["priorityClassName"] = "low";
  EXPECT_THAT(classes(nightly).classes, ElementsAre("night"));
  nightly["metadata"]["annotations"]["berth.dev/workload-class"] = "batch";
  EXPECT_THAT(classes(nightly).classes, ElementsAre("batch", "night"));

  EXPECT_THAT(classes(Labelled(PodAsking("p", {{"cpu", "1"}}), "training")).classes, IsEmpty());
}

TEST(WorkloadClasses, AnUnknownNameIsToldWhichThereAre) {
  Json pod = PodWithGpus("p", 1);
  pod["metadata"]["annotations"]["berth.dev/workload-class"] = "trainig";
  const auto refusal = [&](const Config& config) { return RequestOf(pod, config).refusal; };
  EXPECT_EQ(refusal(Classes()),
            "annotation berth.dev/workload-class: want one of training, night, batch, got "
            "\"trainig\"");
  EXPECT_EQ(refusal(DefaultConfig()), "") << "without classes the word says nothing";
}

TEST(WorkloadClasses, APodMayPreferTraitsItself) {
  Json pod = PodWithGpus("p", 1);
  pod["metadata"]["annotations"]["berth.dev/prefer"] = "nvme, family=ND";
  const std::vector<TraitWish> both = {{"family=ND", 100}, {"nvme", 100}};
  EXPECT_EQ(RequestOf(pod, DefaultConfig()).shape.nodes.wishes, both);
  const Config config = Load(
      "traits: [{name: fast, labels: [x]}]\n"
      "workloadClasses: [{name: a, prefer: [{trait: spot, weight: 3}, {trait: nvme, weight: "
      "5}]}]\n");
  EXPECT_EQ(RequestOf(pod, config).shape.nodes.wishes,
            (std::vector<TraitWish>{{"family=ND", 100}, {"nvme", 100}, {"spot", 3}}));
  pod["metadata"]["annotations"]["berth.dev/prefer"] = "fast";
  EXPECT_EQ(RequestOf(pod, config).refusal, "");
  EXPECT_EQ(
      RequestOf(pod, DefaultConfig()).refusal,
      "annotation berth.dev/prefer: want traits of nodes: rdma, nvlink, nvswitch, nvme, spot, "
      "leaving, mig, shared, family=F, image=V or one of the configuration, got \"fast\"");
}

TEST(CheckpointedAt, IsATimeThatThePodSays) {
  Json pod = PodWithGpus("p", 1);
  EXPECT_EQ(RequestOf(pod, DefaultConfig()).checkpointed, std::nullopt);
  const auto said = [&](const char* time) {
    pod["metadata"]["annotations"]["berth.dev/checkpointed-at"] = time;
    return RequestOf(pod, DefaultConfig());
  };
  const WallTime at = std::chrono::sys_days(std::chrono::year(2026) / 11 / 23) +
                      std::chrono::hours(1) + std::chrono::minutes(15);
  EXPECT_EQ(said("2026-11-23T01:15:00Z").checkpointed, at);
  EXPECT_EQ(said("2026-11-23T02:15:00.25+01:00").checkpointed, at);
  EXPECT_EQ(said("yesterday").refusal,
            "annotation berth.dev/checkpointed-at: want a time such as 2026-11-23T00:15:00Z, got "
            "\"yesterday\"");
}

// A job writes the time while it runs. Whatever it writes, the books keep what it holds.
TEST(CheckpointedAt, ThatIsNoTimeTakesNothingElseFromThePod) {
  Json pod = PodAsking("p", {{"cpu", "1"}, {"nvidia.com/gpu", "1"}});
  pod["metadata"]["annotations"] = {{"berth.dev/mig-min-slices", "2"},
                                    {"berth.dev/spread", "node"}};
  const RequestShape shape = RequestOf(pod, DefaultConfig()).shape;
  ASSERT_NE(shape.mig(), nullptr);
  pod["metadata"]["annotations"]["berth.dev/checkpointed-at"] = "an hour ago";
  const PodRequest odd = RequestOf(pod, Classes());
  EXPECT_EQ(odd.shape, shape);
  EXPECT_NE(odd.refusal, "");
}

TEST(WorkloadClasses, SpreadTheirPodsUnlessThesePodsSayOtherwise) {
  Json pod = Labelled(PodWithGpus("p", 1), "batch");
  const auto spread = [&] { return RequestOf(pod, Classes()).shape.spread; };
  EXPECT_EQ(spread(), Spread::kNode);
  pod["metadata"]["annotations"]["berth.dev/spread"] = "card";
  EXPECT_EQ(spread(), Spread::kCard);
}

TEST(WorkloadClasses, HaveAProfileOfTheirOwn) {
  const Config config =
      Load("workloadClasses: [{name: a, labels: [workload=a], profile: spreading}]");
  EXPECT_EQ(RequestOf(Labelled(PodWithGpus("p", 1), "a"), config).shape.nodes.profile, "spreading");
  EXPECT_EQ(RequestOf(Labelled(PodWithGpus("p", 1), "b"), config).shape.nodes.profile, "");
}

// --- What they do

TEST(WorkloadClasses, RequireAndForbidAreConditions) {
  const TestService service(
      {Read("nd", {"Standard_ND96isr_H100_v5", 8}), Read("nc", {"Standard_NC4as_T4_v3", 1})},
      nullptr, "expected-waste", true, Classes());
  const auto answer = [&](const char* workload) {
    return service.Ask("filter",
                       ArgsWithNames(Labelled(PodWithGpus(workload, 1), workload), {"nd", "nc"}));
  };
  const Json training = answer("training");
  EXPECT_EQ(training["NodeNames"], Json{"nd"});
  EXPECT_EQ(training["FailedAndUnresolvableNodes"]["nc"], TextOf(Reason::kTraitMissing));
  const Json batch = answer("batch");
  EXPECT_EQ(batch["NodeNames"], Json{"nc"});
  EXPECT_EQ(batch["FailedAndUnresolvableNodes"]["nd"], TextOf(Reason::kTraitForbidden));
}

// The example of the documentation, on the fleet of a cloud that publishes nothing but machine
// types: two machines for training, cheap ones on demand, and spot.
class ExampleTest : public ::testing::Test {
 protected:
  // The indented block under the first heading.
  static Config Example() {
    const std::string text = ReadText(SourceDir() + "/docs/workload-classes.md");
    const std::size_t begin = text.find("    workloadClasses:");
    EXPECT_NE(begin, std::string::npos);
    return Load(text.substr(begin, text.find("\nA pod with", begin) - begin));
  }
  static Json Priced(Json labels, const char* price) {
    labels["berth.dev/price-per-hour"] = price;
    return labels;
  }
  std::string Best(const Json& pod) {
    return service_.BestOf(pod, {"train-a", "train-b", "t4", "t4-spot", "a100"});
  }

  const Config config_ = Example();
  TestService service_{
      {Read("train-a", {"Standard_ND96isr_H100_v5", 8, Priced(Json::object(), "98.32")}, config_),
       Read("train-b", {"Standard_ND96isr_H100_v5", 8, Priced(Json::object(), "98.32")}, config_),
       Read("t4", {"Standard_NC64as_T4_v3", 4, Priced(Json::object(), "4.35")}, config_),
       Read("t4-spot", {"Standard_NC64as_T4_v3", 4, Priced(kAksSpot, "0.87")}, config_),
       Read("a100", {"Standard_NC96ads_A100_v4", 4, Priced(Json::object(), "14.69")}, config_)},
      nullptr,
      "expected-waste",
      true,
      config_};
};

TEST_F(ExampleTest, EachSortOfWorkGetsItsNodes) {
  EXPECT_THAT(Best(Labelled(PodWithGpus("t", 4), "training")), HasSubstr("train-"));
  EXPECT_EQ(Best(Labelled(PodWithGpus("i", 1), "inference")), "t4-spot");
  EXPECT_EQ(Best(Labelled(PodWithGpus("b", 1), "batch")), "t4-spot");
}

TEST_F(ExampleTest, WishesGiveWayWhereNothingElseIsLeft) {
  const Json inference = Labelled(PodWithGpus("i", 1), "inference");
  const Json all = {"train-a", "train-b", "t4", "t4-spot", "a100"};
  EXPECT_EQ(service_.Ask("filter", ArgsWithNames(inference, all))["NodeNames"], all)
      << "a wish refuses nothing";
  for (const char* node : {"t4-spot", "t4", "a100"}) {
    EXPECT_EQ(service_.Place(PodWithGpus(std::string("fills-") + node, 4), node), "");
  }
  EXPECT_EQ(service_.Ask("filter", ArgsWithNames(inference, all))["NodeNames"],
            (Json{"train-a", "train-b"}));
}

TEST_F(ExampleTest, ExplainNamesTheTraits) {
  const Json node = Json::parse(service_.Call("GET", "/debug/nodes/t4-spot").body);
  EXPECT_EQ(node["traits"], (Json{"family=NC", "spot"}));
  EXPECT_DOUBLE_EQ(node["gpu_price"], 0.2175);
}

}  // namespace
}  // namespace berth::test::workload_classes_test
