// SPDX-License-Identifier: Apache-2.0
//
// MadeWith: what a report's figures were made with, so that they can be made again.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace berth::replay {

struct MadeWith {
  std::string version;  // of berth-replay
  // The command line, as a shell takes it. Left out is what changes no figure: where results go,
  // which part of a whole was run, and on how many threads.
  std::string command;
};

MadeWith MadeWithCommand(int argc, const char* const* argv, const char* program = "berth-replay");

// {"version", "command"}
nlohmann::ordered_json MadeWithJson(const MadeWith& made_with);

}  // namespace berth::replay
