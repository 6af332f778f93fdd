// SPDX-License-Identifier: Apache-2.0
//
// What of a new configuration a running service takes over, and what it names as waiting.
#include "config/load.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "config/config.h"

namespace berth::reload_test {
namespace {

Config Load(const std::string& text) {
  auto config = LoadConfig(text, "test.yaml");
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config ? *std::move(config) : Config();
}

using Paths = std::vector<std::string>;

TEST(Reload, WhatDecidesIsTakenOverWithoutARestart) {
  for (const char* text :
       {"profile: best-fit", "profiles: [{name: x}]\nprofile: x", "reservationSeconds: 7",
        "nodesToScore: 7", "logLevel: debug", "gpuNodes: {guard: refuse}",
        "workloadClasses: [{name: a}]",
        "earmarks: {reserveAfterMinutes: 7, reserveIdleMinutes: 8, reserveWithinMinutes: 9}"}) {
    const Config wanted = Load(text);
    ASSERT_NE(wanted, DefaultConfig());
    EXPECT_EQ(Reloaded(DefaultConfig(), wanted), wanted) << text;
    EXPECT_EQ(NeedsRestart(DefaultConfig(), wanted), Paths()) << text;
  }
}

TEST(Reload, WhatNeedsARestartIsNamedAndLeftAlone) {
  const std::pair<const char*, Paths> cases[] = {
      {"server: {threads: 3, listen: \":1\"}", {"server.listen", "server.threads"}},
      {"server: {tls: {certificateFile: a, keyFile: b}}",
       {"server.tls.certificateFile", "server.tls.keyFile"}},
      {"resources: []", {"resources"}},
      {"nodeLabels: {gpuModel: x}", {"nodeLabels.gpuModel"}},
      {"machineTypes: [{name: x, gpus: 1}]", {"machineTypes"}},
      {"topology: {levels: [{preset: gke}]}", {"topology.levels"}},
      {"dra: {chooseDevices: true}", {"dra.chooseDevices"}},
      {"dra: {preempt: true}", {"dra.preempt"}},
      {"hami: {giveDevices: true}", {"hami.giveDevices"}},
      {"gpuNodes: {conditions: [Bad]}", {"gpuNodes.conditions"}},
      {"traits: [{name: a, resource: x}]", {"traits"}},
      {"leaderElection: {enabled: false}", {"leaderElection.enabled"}},
      {"profile: best-fit\nnodeLabels: {gpuMemoryMib: x}", {"nodeLabels.gpuMemoryMib"}}};
  for (const auto& [text, paths] : cases) {
    const Config wanted = Load(text);
    EXPECT_EQ(NeedsRestart(DefaultConfig(), wanted), paths) << text;
    Config expected = DefaultConfig();
    expected.profile = wanted.profile;
    EXPECT_EQ(Reloaded(DefaultConfig(), wanted), expected) << text;
  }
}

TEST(Reload, EverySettingIsTakenOverOrNamed) {
  // A configuration that differs from the default in every line that is printed.
  const Config wanted = Load(R"(
profile: mine
profiles: [{name: mine}]
resources: []
nodeLabels: {gpuModel: a, gpuMemoryMib: b}
machineTypes: [{name: x, gpus: 1}]
topology: {levels: []}
dra: {chooseDevices: true, preempt: true}
hami: {giveDevices: true}
server: {listen: ":1", debugListen: ":2", threads: 1, maxBodyBytes: 1024, drainSeconds: 0,
         tls: {certificateFile: a, keyFile: b, clientCaFile: c}}
leaderElection: {enabled: false, namespace: a, name: b, leaseSeconds: 5}
reservationSeconds: 1
nodesToScore: 1
logLevel: debug
)");
  const Paths waiting = NeedsRestart(DefaultConfig(), wanted);
  EXPECT_EQ(waiting.size(), 1u + 2u + 1u + 1u + 2u + 1u + 8u + 4u);
  EXPECT_EQ(NeedsRestart(wanted, DefaultConfig()), waiting);
  EXPECT_EQ(NeedsRestart(wanted, wanted), Paths());
}

TEST(Reload, OddTextsAreComparedToo) {
  for (const char* text : {"\xff\xfe", "\x01", "two\nlines", "a: b", "*alias", "\xef\xbf\xbf"}) {
    Config wanted = DefaultConfig();
    wanted.server.listen = text;
    wanted.node_labels.gpu_model = text;
    EXPECT_EQ(NeedsRestart(DefaultConfig(), wanted),
              (Paths{"nodeLabels.gpuModel", "server.listen"}));
    EXPECT_EQ(NeedsRestart(wanted, wanted), Paths());
  }
}

TEST(Reload, ThePolicyIsTheChosenProfileAndThoseOfClasses) {
  const Config now = Load("profile: best-fit");
  EXPECT_TRUE(SamePolicy(now, Load("profile: best-fit\nlogLevel: debug\nprofiles: [{name: x}]")));
  EXPECT_FALSE(SamePolicy(now, Load("profile: gpu-packing")));
  EXPECT_FALSE(SamePolicy(now, Load("profile: best-fit\nprofiles: [{name: best-fit}]")));
  constexpr const char* kClass = "workloadClasses: [{name: a, profile: mine}]\n";
  const Config mine = Load(kClass + std::string("profiles: [{name: mine}]"));
  EXPECT_TRUE(SamePolicy(mine, mine));
  EXPECT_FALSE(
      SamePolicy(mine, Load(kClass + std::string("profiles: [{name: mine, ties: first}]"))));
}

TEST(Reload, ClassesAreTakenOverUnlessTraitsChangeWithThem) {
  const Config now = Load("workloadClasses: [{name: a, require: [spot]}]");
  const Config wanted = Load("workloadClasses: [{name: b}]");
  EXPECT_EQ(Reloaded(now, wanted).workload_classes, wanted.workload_classes);
  EXPECT_EQ(NeedsRestart(now, wanted), Paths());
  const Config traits =
      Load("traits: [{name: fast, labels: [x]}]\nworkloadClasses: [{name: b, require: [fast]}]");
  EXPECT_EQ(Reloaded(now, traits).workload_classes, now.workload_classes);
  EXPECT_EQ(NeedsRestart(now, traits), (Paths{"traits", "workloadClasses"}));
}

TEST(Reload, AProfileThatAClassStillNamesMayGo) {
  const Config now =
      Load("workloadClasses: [{name: a, profile: mine}]\nprofiles: [{name: mine, ties: first}]");
  const Config next = Reloaded(now, Load("traits: [{name: fast, labels: [x]}]"));
  EXPECT_EQ(next.workload_classes.front().profile, "mine");
  EXPECT_TRUE(ClassProfiles(next).empty()) << "its pods are placed as all others";
}

}  // namespace
}  // namespace berth::reload_test
