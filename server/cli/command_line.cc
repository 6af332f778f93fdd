// SPDX-License-Identifier: Apache-2.0
#include "server/cli/command_line.h"

#include <cctype>
#include <cstdio>
#include <utility>

#include "base/text.h"

namespace berth {

std::vector<const CLI::App*> CommandsOf(const CLI::App& command) {
  return command.get_subcommands(
      [](const CLI::App* next) { return !next->get_name().empty() && !next->get_group().empty(); });
}

std::vector<const CLI::Option*> OptionsOf(const CLI::App& command) {
  std::vector<const CLI::Option*> options;
  for (const CLI::Option* option : command.get_options()) options.push_back(option);
  const auto is_group = [](const CLI::App* next) { return next->get_name().empty(); };
  for (const CLI::App* group : command.get_subcommands(is_group)) {
    for (const CLI::Option* option : OptionsOf(*group)) options.push_back(option);
  }
  return options;
}

namespace {

// A text of one line, without meaning for troff.
std::string Plain(const std::string& text) {
  std::string plain;
  for (const char letter : text) {
    if (letter == '\\') {
      plain += "\\e";
    } else if (letter == '-') {
      plain += "\\-";
    } else {
      plain += letter == '\n' ? ' ' : letter;
    }
  }
  const bool is_request = plain.starts_with(".") || plain.starts_with("'");
  return (is_request ? "\\&" : "") + plain;
}

std::string Bold(const std::string& text) { return "\\fB" + Plain(text) + "\\fR"; }
std::string Italic(const std::string& text) { return "\\fI" + Plain(text) + "\\fR"; }

// "-f, --file FILE".
std::string Names(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += Bold("-" + name) + ", ";
  for (const std::string& name : option.get_lnames()) names += Bold("--" + name) + ", ";
  names.resize(names.size() - 2);
  if (option.get_items_expected_max() == 0) return names;
  return names + " " + Italic(option.get_type_name());
}

void AddCommand(const CLI::App& command, const std::string& path, std::string& page) {
  const auto below = CommandsOf(command);
  std::string synopsis = Bold(path);
  for (const CLI::Option* option : OptionsOf(command)) {
    if (option->get_positional()) synopsis += " " + Italic(option->get_name());
  }
  if (below.empty()) {
    page += ".SS " + synopsis + "\n" + Plain(command.get_description()) + ".\n";
    for (const CLI::Option* option : OptionsOf(command)) {
      const std::string names =
          option->get_positional() ? Italic(option->get_name()) : Names(*option);
      page += ".TP\n" + names + "\n" + Plain(option->get_description()) + ".\n";
    }
  }
  for (const CLI::App* next : below) AddCommand(*next, path + " " + next->get_name(), page);
}

constexpr std::string_view kNoFiles = ":4\n", kFiles = ":0\n";

// Each asks `PROGRAM __complete WORD...`.
constexpr std::string_view kBash =
    R"(# bash completion of PROGRAM: source <(PROGRAM completion bash)
_PROGRAM_complete() {
  local line lines word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  mapfile -t lines < <(PROGRAM __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  (( ${#lines[@]} )) || return
  for line in "${lines[@]::${#lines[@]}-1}"; do COMPREPLY+=("${line%%$'\t'*}"); done
  if [[ ${lines[-1]} == :0 ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
  fi
}
complete -F _PROGRAM_complete PROGRAM
)";

constexpr std::string_view kZsh = R"(#compdef PROGRAM
# zsh completion of PROGRAM: PROGRAM completion zsh > "${fpath[1]}/_PROGRAM"
_PROGRAM() {
  local -a lines commands
  local line
  lines=("${(@f)$(PROGRAM __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "${(@)lines[1,-2]}"; do commands+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}"); done
  (( ${#commands} )) && _describe 'PROGRAM' commands
  [[ ${lines[-1]} == :0 ]] && _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _PROGRAM "$@"; else compdef _PROGRAM PROGRAM; fi
)";

constexpr std::string_view kFish =
    R"(# fish: PROGRAM completion fish > ~/.config/fish/completions/PROGRAM.fish
function __PROGRAM_complete
  set -l words (commandline -opc) (commandline -ct)
  set -l lines (PROGRAM __complete $words[2..-1] 2>/dev/null)
  test (count $lines) -gt 1; and string join -- \n $lines[1..-2]
  test "$lines[-1]" = :0; and __fish_complete_path (commandline -ct)
end
complete -c PROGRAM -f -a '(__PROGRAM_complete)'
)";

// kubectl asks the program of this name in PATH how to go on (k8s.io/kubectl,
// plugin_completion.go). krew links the plugin alone.
constexpr std::string_view kKubectl = R"(#!/bin/sh
# PROGRAM completion kubectl > ~/.local/bin/kubectl_complete-berth, executable, in PATH
exec PROGRAM __complete "$@"
)";

// "--json" of "-j,--json", or the short name where there is no other.
std::string LongNameOf(const CLI::Option& option) {
  const auto& longs = option.get_lnames();
  if (!longs.empty()) return "--" + longs.front();
  const auto& shorts = option.get_snames();
  return shorts.empty() ? "" : "-" + shorts.front();
}

bool TakesFiles(const CLI::Option& option) {
  return option.get_type_name() == "FILE" || option.get_name() == "FILE";
}

// The subcommand of that name; without one the command itself.
const CLI::App* Below(const CLI::App& command, const std::string& name) {
  for (const CLI::App* next : CommandsOf(command)) {
    if (next->get_name() == name) return next;
  }
  return &command;
}

// A line where it begins as typed.
void Offer(const std::string& word, const std::string& what, const std::string& typed,
           std::string& text) {
  if (!word.empty() && word.starts_with(typed)) text += word + "\t" + what + "\n";
}

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

std::string ManPage(const CLI::App& app, const std::string& version) {
  const std::string& name = app.get_name();
  std::string title = name;
  for (char& letter : title) letter = static_cast<char>(std::toupper(letter));
  std::string page =
      ".TH \"" + Plain(title) + "\" 1 \"\" \"" + Plain(name + " " + version) + "\"\n";
  page += ".SH NAME\n" + Plain(name) + " \\- " + Plain(app.get_description()) + "\n";
  page +=
      ".SH SYNOPSIS\n" + Bold(name) + " " + Italic("COMMAND") + " [" + Italic("OPTION") + "]...\n";
  page += ".SH COMMANDS\n";
  AddCommand(app, name, page);
  return page +
         ".SH EXIT STATUS\n0 for success, 1 for failure, 2 for wrong usage. Errors are on standard "
         "error.\n";
}

std::string Complete(const CLI::App& app, std::span<const std::string> words) {
  const CLI::App* command = &app;
  const CLI::Option* valued = nullptr;  // whose value the next word is
  const std::string typed = words.empty() ? "" : words.back();
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (valued != nullptr) {
      valued = nullptr;
    } else if (word.starts_with("-")) {
      const CLI::Option* const option = command->get_option_no_throw(word);  // of groups too
      if (option != nullptr && option->get_items_expected_max() > 0) valued = option;
    } else {
      command = Below(*command, word);
    }
  }
  if (valued != nullptr) return std::string(TakesFiles(*valued) ? kFiles : kNoFiles);
  std::string text;
  if (typed.starts_with("-")) {
    for (const CLI::Option* option : OptionsOf(*command)) {
      if (!option->get_positional()) {
        Offer(LongNameOf(*option), option->get_description(), typed, text);
      }
    }
    return text + std::string(kNoFiles);
  }
  for (const CLI::App* next : CommandsOf(*command)) {
    Offer(next->get_name(), next->get_description(), typed, text);
  }
  bool files = false;
  for (const CLI::Option* option : OptionsOf(*command)) {
    files = files || (option->get_positional() && TakesFiles(*option));
  }
  return text + std::string(files ? kFiles : kNoFiles);
}

Result<std::string> CompletionScript(std::string_view shell, const std::string& program) {
  const std::string_view script = shell == "bash"      ? kBash
                                  : shell == "zsh"     ? kZsh
                                  : shell == "fish"    ? kFish
                                  : shell == "kubectl" ? kKubectl
                                                       : "";
  if (script.empty()) {
    return Invalid("completion: want bash, zsh, fish or kubectl, got \"" + std::string(shell) +
                   "\"");
  }
  constexpr std::string_view kProgram = "PROGRAM";
  std::string text(script);
  for (std::size_t at = text.find(kProgram); at != std::string::npos;
       at = text.find(kProgram, at + program.size())) {
    text.replace(at, kProgram.size(), program);
  }
  return text;
}

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
