// SPDX-License-Identifier: Apache-2.0
#include "server/cli/command_line.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/cli/commands.h"

namespace berth {
namespace {

const CLI::App& LastParsed(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : LastParsed(*parsed.back());
}

// Words that the command would have understood in the place of this one.
std::vector<std::string> WordsLike(const CLI::App& command, const std::string& word) {
  std::vector<std::string> words;
  if (!word.starts_with("-")) {
    for (const CLI::App* next : CommandsOf(command)) words.push_back(next->get_name());
    return words;
  }
  for (const CLI::Option* option : OptionsOf(command)) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  return words;
}

}  // namespace

CommandLine::CommandLine(CLI::App& app, std::string version)
    : app_(app),
      version_(std::move(version)),
      completion_(app.add_subcommand("completion", "Print the completion script of a shell")),
      man_(app.add_subcommand("man", "Print the manual page (man -l -)")) {
  app.require_subcommand(0, 1);  // at least one: see below
  app.set_version_flag("--version", app.get_name() + " " + version_, "Print the version");
  completion_
      ->add_option("SHELL", shell_,
                   "Shell: bash, zsh or fish; kubectl for the plugin as krew installs it")
      ->required();
}

std::optional<int> CommandLine::Parse(int argc, char** argv) {
  if (argc > 1 && argv[1] == kCompleteCommand) {
    const std::vector<std::string> words(argv + 2, argv + argc);
    std::fputs(Complete(app_, words).c_str(), stdout);
    return 0;
  }
  try {
    app_.parse(argc, argv);
    // Asked for here, because CLI11 would miss a subcommand before it names a word it does not
    // know. A command that sets no most does something without one.
    const CLI::App& last = LastParsed(app_);
    if (!CommandsOf(last).empty() && last.get_require_subcommand_max() > 0) {
      throw CLI::RequiredError("A subcommand");
    }
  } catch (const CLI::ParseError& problem) {
    return Refuse(problem);
  }
  if (app_.got_subcommand(man_)) {
    std::fputs(ManPage(app_, version_).c_str(), stdout);
    return 0;
  }
  if (!app_.got_subcommand(completion_)) return std::nullopt;
  const Result<std::string> script = CompletionScript(shell_, app_.get_name());
  if (!script) {
    std::fprintf(stderr, "%s: %s\n", app_.get_name().c_str(), script.error().message.c_str());
    return kUsage;
  }
  std::fputs(script->c_str(), stdout);
  return 0;
}

int CommandLine::Refuse(const CLI::ParseError& problem) const {
  if (app_.exit(problem) == 0) return 0;
  const CLI::App& last = LastParsed(app_);
  for (const std::string& word : app_.remaining(true)) {
    const std::string meant = NearestWord(word, WordsLike(last, word));
    if (!meant.empty()) std::fprintf(stderr, "Did you mean %s?\n", meant.c_str());
  }
  return kUsage;
}

}  // namespace berth
