// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <string>

#include <gtest/gtest.h>

#include "config/config.h"

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
  EXPECT_EQ(Load(PrintConfig(full)), full);
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
    WorkloadClass workload;
    workload.name = "c";
    workload.namespaces = {text};
    config.workload_classes = {workload};
    const auto read = LoadConfig(PrintConfig(config), "printed");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, config) << text;
  }
}

TEST(LoadConfig, NumbersSurvivePrintingToTheLastBit) {
  for (const double price : {0.1, 1e-300, 1e9, 1.0 / 3, 13.3, 5e-324}) {
    Config config = DefaultConfig();
    config.machine_types = {{.name = "p5.48xlarge", .price_per_hour = price}};
    EXPECT_EQ(Load(PrintConfig(config)).machine_types[0].price_per_hour, price);
  }
}

TEST(LoadConfig, AListThatIsWrittenReplacesTheDefaultAsAWhole) {
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

TEST(LoadConfig, TheTypicalMixHasASumOfOne) {
  double sum = 0;
  for (const RequestClass& entry : TypicalMix()) sum += entry.weight;
  EXPECT_DOUBLE_EQ(sum, 1);
}

TEST(LoadConfig, AnOwnProfileMayReplaceABuiltInOne) {
  const Config config =
      Load("profile: best-fit\nprofiles: [{name: best-fit, scorers: [{name: dot-product}]}]");
  EXPECT_EQ(ChosenProfile(config).scorers.at(0).name, "dot-product");
  EXPECT_EQ(ChosenProfile(Load("profile: best-fit")).scorers.at(0).name, "best-fit");
}

TEST(LoadConfig, AliasesAreFollowed) {
  const Config config = Load("traits:\n- {name: a, labels: &x [y]}\n- {name: b, labels: *x}\n");
  EXPECT_EQ(config.traits, (std::vector<TraitConfig>{{"a", {"y"}, ""}, {"b", {"y"}, ""}}));
}

}  // namespace
}  // namespace berth::load_config_test
