// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth: exit codes, help, and errors in one line that names the place.
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/http/http_server.h"
#include "test/support/build_paths.h"
#include "test/support/child_process.h"
#include "test/support/http_fixture.h"
#include "test/support/test_certificates.h"

namespace berth::test::cli_test {
namespace {

Outcome Berth(const std::vector<std::string>& arguments) { return RunProgram("berth", arguments); }

// The one line of stderr that is not a line of the log.
std::string ErrorLine(const Outcome& outcome) {
  std::vector<std::string> lines;
  std::istringstream text(outcome.err);
  for (std::string line; std::getline(text, line);) {
    if (!line.starts_with('{')) lines.push_back(line);
  }
  EXPECT_EQ(lines.size(), 1u) << outcome.err;
  return lines.empty() ? "" : lines.front();
}

class CommandLine : public testing::Test {
 protected:
  [[nodiscard]] std::string File(const std::string& name, const std::string& text) const {
    return folder_.WriteText(name, text);
  }
  // A failure: exit 1, nothing on stdout, and this line on stderr.
  static void ExpectFailure(const std::vector<std::string>& arguments, const std::string& line) {
    const Outcome outcome = Berth(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    const std::string error = ErrorLine(outcome);
    EXPECT_TRUE(error.starts_with(line)) << error << "\nwant " << line;
  }

  const TemporaryFolder folder_;
};

TEST_F(CommandLine, AFileWithoutEndIsRefused) {
  const std::string endless = "/dev/zero: want at most ";
  ExpectFailure({"config", "check", "/dev/zero"}, "berth: " + endless + "16 MiB");
  ExpectFailure({"config", "print", "/dev/zero"}, "berth: " + endless + "16 MiB");
  ExpectFailure({"serve", "--kubeconfig", "/dev/zero"}, "berth: " + endless + "16 MiB");
  ExpectFailure({"serve", "--cluster", "/dev/zero"}, "berth: " + endless + "256 MiB");
}

// As bash does it with the script loaded: what the words are completed with, joined by spaces.
std::string CompletedByBash(const std::string& folder, const std::string& words) {
  const std::string script =
      "cd " + folder + " && PATH=" + BinDir() +
      ":$PATH && source <(berth completion bash) && COMP_WORDS=(" + words +
      ") && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _berth_complete && echo \"${COMPREPLY[*]}\"";
  std::string out;
  FILE* const bash = popen(("bash -c '" + script + "'").c_str(), "r");
  for (int letter = fgetc(bash); letter != EOF; letter = fgetc(bash))
    out += static_cast<char>(letter);
  EXPECT_EQ(pclose(bash), 0) << script;
  return out;
}

TEST_F(CommandLine, BashCompletesCommandsOptionsAndFiles) {
  const std::string folder = std::filesystem::path(File("cluster.json", "{}")).parent_path();
  EXPECT_EQ(CompletedByBash(folder, "berth expl"), "explain\n");
  EXPECT_EQ(CompletedByBash(folder, "berth explain pod --kubec"), "--kubeconfig\n");
  EXPECT_EQ(CompletedByBash(folder, "berth serve --cluster clu"), "cluster.json\n");
  EXPECT_EQ(CompletedByBash(folder, "berth config check clu"), "cluster.json\n");
}

TEST_F(CommandLine, EverySubcommandExplainsItself) {
  const std::vector<std::vector<std::string>> subcommands = {{},
                                                             {"serve"},
                                                             {"config"},
                                                             {"config", "check"},
                                                             {"config", "print"},
                                                             {"config", "schema"},
                                                             {"version"},
                                                             {"explain"},
                                                             {"explain", "pod"},
                                                             {"explain", "node"},
                                                             {"explain", "gang"},
                                                             {"explain", "waiting"},
                                                             {"explain", "nodes"},
                                                             {"snapshot"},
                                                             {"doctor"},
                                                             {"top"}};
  for (std::vector<std::string> arguments : subcommands) {
    const std::string name = arguments.empty() ? "berth" : arguments.back();
    arguments.emplace_back("--help");
    const Outcome outcome = Berth(arguments);
    EXPECT_EQ(outcome.code, 0) << name;
    EXPECT_EQ(outcome.err, "") << name;
    EXPECT_NE(outcome.out.find("Usage: "), std::string::npos) << outcome.out;
    EXPECT_NE(outcome.out.find(name), std::string::npos) << outcome.out;
  }
  const std::string serve = Berth({"serve", "--help"}).out;
  for (const char* flag : {"--config", "--cluster", "--listen"}) {
    EXPECT_NE(serve.find(flag), std::string::npos) << flag;
  }
}

TEST_F(CommandLine, WrongUsageIsExit2AndNamesWhatIsWrong) {
  const std::pair<std::vector<std::string>, const char*> wrong[] = {
      {{}, "subcommand"},
      {{"swerve"}, "swerve"},
      {{"--nonsense"}, "--nonsense"},
      {{"serve", "--nonsense"}, "--nonsense"},
      {{"serve", "--cluster"}, "--cluster"},
      {{"serve", "stray"}, "stray"},
      {{"config"}, "subcommand"},
      {{"config", "chuck"}, "chuck"},
      {{"config", "check"}, "FILE"},
      {{"explain"}, "subcommand"},
      {{"explain", "pod"}, "NAME"},
      {{"version", "now"}, "now"}};
  for (const auto& [arguments, named] : wrong) {
    const Outcome outcome = Berth(arguments);
    EXPECT_EQ(outcome.code, 2) << named;
    EXPECT_EQ(outcome.out, "") << named;
    EXPECT_NE(outcome.err.find(named), std::string::npos) << outcome.err;
  }
}

TEST_F(CommandLine, VersionPrintsTheVersion) {
  const Outcome outcome = Berth({"version"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(outcome.out.starts_with("berth ")) << outcome.out;
  EXPECT_GT(outcome.out.size(), std::string("berth \n").size());
}

TEST_F(CommandLine, ConfigPrintShowsWhatConfigCheckAccepts) {
  const Outcome defaults = Berth({"config", "print"});
  EXPECT_EQ(defaults.code, 0);
  const std::string file = File("printed.yaml", defaults.out);
  const Outcome checked = Berth({"config", "check", file});
  EXPECT_EQ(checked.code, 0) << checked.err;
  EXPECT_EQ(checked.out, file + ": ok\n");
  EXPECT_EQ(Berth({"config", "print", file}).out, defaults.out);
}

TEST_F(CommandLine, ABadConfigurationIsNamedWithLineAndPath) {
  const std::string file =
      File("bad.yaml", "profile: fragmentation-gradient\nserver:\n  threads: 0\n");
  const std::string line = "berth: " + file + ":3: server.threads: want an integer from 1 to 64";
  ExpectFailure({"config", "check", file}, line);
  ExpectFailure({"config", "print", file}, line);
  ExpectFailure({"serve", "--cluster", "x", "--config", file}, line);
  ExpectFailure({"config", "check", file + "x"}, "berth: " + file + "x: cannot be read: No such");
  ExpectFailure({"config", "check", "/"}, "berth: /: cannot be read");
}

TEST_F(CommandLine, PoliciesOfBerthReplayAreRefusedAndSaySo) {
  const std::string gone = "(only berth-replay has it now: docs/upgrade.md)";
  for (const char* text : {"profile: best-fit\n", "profiles: [{name: x, extends: pwr-fgd}]\n",
                           "profiles: [{name: x, scorers: [{name: spreading}]}]\nprofile: x\n"}) {
    const Outcome outcome = Berth({"config", "check", File("gone.yaml", text)});
    EXPECT_EQ(outcome.code, 1) << text;
    EXPECT_NE(outcome.err.find(gone), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(Berth({"config", "check", File("kept.yaml", "profile: fragmentation-gradient\n")}).code,
            0);
}

TEST_F(CommandLine, EveryProblemOfAConfigurationIsALine) {
  const std::string file = File("bad.yaml", "profil: x\nserver: {threads: 0, listen: here}\n");
  const Outcome outcome = Berth({"config", "check", file});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.out, "");
  std::istringstream lines(outcome.err);
  std::string line;
  for (const char* problem : {":1: profil: unknown key", ":2: server.threads: want"}) {
    ASSERT_TRUE(std::getline(lines, line)) << outcome.err;
    EXPECT_TRUE(line.starts_with("berth: " + file + problem)) << line;
  }
  EXPECT_FALSE(std::getline(lines, line)) << line;
}

TEST_F(CommandLine, TheManifestOfAConfigMapIsCheckedAsAConfiguration) {
  const std::string good = File("cm.yaml", "kind: ConfigMap\ndata:\n  a: |\n    logLevel: warn\n");
  EXPECT_EQ(Berth({"config", "check", good}).out, good + ": ok\n");
  EXPECT_NE(Berth({"config", "print", good}).out.find("logLevel: warn"), std::string::npos);
  const std::string bad = File("cm.yaml", "kind: ConfigMap\ndata:\n  a: |\n    logLevel: x\n");
  ExpectFailure({"config", "check", bad}, "berth: " + bad + ":4: logLevel: want one of");
}

TEST_F(CommandLine, WhatMayBeAMistakeIsANoteOfConfigCheck) {
  const std::string file = File("notes.yaml", "profile: x\nprofiles: [{name: x}]\n");
  const Outcome outcome = Berth({"config", "check", file});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("note: " + file + ":2: profiles[0].scorers: "))
      << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with(file + ": ok\n")) << outcome.out;
}

TEST_F(CommandLine, ServeNeedsACluster) {
  ExpectFailure({"serve"},
                "berth: serve: want --kubeconfig FILE or --cluster FILE outside of a pod");
  ExpectFailure({"serve", "--cluster", "a", "--kubeconfig", "b"},
                "berth: serve: want one of --cluster and --kubeconfig, got both");
  ExpectFailure({"serve", "--kubeconfig", File("x", "") + "-missing"}, "berth: ");
}

TEST_F(CommandLine, ABadClusterFileIsNamedWithItsPath) {
  const std::string missing = File("x", "") + "-missing";
  ExpectFailure({"serve", "--cluster", missing}, "berth: " + missing + ": cannot be read");
  ExpectFailure({"serve", "--cluster", "/"}, "berth: /: cannot be read");
  const std::pair<const char*, const char*> bad[] = {
      {"", ": file: want JSON or YAML, got an empty file"},
      {R"({"version":1,"nodes":[{"name":"n1"},{"name":"n1"}]})",
       ": nodes[1].name: node \"n1\" is there twice"},
      {R"({"version":1,"nodes":[{"name":"n1","cpu_milli":-4}]})", ": nodes[0].cpu_milli: want 0.."},
      {R"({"version":1,"nodes":[{"name":"n1","gpuz":4}]})", ": nodes[0].gpuz: unknown key"},
      {R"({"kind":"List","items":[{"kind":"Service","metadata":{"name":"s"}}]})",
       ": items: want Nodes and Pods, got none of them; not read: 1 Service"},
      {R"({"kind":"List","items":[{"kind":"Node","metadata":{"name":"n1"}},{"metadata":{}}]})",
       ": items[1].kind: want the kind of the object, such as Node or Pod, got none"},
      {R"({"items":[{"kind":"Node","metadata":{"name":"n1"}}]})", ": kind: want List, got none"}};
  for (const auto& [text, message] : bad) {
    const std::string file = File("cluster.json", text);
    ExpectFailure({"serve", "--cluster", file}, "berth: " + file + message);
  }
}

TEST_F(CommandLine, ABadListenAddressIsNamed) {
  const std::string cluster = File("cluster.json", R"({"version":1})");
  for (const char* address : {"nonsense", "127.0.0.1", "127.0.0.1:99999", "::1:80"}) {
    ExpectFailure(
        {"serve", "--cluster", cluster, "--listen", address},
        "berth: listen: want HOST:PORT, [V6]:PORT or :PORT, got \"" + std::string(address) + "\"");
  }
}

TEST_F(CommandLine, AnAddressThatIsTakenIsNamed) {
  const auto other = StartServer();
  const Outcome outcome = Berth({"serve", "--cluster", File("cluster.json", R"({"version":1})"),
                                 "--listen", other->address()});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(ErrorLine(outcome).find(other->address()), std::string::npos) << outcome.err;
}

TEST_F(CommandLine, TlsFilesThatDoNotLoadAreNamed) {
  const std::string config =
      File("tls.yaml", "server: {tls: {certificateFile: /no/such.crt, keyFile: /no/such.key}}");
  const Outcome outcome = Berth({"serve", "--cluster", File("cluster.json", R"({"version":1})"),
                                 "--listen", "127.0.0.1:0", "--config", config});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(ErrorLine(outcome).find("/no/such."), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace berth::test::cli_test
