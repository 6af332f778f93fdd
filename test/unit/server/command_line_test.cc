// SPDX-License-Identifier: Apache-2.0
#include "server/cli/command_line.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::command_line_test {
namespace {

class CommandLineTest : public testing::Test {
 protected:
  CommandLineTest() {
    CLI::App* const explain = app_.add_subcommand("explain", "Why");
    CLI::App* const pod = explain->add_subcommand("pod", "Why a pod waits");
    pod->add_option("NAME", name_, "Which")->required();
    pod->add_flag("--json", json_, "Print JSON");
    pod->add_option_group("source")
        ->add_option("-f,--file", file_, "Where from")
        ->type_name("FILE");
    app_.add_subcommand("export", "Write it")->add_option("FILE", file_, "Where to");
  }

  struct Said {
    std::optional<int> code;
    std::string out, err;
  };
  Said Parse(std::vector<std::string> words) {
    words.insert(words.begin(), "tool");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Said said;
    said.code = line_.Parse(static_cast<int>(argv.size()), argv.data());
    said.out = testing::internal::GetCapturedStdout();
    said.err = testing::internal::GetCapturedStderr();
    return said;
  }
  std::string Completed(const std::vector<std::string>& words) { return Complete(app_, words); }

  std::string name_, file_;
  bool json_ = false;
  CLI::App app_{"does things", "tool"};
  CommandLine line_{app_, "1.2.3"};
};

TEST_F(CommandLineTest, ACommandIsLeftToTheProgram) {
  EXPECT_EQ(Parse({"explain", "pod", "a/b", "--json"}).code, std::nullopt);
  EXPECT_EQ(name_, "a/b");
  EXPECT_TRUE(json_);
}

TEST_F(CommandLineTest, WhatMayHaveBeenMeantIsSaid) {
  const Said command = Parse({"expain", "pod", "a/b"});
  EXPECT_EQ(command.code, 2);
  EXPECT_NE(command.err.find("Did you mean explain?"), std::string::npos) << command.err;
  const Said below = Parse({"explain", "pods", "a/b"});
  EXPECT_NE(below.err.find("Did you mean pod?"), std::string::npos) << below.err;
  const Said option = Parse({"explain", "pod", "a/b", "--jsno"});
  EXPECT_NE(option.err.find("Did you mean --json?"), std::string::npos) << option.err;
  const Said far = Parse({"frobnicate"});
  EXPECT_EQ(far.code, 2);
  EXPECT_EQ(far.err.find("Did you mean"), std::string::npos) << far.err;
}

TEST_F(CommandLineTest, WithoutACommandTheUsageIsWrong) {
  EXPECT_EQ(Parse({}).code, 2);
  EXPECT_EQ(Parse({"explain"}).code, 2);
}

TEST_F(CommandLineTest, TheVersionIsAnAnswer) {
  const Said said = Parse({"--version"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out, "tool 1.2.3\n");
}

TEST_F(CommandLineTest, CommandsAndOptionsAreCompleted) {
  EXPECT_EQ(Completed({"ex"}), "explain\tWhy\nexport\tWrite it\n:4\n");
  EXPECT_EQ(Completed({"explain", ""}), "pod\tWhy a pod waits\n:4\n");
  EXPECT_EQ(Completed({"explain", "pod", "--j"}), "--json\tPrint JSON\n:4\n");
  EXPECT_EQ(Completed({"explain", "pod", "--json", ""}), ":4\n");
}

TEST_F(CommandLineTest, FilesAreCompletedWhereFilesAreTaken) {
  EXPECT_EQ(Completed({"explain", "pod", "-f", ""}), ":0\n");
  EXPECT_EQ(Completed({"export", ""}), ":0\n");
  EXPECT_EQ(Completed({"explain", "pod", "-f", "x", "--f"}), "--file\tWhere from\n:4\n");
}

TEST_F(CommandLineTest, TheScriptsAskTheProgram) {
  EXPECT_EQ(Parse({"__complete", "explain", "p"}).out, "pod\tWhy a pod waits\n:4\n");
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = Parse({"completion", shell}).out;
    EXPECT_NE(script.find("tool __complete"), std::string::npos) << script;
    EXPECT_EQ(script.find("PROGRAM"), std::string::npos) << script;
  }
  const Said other = Parse({"completion", "tcsh"});
  EXPECT_EQ(other.code, 2);
  EXPECT_EQ(other.err, "tool: completion: want bash, zsh, fish or kubectl, got \"tcsh\"\n");
}

TEST_F(CommandLineTest, TheManualHasEveryCommandAndOption) {
  const std::string page = Parse({"man"}).out;
  for (const char* line : {".TH \"TOOL\" 1 \"\" \"tool 1.2.3\"\n", "tool \\- does things\n",
                           ".SS \\fBtool explain pod\\fR \\fINAME\\fR\nWhy a pod waits.\n",
                           ".TP\n\\fB\\-f\\fR, \\fB\\-\\-file\\fR \\fIFILE\\fR\nWhere from.\n"}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << "in\n" << page;
  }
}

}  // namespace
}  // namespace berth::command_line_test
