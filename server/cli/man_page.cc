// SPDX-License-Identifier: Apache-2.0
#include "server/cli/man_page.h"

#include <cctype>

#include "server/cli/commands.h"

namespace berth {
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

}  // namespace berth
