// SPDX-License-Identifier: Apache-2.0
//
// Everything that is wrong is said at once, and what may be a mistake beside it.
#include "config/config.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/load.h"

namespace berth::validate_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

TEST(CheckConfig, EveryProblemIsNamedAtItsLine) {
  const ConfigFindings found = CheckConfig(R"(profile: wurst
profiles:
- name: ""
  scorers:
  - {name: best-fat, weight: 0}
  - {name: bost-fit}
- nmae: x
server:
  threads: many
  listen: 8888
topology:
  levels:
  - {name: rack}
  - {labels: [x]}
  - {labels: [x]}
gangs: {conventions: [slurm, berth, pbs]}
logLevel: loud
)",
                                           "f");
  EXPECT_THAT(found.problems,
              ElementsAre(StartsWith("f:5: profiles[0].scorers[0].weight: want an integer"),
                          StartsWith("f:7: profiles[1].nmae: unknown key"),
                          StartsWith("f:9: server.threads: want an integer"),
                          StartsWith("f:13: topology.levels[0]: want preset"),
                          StartsWith("f:15: topology.levels[2]: "),
                          StartsWith("f:17: logLevel: want one of"),
                          StartsWith("f:1: profile: want one of"),
                          StartsWith("f:3: profiles[0].name: want a name, got \"\""),
                          StartsWith("f:6: profiles[0].scorers[1].name: "),
                          StartsWith("f:10: server.listen: want HOST:PORT"),
                          StartsWith("f:16: gangs.conventions[0]: want one of berth"),
                          StartsWith("f:16: gangs.conventions[2]: want one of berth")));
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(CheckConfig, TheFirstProblemIsTheErrorOfLoadConfig) {
  for (const char* text : {"profil: x\nserver: fast", "profile: x", "- a", "a: [", "kind: Pod"}) {
    const auto config = LoadConfig(text, "f");
    ASSERT_FALSE(config) << text;
    const ConfigFindings found = CheckConfig(text, "f");
    ASSERT_FALSE(found.problems.empty()) << text;
    EXPECT_EQ(found.problems.front(), config.error().message);
  }
}

TEST(CheckConfig, AnEmptyFileIsNoted) {
  for (const char* text : {"", " \n\t\n"}) {
    const ConfigFindings findings = CheckConfig(text, "b.yaml");
    EXPECT_TRUE(findings.problems.empty());
    ASSERT_EQ(findings.notes.size(), 1U);
    EXPECT_TRUE(findings.notes[0].starts_with("b.yaml:1: empty: ")) << findings.notes[0];
  }
  EXPECT_TRUE(CheckConfig("# the defaults\n", "b.yaml").notes.empty());
}

TEST(CheckConfig, TheNameOfAClusterIsCountedInCharacters) {
  std::string name;
  for (int i = 0; i < 63; ++i) name += "\u4e2d";
  EXPECT_TRUE(CheckConfig("clusterName: " + name, "b.yaml").problems.empty());
  EXPECT_FALSE(CheckConfig("clusterName: " + name + "x", "b.yaml").problems.empty());
}

TEST(CheckConfig, ThousandsOfProblemsEndSomewhere) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "key" + std::to_string(i) + ": x\n";
  EXPECT_EQ(CheckConfig(text, "f").problems.size(), kMostFindings);
}

std::string ProblemWith(const std::string& server) {
  const ConfigFindings found = CheckConfig("server: {" + server + "}", "f");
  return found.problems.empty() ? "" : found.problems.front();
}

TEST(CheckConfig, AddressesAreThoseThatServeTakes) {
  for (const char* good : {":80", "127.0.0.1:0", "\"[::1]:8080\"", "localhost:65535"}) {
    EXPECT_EQ(ProblemWith(std::string("listen: ") + good), "") << good;
    EXPECT_EQ(ProblemWith(std::string("debugListen: ") + good), "") << good;
  }
  for (const char* bad : {"80", "\"::1:80\"", "127.0.0.1:65536", "host", "host:http"}) {
    EXPECT_THAT(ProblemWith(std::string("listen: ") + bad), StartsWith("f:1: server.listen: want"));
    EXPECT_THAT(ProblemWith(std::string("debugListen: ") + bad),
                StartsWith("f:1: server.debugListen: want"));
  }
  EXPECT_EQ(ProblemWith("debugListen: off"), "");
}

TEST(CheckConfig, OnePortIsNotListenedOnTwice) {
  constexpr char kTaken[] = "f:1: server.debugListen: want another port than server.listen";
  for (const char* both :
       {"listen: 0.0.0.0:80, debugListen: 0.0.0.0:80",
        "listen: 0.0.0.0:80, debugListen: 10.0.0.1:80", "listen: 10.0.0.1:80, debugListen: \":80\"",
        "listen: h:80, debugListen: h:80"}) {
    EXPECT_THAT(ProblemWith(both), StartsWith(kTaken)) << both;
  }
  for (const char* both : {"listen: 0.0.0.0:80, debugListen: 0.0.0.0:81",
                           "listen: 10.0.0.1:80, debugListen: 10.0.0.2:80",
                           "listen: 127.0.0.1:0, debugListen: 127.0.0.1:0"}) {
    EXPECT_EQ(ProblemWith(both), "") << both;
  }
}

TEST(CheckConfig, WhatMayBeAMistakeIsNotedAndNotRefused) {
  const ConfigFindings found = CheckConfig(R"(profile: mine
profiles:
- name: mine
- name: best-fit
  ties: first
)",
                                           "f");
  EXPECT_THAT(found.problems, IsEmpty());
  EXPECT_THAT(found.notes,
              ElementsAre("f:3: profiles[0].scorers: empty, so all nodes score the same",
                          "f:4: profiles[1].name: overrides the built-in profile \"best-fit\"",
                          "f:4: profiles[1]: not used; profile is \"mine\""));
  EXPECT_THAT(CheckConfig("profile: best-fit", "f").notes, IsEmpty());
  EXPECT_THAT(
      CheckConfig("\nexpectedWaste: {optimismGpus: 1, patience: 7}", "f").problems,
      ElementsAre("f:2: expectedWaste: is no setting any more, remove it: only berth-replay "
                  "reads it (docs/upgrade.md)"));
}

TEST(NotesOn, SaysForWhomPodsAreMoved) {
  Config config = DefaultConfig();
  config.make_room.mode = MakeRoomMode::kAct;
  const std::string begin =
      "makeRoom.mode: Berth evicts pods of any namespace, at most 12 an hour, "
      "when a pod or gang has waited 30 min";
  const std::string end = "; this needs the right to create pods/eviction (components/make-room)";
  EXPECT_EQ(NotesOn(config).back(), begin + end);
  config.make_room.idle_nodes = 2;
  EXPECT_EQ(NotesOn(config).back(),
            begin + ", or fewer than 2 nodes have been idle for as long" + end);
}

}  // namespace
}  // namespace berth::validate_test
