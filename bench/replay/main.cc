// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-replay: exit 0 success, 1 failure, 2 usage.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "bench/replay/commands/command.h"
#include "server/cli/command_line.h"

namespace berth::replay {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("Replays GPU workloads with Berth's engine", "berth-replay");
  const MadeWith made_with = MadeWithCommand(argc, argv);
  CommandLine line(app, made_with.version);
  const std::array<std::pair<const char*, Command>, 11> commands = {{
      {"run", AddRun(app)},
      {"time", AddTime(app)},
      {"compare", AddCompare(app)},
      {"merge", AddMerge(app)},
      {"topology", AddTopology(app)},
      {"mig", AddMig(app)},
      {"gang", AddGang(app)},
      {"import", AddImport(app)},
      {"generate", AddGenerate(app)},
      {"conform", AddConform(app)},
      {"demo", AddDemo(app)},
  }};
  if (const std::optional<int> code = line.Parse(argc, argv)) return *code;
  for (const auto& [name, command] : commands) {
    if (!app.got_subcommand(name)) continue;
    const Status status = command(made_with);
    if (status) return 0;
    std::fprintf(stderr, "berth-replay: %s\n", status.error().message.c_str());
  }
  return CommandLine::kFailure;
}

}  // namespace
}  // namespace berth::replay

int main(int argc, char** argv) { return berth::replay::Main(argc, argv); }
