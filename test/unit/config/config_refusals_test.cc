// SPDX-License-Identifier: Apache-2.0
//
// What is refused, and that file, line and path are named.
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "config/load.h"

namespace berth::config_refusals_test {
namespace {

struct Refusal {
  const char* description;
  const char* text;
  const char* start;  // of the message
};

// Names of tests must not change from run to run, as printed pointers would.
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.description; }

class ConfigRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(ConfigRefusal, NamesFileLineAndPath) {
  const auto config = LoadConfig(GetParam().text, "berth.yaml");
  ASSERT_FALSE(config.has_value());
  const Error& error = config.error();
  EXPECT_EQ(error.code, Errc::kInvalidArgument);
  EXPECT_TRUE(error.message.starts_with(GetParam().start)) << error.message;
  EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
}

constexpr Refusal kUnknownKeys[] = {
    {"TopLevel", "profile: best-fit\nprofil: x",
     "berth.yaml:2: profil: unknown key, did you mean profile? want one of"},
    {"Profiles", "profiles:\n- name: x\n  score: []", "berth.yaml:3: profiles[0].score: unknown"},
    {"Scorers", "profiles:\n- name: x\n  scorers:\n  - name: best-fit\n    w: 1",
     "berth.yaml:5: profiles[0].scorers[0].w: unknown key"},
    {"Traits", "traits:\n- name: a\n- nam: b", "berth.yaml:3: traits[1].nam: unknown"},
    {"Resources", "resources:\n- name: x\n  kind: y", "berth.yaml:3: resources[0].kind: unknown"},
    {"MachineTypes", "machineTypes:\n- name: p5.4xlarge\n  price: 1",
     "berth.yaml:3: machineTypes[0].price: unknown key, want one of gpus, memoryMib, model, name, "
     "nvmeGib, parts, pricePerHour, rdma"},
    {"NodeLabels", "nodeLabels:\n  model: x", "berth.yaml:2: nodeLabels.model: unknown key"},
    {"Topology", "topology:\n  level: []", "berth.yaml:2: topology.level: unknown key"},
    {"TopologyLevel", "topology:\n  levels:\n  - label: x",
     "berth.yaml:3: topology.levels[0].label: unknown key"},
    {"RequestMixOnceASetting", "\nrequestMix: []",
     "berth.yaml:2: requestMix: is no setting any more, remove it: Berth learns the mix from"},
    {"LearningOnceASetting", "learning: {halfLifePods: 5}",
     "berth.yaml:1: learning: is no setting any more, remove it: only berth-replay reads it"},
    {"ExpectedWasteOnceASetting", "expectedWaste:\n  fills: 1",
     "berth.yaml:1: expectedWaste: is no setting any more, remove it: only berth-replay reads it"},
    {"Server", "server:\n  port: 1", "berth.yaml:2: server.port: unknown key"},
    {"Tls", "server:\n  tls:\n    cert: x", "berth.yaml:3: server.tls.cert: unknown key"},
    {"LeaderElection", "leaderElection:\n  lease: x",
     "berth.yaml:2: leaderElection.lease: unknown"},
    {"AnotherCase", "\nLogLevel: info", "berth.yaml:2: LogLevel: unknown key"},
    {"NotAText", "[1]: 2", "berth.yaml:1: (not a text): unknown key"},
};
INSTANTIATE_TEST_SUITE_P(OfAnUnknownKey, ConfigRefusal, testing::ValuesIn(kUnknownKeys),
                         [](const auto& tested) { return tested.param.description; });

constexpr Refusal kTypes[] = {
    {"ListForTheFile", "- a", "berth.yaml:1: want a mapping"},
    {"TextForTheFile", "hello", "berth.yaml:1: want a mapping"},
    {"ListForAText", "\nprofile: [a]", "berth.yaml:2: profile: want a text, got a list or a"},
    {"MappingForAText", "nodeLabels: {gpuModel: {a: b}}",
     "berth.yaml:1: nodeLabels.gpuModel: want"},
    {"TextForAMapping", "server: fast", "berth.yaml:1: server: want a mapping"},
    {"TextForAList", "traits: all", "berth.yaml:1: traits: want a list"},
    {"MappingForAList", "profiles: {a: b}", "berth.yaml:1: profiles: want a list"},
    {"TextInAListOfMappings", "resources:\n- x", "berth.yaml:2: resources[0]: want a mapping"},
    {"ListForAnInteger", "server:\n  threads: []", "berth.yaml:2: server.threads: want an integer"},
    {"TextForAnInteger", "server:\n  threads: many",
     "berth.yaml:2: server.threads: want an integer from 1 to 64, got \"many\""},
    {"FractionForAnInteger", "reservationSeconds: 1.5",
     "berth.yaml:1: reservationSeconds: want an"},
    {"HexForAnInteger", "reservationSeconds: 0x10",
     "berth.yaml:1: reservationSeconds: want an int"},
    {"TextForLeaderElection", "\nleaderElection: true", "berth.yaml:2: leaderElection: want a map"},
    {"WordForAFlag", "leaderElection:\n  enabled: yes",
     "berth.yaml:2: leaderElection.enabled: want true or false, got \"yes\""},
    {"ListForAFlag", "leaderElection:\n  enabled: [true]",
     "berth.yaml:2: leaderElection.enabled: want true or false, got a list"},
    {"ListForALeaseName", "leaderElection:\n  name: []",
     "berth.yaml:2: leaderElection.name: want a text, got a list"},
    {"TextForLeaseSeconds", "leaderElection: {leaseSeconds: long}",
     "berth.yaml:1: leaderElection.leaseSeconds: want an integer from 5 to 300, got \"long\""},
    {"TextForAPrice", "machineTypes:\n- name: p5.4xlarge\n  pricePerHour: cheap",
     "berth.yaml:3: machineTypes[0].pricePerHour: want a number from 0 to 1e+09, got \"cheap\""},
    {"WordForRdma", "machineTypes: [{name: p5.4xlarge, rdma: yes}]",
     "berth.yaml:1: machineTypes[0].rdma: want true or false, got \"yes\""},
    {"ListForAModel", "machineTypes: [{name: p5.4xlarge, model: [a]}]",
     "berth.yaml:1: machineTypes[0].model: want a text, got a list"},
    {"TextForATextList", "traits:\n- labels: A100", "berth.yaml:2: traits[0].labels: want a"},
    {"ListInATextList", "traits:\n- labels: [a, [b]]", "berth.yaml:2: traits[0].labels[1]: w"},
};
INSTANTIATE_TEST_SUITE_P(OfAWrongType, ConfigRefusal, testing::ValuesIn(kTypes),
                         [](const auto& tested) { return tested.param.description; });

constexpr Refusal kRanges[] = {
    {"ThreadsBelow", "server: {threads: 0}",
     "berth.yaml:1: server.threads: want an integer from 1"},
    {"ThreadsAbove", "server: {threads: 65}", "berth.yaml:1: server.threads: want an integer from"},
    {"BodyBelow", "server: {maxBodyBytes: 1023}", "berth.yaml:1: server.maxBodyBytes: want an in"},
    {"BodyAbove", "server: {maxBodyBytes: 4294967297}", "berth.yaml:1: server.maxBodyBytes: want"},
    {"DrainBelow", "server: {drainSeconds: -1}", "berth.yaml:1: server.drainSeconds: want an int"},
    {"DrainAbove", "server: {drainSeconds: 3601}", "berth.yaml:1: server.drainSeconds: want an"},
    {"ReservationBelow", "reservationSeconds: 0", "berth.yaml:1: reservationSeconds: want an int"},
    {"ReservationAbove", "reservationSeconds: 3601", "berth.yaml:1: reservationSeconds: want an i"},
    {"BeyondSixtyFourBits", "reservationSeconds: 99999999999999999999",
     "berth.yaml:1: reservationSeconds: want an integer"},
    {"LeaseBelow", "leaderElection: {leaseSeconds: 4}",
     "berth.yaml:1: leaderElection.leaseSeconds: want an integer from 5 to 300"},
    {"LeaseAbove", "leaderElection: {leaseSeconds: 301}",
     "berth.yaml:1: leaderElection.leaseSeconds: want an integer from 5 to 300"},
    {"LeaseNameEmpty", "leaderElection:\n  name: \"\"",
     "berth.yaml:2: leaderElection.name: want a DNS-1123 name, got \"\""},
    {"GangConventionUnknown", "gangs:\n  conventions: [berth, slurm]",
     "berth.yaml:2: gangs.conventions[1]: want one of berth coscheduling kubernetes volcano "
     "koordinator labels kueue kai grove, got \"slurm\""},
    {"GangControllerUnknown", "gangs:\n  controllers: [job, pytorchjob]",
     "berth.yaml:2: gangs.controllers[1]: want one of jobset lws job, got \"pytorchjob\""},
    {"HoldTooShort", "gangs: {holdSeconds: 2}",
     "berth.yaml:1: gangs.holdSeconds: want an integer from 5 to 3600"},
    {"LeaseNameUpperCase", "leaderElection: {name: Berth}",
     "berth.yaml:1: leaderElection.name: want"},
    {"LeaseNameWithSlash", "leaderElection: {name: a/b}",
     "berth.yaml:1: leaderElection.name: want"},
    {"LeaseNameDashFirst", "leaderElection: {name: -a}", "berth.yaml:1: leaderElection.name: want"},
    {"LeaseNameDashLast", "leaderElection: {name: a-}", "berth.yaml:1: leaderElection.name: want"},
    {"LeaseNameDotDash", "leaderElection: {name: a.-b}", "berth.yaml:1: leaderElection.name: want"},
    {"LeaseNameDashDot", "leaderElection: {name: a-.b}", "berth.yaml:1: leaderElection.name: want"},
    {"LeaseNamespaceWithDot", "leaderElection:\n  namespace: a.b",
     "berth.yaml:2: leaderElection.namespace: want a DNS-1123 label or \"\", got \"a.b\""},
    {"LeaseNamespaceTooLong",
     "leaderElection: {namespace: "
     "a123456789b123456789c123456789d123456789e123456789f123456789g123}",
     "berth.yaml:1: leaderElection.namespace: want a DNS-1123 label"},
    {"ScorerWeight", "profiles: [{name: x, scorers: [{name: best-fit, weight: 1001}]}]",
     "berth.yaml:1: profiles[0].scorers[0].weight: want an integer from 1 to 1000"},
    {"MachineGpusBelow", "machineTypes:\n- name: x\n  gpus: 0",
     "berth.yaml:3: machineTypes[0].gpus: want an integer from 1 to 64, got \"0\""},
    {"MachineGpusAbove", "machineTypes: [{name: x, gpus: 65}]",
     "berth.yaml:1: machineTypes[0].gpus: want an integer from 1 to 64, got \"65\""},
    {"MachineMemoryBelow", "machineTypes: [{name: x, gpus: 1, memoryMib: 0}]",
     "berth.yaml:1: machineTypes[0].memoryMib: want an integer from 1 to"},
    {"MachinePartsBelow", "machineTypes: [{name: x, gpus: 1, parts: 0}]",
     "berth.yaml:1: machineTypes[0].parts: want an integer from 1 to 64"},
    {"PriceNegative", "machineTypes:\n- name: p5.4xlarge\n- {name: x, gpus: 1, pricePerHour: -1}",
     "berth.yaml:3: machineTypes[1].pricePerHour: want a number from 0 to 1e+09, got \"-1\""},
    {"PriceInfinite", "machineTypes: [{name: x, gpus: 1, pricePerHour: .inf}]",
     "berth.yaml:1: machineTypes[0].pricePerHour: want a number from 0"},
    {"LogLevel", "logLevel: loud", "berth.yaml:1: logLevel: want one of debug, info, warn, error"},
    {"ClusterName", "clusterName: \"a\\nb\"",
     "berth.yaml:1: clusterName: want one line of at most 63 characters, got 3 with a control "
     "character"},
    {"ResourceOfKubernetes", "resources: [{name: cpu, meaning: whole-gpus}]",
     "berth.yaml:1: resources[0].name: want a resource of GPUs, got \"cpu\", which is Kubernetes' "
     "own"},
    {"ResourceOfHugePages", "resources: [{name: hugepages-2Mi, meaning: whole-gpus}]",
     "berth.yaml:1: resources[0].name: want a resource of GPUs, got \"hugepages-2Mi\""},
    {"ResourceWithABlank", "resources: [{name: a b, meaning: whole-gpus}]",
     "berth.yaml:1: resources[0].name: want a name without blanks, got \"a b\""},
    {"TraitThatIsBuiltIn", "traits: [{name: rdma, labels: [a=b]}]",
     "berth.yaml:1: traits[0].name: want a name of your own, got \"rdma\", which is built in"},
    {"NamespaceOfMoves", "makeRoom: {namespaces: [Bad NS]}",
     "berth.yaml:1: makeRoom.namespaces[0]: want a DNS-1123 label, got \"Bad NS\""},
    {"NamespaceOfMovesEmpty", "makeRoom: {namespaces: [\"\"]}",
     "berth.yaml:1: makeRoom.namespaces[0]: want a DNS-1123 label, got \"\""},
    {"ClusterNameTooLong",
     "clusterName: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
     "berth.yaml:1: clusterName: want one line of at most 63 characters, got 64"},
    {"Meaning", "resources: [{name: x, meaning: y}]",
     "berth.yaml:1: resources[0].meaning: want one"},
    {"Devices", "profiles: [{name: x, devices: y}]", "berth.yaml:1: profiles[0].devices: want one"},
    {"Ties", "profiles: [{name: x, ties: y}]",
     "berth.yaml:1: profiles[0].ties: want one of equal,"},
    {"ApiVersion", "apiVersion: v1", "berth.yaml:1: apiVersion: want one of berth.dev/v1alpha1"},
    {"Kind", "kind: Pod", "berth.yaml:1: kind: want one of BerthConfiguration, got \"Pod\""},
};
INSTANTIATE_TEST_SUITE_P(OfAValueOutOfRange, ConfigRefusal, testing::ValuesIn(kRanges),
                         [](const auto& tested) { return tested.param.description; });

constexpr Refusal kTogether[] = {
    {"DuplicateKey", "logLevel: info\nlogLevel: debug", "berth.yaml:2: logLevel: the key is there"},
    {"DuplicateNestedKey", "server:\n  threads: 1\n  listen: a\n  threads: 2",
     "berth.yaml:4: server.threads: the key is there twice"},
    {"UnknownProfile", "\n\nprofile: wurst", "berth.yaml:3: profile: want one of"},
    {"UnknownScorer", "profiles:\n- name: x\n  scorers:\n  - name: wurst",
     "berth.yaml:4: profiles[0].scorers[0]"},
    {"ScorerTwice", "profiles:\n- name: x\n  scorers:\n  - name: best-fit\n  - name: best-fit",
     "berth.yaml:5: profiles[0].scorers[1]"},
    {"ProfileWithoutName", "profiles:\n- scorers: []",
     "berth.yaml:2: profiles[0].name: want a name"},
    {"ProfileTwice", "profiles:\n- name: x\n- name: x", "berth.yaml:3: profiles[1].name: \"x\" is"},
    {"ResourceWithoutName", "resources:\n- unit: gpu", "berth.yaml:2: resources[0].name: want a r"},
    {"ResourceTwice", "resources:\n- name: x\n- name: x", "berth.yaml:3: resources[1].name: \"x\""},
    {"MachineTypeWithoutName", "machineTypes:\n- gpus: 1",
     "berth.yaml:2: machineTypes[0].name: want the name of a machine type, got \"\""},
    {"MachineTypeTwice", "machineTypes:\n- {name: x, gpus: 1}\n- {name: x, gpus: 2}",
     "berth.yaml:3: machineTypes[1].name: \"x\" is there twice"},
    {"MachineTypeWithoutGpus", "machineTypes:\n- name: p5.48xlarg\n  pricePerHour: 9",
     "berth.yaml:2: machineTypes[0].gpus: want the number of GPUs of \"p5.48xlarg\", which the "
     "catalogue does not know, got none"},
    {"UnitOfWhatIsIgnored", "resources:\n- name: x\n  meaning: ignored\n  unit: MiB",
     "berth.yaml:4: resources[0].unit"},
    {"UnitOfAnotherMeaning", "resources:\n- name: x\n  unit: MiB",
     "berth.yaml:3: resources[0].unit"},
    {"UnknownPreset", "topology:\n  levels:\n  - preset: gke\n  - preset: azure",
     "berth.yaml:4: topology.levels[1]: preset: want one of coreweave, eks, gke,"},
    {"PresetAndLabels", "topology:\n  levels:\n  - {preset: gke, labels: [x]}",
     "berth.yaml:3: topology.levels[0]: want preset, or nodeLabel or labels"},
    {"PresetWithName", "topology: {levels: [{preset: gke, name: x}]}",
     "berth.yaml:1: topology.levels[0]: want preset, or nodeLabel or labels"},
    {"LevelWithoutLabels", "topology:\n  levels:\n  - name: rack",
     "berth.yaml:3: topology.levels[0]: want preset, or nodeLabel or labels"},
    {"PresetTwice", "topology:\n  levels:\n  - preset: gke\n  - preset: gke",
     "berth.yaml:4: topology.levels[1]: name: \"block\" is there twice"},
    {"LabelOfTwoLevels",
     "topology:\n  levels:\n  - preset: gke\n  - {name: x, labels: [y]}\n"
     "  - {name: z, labels: [q, y]}",
     "berth.yaml:5: topology.levels[2]: labels: \"y\" is there twice"},
    {"CertificateWithoutKey", "server:\n  tls:\n    certificateFile: a",
     "berth.yaml:3: server.tls: want certificateFile and keyFile, got only one"},
    {"KeyWithoutCertificate", "server:\n  tls: {keyFile: a}",
     "berth.yaml:2: server.tls: want cert"},
    {"ClientCaAlone", "server:\n  tls:\n    clientCaFile: a",
     "berth.yaml:3: server.tls.clientCaFile: want certificateFile with it"},
    {"TwoDocuments", "logLevel: info\n---\nlogLevel: debug", "berth.yaml:3: want one document"},
};
INSTANTIATE_TEST_SUITE_P(OfWhatDoesNotGoTogether, ConfigRefusal, testing::ValuesIn(kTogether),
                         [](const auto& tested) { return tested.param.description; });

constexpr Refusal kNotYaml[] = {
    {"OpenBracket", "a: [1, 2\nb: 3", "berth.yaml:"},
    {"BadIndent", "a: 1\n  b: 2", "berth.yaml:2: not YAML: "},
    {"Tab", "server:\n\tthreads: 1", "berth.yaml:2: not YAML: "},
    {"OpenQuote", "profile: \"x", "berth.yaml:1: not YAML: "},
    {"UnknownAlias", "profile: *nobody", "berth.yaml:1: not YAML: "},
};
INSTANTIATE_TEST_SUITE_P(OfWhatIsNotYaml, ConfigRefusal, testing::ValuesIn(kNotYaml),
                         [](const auto& tested) { return tested.param.description; });

TEST(ConfigRefusals, ABombOfAliasesIsRefusedAtOnce) {
  // Written out, the last list has 10^12 items.
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int n = 0; n < 9; ++n) text += ", " + before;
    text += "]\n";
  }
  for (const char* use : {"", "traits: *a11\n", "traits: [{labels: *a11}]\n", "profile: *a11\n",
                          "server: *a11\n", "*a11 : 1\n"}) {
    const auto config = LoadConfig(text + use, "bomb");
    ASSERT_FALSE(config) << use;
    EXPECT_LT(config.error().message.size(), 400u) << use;
  }
}

TEST(ConfigRefusals, NestingWithoutEndIsRefused) {
  for (const std::size_t depth : {1000u, 200'000u}) {
    for (const char c : {'[', '{', '-'}) {
      std::string text(depth, c);
      if (c == '-') {
        text.clear();
        for (std::size_t i = 0; i < depth; ++i) text += "- ";
      }
      const auto config = LoadConfig(text, "deep");
      ASSERT_FALSE(config);
      EXPECT_TRUE(config.error().message.starts_with("deep:")) << config.error().message;
    }
  }
}

TEST(ConfigRefusals, BytesThatAreNoTextAreRefusedOrReadButNeverACrash) {
  for (const std::string_view text :
       {std::string_view("\0\0\0", 3), std::string_view("\xff\xfe"), std::string_view("a: \xc3"),
        std::string_view("\x1b[0m: x"), std::string_view("!!binary x: y"),
        std::string_view("? {a: b}\n: c"), std::string_view("<<: {profile: best-fit}")}) {
    const auto config = LoadConfig(std::string(text), "odd");
    EXPECT_TRUE(config || config.error().message.starts_with("odd")) << config.error().message;
  }
}

}  // namespace
}  // namespace berth::config_refusals_test
