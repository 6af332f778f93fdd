// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <string>

#include <gtest/gtest.h>

#include "config/model_constants.h"
#include "config/print.h"

namespace berth::load_config_test {
namespace {

constexpr char kFull[] = R"(# every field
apiVersion: berth.dev/v1alpha1
kind: BerthConfiguration
profile: mine
profiles:
  - name: mine
    scorers:
      - {name: best-fit, weight: 3}
      - name: gpu-packing
    devices: best-score
    ties: first
  - name: first-fit
    devices: random
requestMix:
  - {cpu: 1500m, gpuMilli: 250, models: [T4, A100], weight: 2.5}
  - {cpu: 4, gpus: 8, weight: 1e-3}
  - weight: 0.1
learning: {halfLifePods: 500, longestEpochPods: 50}
expectedWaste: {fills: 64, patience: 20, settledPatience: 3, optimismGpus: 0, coverage: 0.5,
                fragmentation: 0.5, settledFragmentation: 2,
                scarcityExponent: 2.5, scarcityLimitGpus: 0, sharePriceGpus: 3, modelPriceGpus: 1,
                bestFitGpus: 0.125, settledBestFitGpus: 0.75}
resources:
  - {name: my/gpu, meaning: whole-gpus, unit: gpu}
  - {name: "my/share", meaning: share-compute, unit: percent}
  - {name: my/memory, meaning: share-memory, unit: GiB}
nodeLabels: {gpuModel: my/model, gpuMemoryMib: my/memory-mib}
machineTypes:
  - {name: p5.48xlarge, pricePerHour: 98.32}
  - {name: hq-l40s, gpus: 4, model: NVIDIA-L40S, memoryMib: 46068, parts: 2, rdma: false, nvmeGib: 0,
     pricePerHour: 0}
topology:
  levels:
    - preset: zone-region
    - {name: row, labels: [my/row, my/old-row]}
    - nodeLabel: my/rack
    - {name: chassis, nodeLabel: my/chassis}
    - labels: [my/tray, my/sled]
dra: {chooseDevices: true, preempt: true}
hami: {giveDevices: true}
server:
  listen: "[::1]:0"
  debugListen: "off"
  threads: 64
  maxBodyBytes: 4294967296
  drainSeconds: 0
  tls: {certificateFile: /tls/tls.crt, keyFile: /tls/tls.key, clientCaFile: "C:\\\"ca\" #1.crt"}
leaderElection: {enabled: false, namespace: my-system, name: my.berth-2, leaseSeconds: 300}
reservationSeconds: 3600
nodesToScore: 0
logLevel: debug
clusterName: "prod: eu"
)";

Config Load(const std::string& text) {
  auto config = LoadConfig(text, "test.yaml");
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config ? *std::move(config) : Config();
}

TEST(LoadConfig, NothingWrittenIsTheDefault) {
  for (const char* text : {"", "\n", "# only a comment\n", "{}", "---\n", "null",
                           "apiVersion: berth.dev/v1alpha1\nkind: BerthConfiguration\n"}) {
    EXPECT_EQ(Load(text), DefaultConfig()) << text;
  }
}

TEST(LoadConfig, EveryFieldIsRead) {
  Config expected = DefaultConfig();
  expected.profile = "mine";
  expected.profiles = {
      {"mine", {{"best-fit", 3}, {"gpu-packing", 1}}, DeviceRule::kBestScore, TieRule::kFirst},
      {"first-fit", {}, DeviceRule::kRandom, TieRule::kEqual}};
  expected.request_mix = {
      {1500, 0, 250, {"A100", "T4"}, 2.5}, {4000, 8, 0, {}, 1e-3}, {0, 0, 0, {}, 0.1}};
  expected.learning = {500, 50};
  expected.expected_waste = {64,
                             20,
                             3,
                             0,
                             0.5,
                             0.5,
                             2,
                             2.5,
                             0,
                             3,
                             1,
                             expected.expected_waste.slot_price,
                             expected.expected_waste.least_slot_price,
                             0.125,
                             0.75};
  expected.resources = {{"my/gpu", ResourceMeaning::kWholeGpus, "gpu"},
                        {"my/share", ResourceMeaning::kShareCompute, "percent"},
                        {"my/memory", ResourceMeaning::kShareMemory, "GiB"}};
  expected.node_labels = {"my/model", "my/memory-mib"};
  expected.machine_types = {{.name = "p5.48xlarge", .price_per_hour = 98.32},
                            {"hq-l40s", 4, "NVIDIA-L40S", 46'068, 2, false, 0, 0.0}};
  expected.topology_levels = {{"region", {"topology.kubernetes.io/region"}},
                              {"zone", {"topology.kubernetes.io/zone"}},
                              {"row", {"my/row", "my/old-row"}},
                              {"my/rack", {"my/rack"}},
                              {"chassis", {"my/chassis"}},
                              {"my/tray", {"my/tray", "my/sled"}}};
  expected.dra.choose_devices = true;
  expected.dra.preempt = true;
  expected.hami.give_devices = true;
  expected.server.listen = "[::1]:0";
  expected.server.debug_listen = "off";
  expected.server.threads = 64;
  expected.server.max_body_bytes = std::int64_t{4} << 30;
  expected.server.drain_seconds = 0;
  expected.server.tls = {"/tls/tls.crt", "/tls/tls.key", "C:\\\"ca\" #1.crt"};
  expected.leader_election = {false, "my-system", "my.berth-2", 300};
  expected.reservation_seconds = 3600;
  expected.nodes_to_score = 0;
  expected.log_level = "debug";
  expected.cluster_name = "prod: eu";
  EXPECT_EQ(Load(kFull), expected);
}

TEST(LoadConfig, APrintedConfigurationReadsBackToAnEqualOne) {
  EXPECT_EQ(Load(PrintConfig(DefaultConfig())), DefaultConfig());
  const Config full = Load(kFull);
  EXPECT_EQ(Load(PrintWithConstants(full)), full);
  EXPECT_EQ(PrintConfig(Load(PrintConfig(full))), PrintConfig(full));
}

TEST(ModelConstants, AreResetAndNamed) {
  Config full = Load(kFull);
  EXPECT_EQ(
      ResetModelConstants(full),
      (std::vector<std::string>{"learning.halfLifePods", "learning.longestEpochPods",
                                "expectedWaste.settledPatience", "expectedWaste.optimismGpus",
                                "expectedWaste.settledFragmentation",
                                "expectedWaste.scarcityExponent", "expectedWaste.scarcityLimitGpus",
                                "expectedWaste.sharePriceGpus", "expectedWaste.modelPriceGpus",
                                "expectedWaste.bestFitGpus", "expectedWaste.settledBestFitGpus"}));
  EXPECT_EQ(full.learning, LearningParameters());
  EXPECT_EQ(full.expected_waste.optimism, WasteParameters().optimism);
  EXPECT_EQ(full.expected_waste.patience, 20) << "a setting of the service";
  EXPECT_EQ(Load(PrintConfig(full)), full) << "they are not printed";
  EXPECT_TRUE(ResetModelConstants(full).empty());
}

TEST(LoadConfig, PrintsOnlyTheGivenFieldsOfAMachineType) {
  const std::string text = PrintConfig(Load("machineTypes: [{name: p5.48xlarge, rdma: false}]"));
  EXPECT_NE(text.find("machineTypes:\n  - name: p5.48xlarge\n    rdma: false\ntopology:"),
            std::string::npos)
      << text;
  EXPECT_EQ(Load("machineTypes: [{name: p5.48xlarge, rdma: null, gpus: ~}]").machine_types,
            (std::vector<MachineTypeSpec>{{.name = "p5.48xlarge"}}));
}

TEST(LoadConfig, TextsThatLookLikeSomethingElseSurvivePrinting) {
  for (const char* text : {"", "null", "~", "true", "12", "a: b", "- x", "#no", "\"q\"", " edge ",
                           "two\nlines", "tab\t", "é€", "*alias", "&anchor", "{}", "%"}) {
    Config config = DefaultConfig();
    config.node_labels.gpu_model = text;
    config.request_mix.resize(1);
    config.request_mix[0].models = {text};
    const auto read = LoadConfig(PrintConfig(config), "printed");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, config) << text;
  }
}

TEST(LoadConfig, WeightsSurvivePrintingToTheLastBit) {
  for (const double weight : {0.1, 1e-300, 1.7976931348623157e308, 1.0 / 3, 13.3, 5e-324}) {
    Config config = DefaultConfig();
    config.request_mix.resize(1);
    config.request_mix[0].weight = weight;
    EXPECT_EQ(Load(PrintConfig(config)).request_mix[0].weight, weight);
  }
}

TEST(LoadConfig, AListThatIsWrittenReplacesTheDefaultAsAWhole) {
  EXPECT_EQ(Load("requestMix: [{gpus: 1}]").request_mix.size(), 1u);
  EXPECT_EQ(Load("resources: []").resources.size(), 0u);
  EXPECT_EQ(Load("resources: [{name: amd.com/gpu, meaning: ignored}]").resources,
            (std::vector<ResourceRule>{{"amd.com/gpu", ResourceMeaning::kIgnored, "gpu"}}));
  EXPECT_EQ(Load("profiles: []\nresources: null").resources, DefaultConfig().resources);
}

TEST(LoadConfig, TheLevelsOfTheTopologyHaveADefaultAndCanBeNone) {
  EXPECT_EQ(DefaultConfig().topology_levels, DefaultTopologyLevels());
  EXPECT_EQ(Load("topology: {}"), DefaultConfig());
  EXPECT_TRUE(Load("topology: {levels: []}").topology_levels.empty());
  for (const TopologyPreset& preset : TopologyPresets()) {
    const Config config = Load("topology: {levels: [{preset: " + preset.name + "}]}");
    EXPECT_EQ(config.topology_levels, preset.levels);
    EXPECT_EQ(Load(PrintConfig(config)), config);
  }
}

TEST(LoadConfig, TheMixIsLearnedUnlessOneIsWritten) {
  EXPECT_TRUE(DefaultConfig().request_mix.empty());
  EXPECT_EQ(Load("requestMix: []"), DefaultConfig());
  EXPECT_EQ(ChosenProfile(DefaultConfig()).name, "expected-waste");
}

TEST(LoadConfig, AnOwnProfileMayReplaceABuiltInOne) {
  const Config config =
      Load("profile: best-fit\nprofiles: [{name: best-fit, scorers: [{name: dot-product}]}]");
  EXPECT_EQ(ChosenProfile(config).scorers.at(0).name, "dot-product");
  EXPECT_EQ(ChosenProfile(Load("profile: best-fit")).scorers.at(0).name, "best-fit");
}

TEST(LoadConfig, TheMixIsScaledToASumOfOne) {
  const RequestMix mix = MixOf(Load("requestMix: [{gpus: 1, weight: 3}, {gpuMilli: 5}]"));
  ASSERT_EQ(mix.size(), 2u);
  EXPECT_DOUBLE_EQ(mix[0].weight, 0.75);
  EXPECT_DOUBLE_EQ(mix[1].weight, 0.25);
  EXPECT_EQ(mix[0].shape.gpus, GpuAsk(WholeGpus{1}));
  EXPECT_EQ(mix[1].shape.gpus, GpuAsk(GpuShare{5, 0}));
}

TEST(LoadConfig, AliasesAreFollowed) {
  const Config config = Load("requestMix:\n- &one {gpus: 1}\n- *one\n- *one\n");
  EXPECT_EQ(config.request_mix, std::vector<MixEntry>(3, MixEntry{0, 1, 0, {}, 1}));
}

TEST(LoadConfig, AFileThatIsNotThereIsNamed) {
  const auto config = LoadConfigFile("/no/such/berth.yaml");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Errc::kNotFound);
  EXPECT_EQ(config.error().message,
            "/no/such/berth.yaml: cannot be read: No such file or directory");
}

TEST(LoadConfig, AFolderIsNotAFile) {
  const auto config = LoadConfigFile("/");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Errc::kNotFound);
  EXPECT_EQ(config.error().message, "/: cannot be read: Is a directory");
}

}  // namespace
}  // namespace berth::load_config_test
