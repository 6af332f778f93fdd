// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/made_with.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/version.h"

namespace berth::replay {
namespace {

constexpr std::array<std::string_view, 7> kWithoutFigures = {
    "--json", "--out", "--page", "--pods", "--report", "--shard", "--threads"};

std::string ForShell(std::string_view argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == argument.npos) {
    return std::string(argument);
  }
  std::string quoted = "'";
  for (const char c : argument) c == '\'' ? quoted += "'\\''" : quoted += c;
  return quoted + "'";
}

}  // namespace

MadeWith MadeWithCommand(int argc, const char* const* argv, const char* program) {
  MadeWith made_with{std::string(BerthVersion()), program};
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view name = argument.substr(0, argument.find('='));
    if (std::ranges::count(kWithoutFigures, name) == 0) {
      made_with.command += " " + ForShell(argument);
    } else if (name == argument) {
      ++i;  // its value
    }
  }
  return made_with;
}

nlohmann::ordered_json MadeWithJson(const MadeWith& made_with) {
  return {{"version", made_with.version}, {"command", made_with.command}};
}

}  // namespace berth::replay
