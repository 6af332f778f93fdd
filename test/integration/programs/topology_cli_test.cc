// SPDX-License-Identifier: Apache-2.0
//
// berth-replay topology, which `berth topology` runs: what scripts read, exit codes, and errors
// that name file and cell.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "test/support/build_paths.h"
#include "test/support/child_process.h"
#include "test/support/test_certificates.h"

namespace berth::test::topology_cli_test {
namespace {

Outcome Topology(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "topology");
  return RunProgram("berth-replay", arguments);
}

Outcome Choose(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"topology", "choose"});
  return RunProgram("berth-replay", arguments);
}

class TopologyCommand : public testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string file_ = folder_.WriteText("topo.txt",
                                              "\tGPU0\tGPU1\tGPU2\tNUMA\nGPU0\tX\tSYS\tNV4\t0\nGPU1"
                                              "\tSYS\tX\tSYS\t1\nGPU2\tNV4\tSYS\tX\t0\n");
};

TEST_F(TopologyCommand, ShowPrintsWhatIsThere) {
  const Outcome text = Topology({"show", file_});
  EXPECT_EQ(text.code, 0) << text.err;
  for (const char* part : {"GPU0   X      SYS    NV4", "{0,2} {1}", "NUMA groups: {0,2} {1}",
                           "  2   0,2", "graph G {", "0--2 [label=\"NV4\"]"}) {
    EXPECT_NE(text.out.find(part), std::string::npos) << part << "\n" << text.out;
  }
  EXPECT_EQ(Topology({"show", file_, "--json"}).out,
            R"({"gpus":["GPU0","GPU1","GPU2"],"nics":[],"links":[["X","SYS","NV4"],)"
            R"(["SYS","X","SYS"],["NV4","SYS","X"]],"gpu_nic":[[],[],[]],)"
            R"("cpu_affinity":["","",""],"numa_affinity":["0","1","0"],"warnings":[]})"
            "\n");
}

TEST_F(TopologyCommand, AnnotateAndChooseAnswerInOneLine) {
  EXPECT_EQ(Topology({"annotate", file_}).out,
            R"({"version":1,"gpus":3,"cells":["SYS","NV4"],"links":"01/0","numa":["0","1","0"]})"
            "\n");
  EXPECT_EQ(Choose({file_, "--free", "0,1,2", "--size", "2", "--json"}).out,
            "{\"gpus\":[0,2],\"quality\":1}\n");
  EXPECT_EQ(Choose({file_, "--free", "0,1,2", "--size", "1"}).out, "1  quality 1\n");
  EXPECT_EQ(Choose({file_, "--policy", "first-fit", "--free", "0,1,2", "--required", "1", "--size",
                    "2", "--json"})
                .out,
            "{\"gpus\":[0,1],\"quality\":0.16}\n");
  const Outcome impossible = Choose({file_, "--free", "0", "--size", "2", "--json"});
  EXPECT_EQ(impossible.code, 0);
  EXPECT_EQ(impossible.out, "{\"gpus\":[],\"reason\":\"needs 2 GPUs; 1 free\"}\n");
}

TEST_F(TopologyCommand, ErrorsOfAChoiceNameTheFlag) {
  const Outcome gpu = Choose({file_, "--free", "3", "--size", "1"});
  EXPECT_EQ(gpu.code, 1);
  EXPECT_EQ(gpu.err, "berth-replay: --free: want an integer from 0 to 2, got \"3\"\n");
  EXPECT_EQ(Choose({file_, "--free", "0,1,0", "--size", "1"}).err,
            "berth-replay: --free: want each GPU once, got 0 twice\n");
  const Outcome policy = Choose({file_, "--free", "0", "--size", "1", "--policy", "best"});
  EXPECT_EQ(policy.code, 1);
  EXPECT_TRUE(policy.err.starts_with("berth-replay: --policy: want one of berth, ")) << policy.err;
  EXPECT_EQ(RunProgram("berth-replay", {"topology"}).code, 2) << "neither --matrix nor a command";
}

TEST_F(TopologyCommand, BerthRunsIt) {
  const std::vector<std::vector<std::string>> asked = {
      {"show", file_, "--json"},
      {"annotate", file_},
      {"choose", file_, "--free", "0,1,2", "--size", "2", "--json"},
      {"choose", file_, "--free", "3", "--size", "1"},
      {"choose", file_, "--size", "x"},
      {"show", "--help"},
      {}};
  for (std::vector<std::string> arguments : asked) {
    arguments.insert(arguments.begin(), "topology");
    const Outcome own = RunProgram("berth-replay", arguments),
                  moved = RunProgram("berth", arguments);
    EXPECT_EQ(moved.code, own.code);
    EXPECT_EQ(moved.out, own.out);
    EXPECT_EQ(moved.err, own.err);
  }
}

// The whole of what it prints.
std::string ShellPrints(const std::string& command) {
  std::string out;
  FILE* const shell = popen(command.c_str(), "r");
  for (int letter = fgetc(shell); letter != EOF; letter = fgetc(shell))
    out += static_cast<char>(letter);
  pclose(shell);
  return out;
}

TEST_F(TopologyCommand, BerthAloneFindsItOnPathOrSaysTheCure) {
  const std::string alone = file_ + ".alone";  // a folder with nothing but berth
  std::filesystem::create_directory(alone);
  std::filesystem::copy(BinDir() + "/berth", alone + "/berth");
  const std::string ask = alone + "/berth topology annotate " + file_ + " 2>&1; echo $?";
  EXPECT_EQ(ShellPrints("PATH=" + alone + "; " + ask),
            "berth: put berth-replay beside berth or on PATH: berth topology runs it\n2\n");
  EXPECT_EQ(ShellPrints("PATH=" + BinDir() + "; " + ask),
            Topology({"annotate", file_}).out + "0\n");
}

TEST_F(TopologyCommand, ErrorsNameFileOrFlag) {
  const std::string bad = folder_.WriteText("bad.txt", "\tGPU0\tGPU1\nGPU0\tX\tNaN\n");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"show", bad}, "berth-replay: " + bad + ": line 2, GPU0 to GPU1: want X, NV#, "},
      {{"annotate", bad + "x"}, "berth-replay: " + bad + "x: cannot be read"},
      {{"show", "/dev/zero"}, "berth-replay: /dev/zero: want at most 16 MiB"},
  };
  for (const auto& [arguments, line] : cases) {
    const Outcome outcome = Topology(arguments);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with(line)) << outcome.err;
  }
  EXPECT_EQ(Topology({}).code, 2);
  EXPECT_EQ(Topology({"show"}).code, 2);
  EXPECT_EQ(Choose({file_, "--size", "x", "--free", "0"}).code, 2);
  EXPECT_EQ(Choose({"--help"}).code, 0);
}

}  // namespace
}  // namespace berth::test::topology_cli_test
