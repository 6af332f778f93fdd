// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth-replay: exit 0 success, 1 failure, 2 usage.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <utility>

#include "bench/replay/commands/command.h"

namespace berth::replay {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

int Main(int argc, char** argv) {
  CLI::App app("Replays GPU workloads on Berth's engine", "berth-replay");
  app.require_subcommand(1);
  const MadeWith made_with = MadeWithCommand(argc, argv);
  app.set_version_flag("--version", "berth-replay " + made_with.version);
  const std::array<std::pair<const char*, Command>, 11> commands = {{
      {"run", AddRun(app)},
      {"compare", AddCompare(app)},
      {"merge", AddMerge(app)},
      {"tune", AddTune(app)},
      {"topology", AddTopology(app)},
      {"mig", AddMig(app)},
      {"waves", AddWaves(app)},
      {"gang", AddGang(app)},
      {"shares", AddShares(app)},
      {"generate", AddGenerate(app)},
      {"demo", AddDemo(app)},
  }};
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : kUsage;
  }
  for (const auto& [name, command] : commands) {
    if (!app.got_subcommand(name)) continue;
    const Status status = command(made_with);
    if (status) return 0;
    std::fprintf(stderr, "berth-replay: %s\n", status.error().message.c_str());
  }
  return kFailure;
}

}  // namespace
}  // namespace berth::replay

int main(int argc, char** argv) { return berth::replay::Main(argc, argv); }
