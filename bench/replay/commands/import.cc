// SPDX-License-Identifier: Apache-2.0
//
// berth-replay import: a public trace as the files that `run` reads.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/import/import.h"

namespace berth::replay {
namespace {

struct ImportFlags {
  std::string format, jobs, node_table, tasks = "tasks.csv", nodes = "nodes.csv";
};

Status WriteTable(const std::string& text, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return Fail(Errc::kUnavailable, path + ": cannot be written");
  return {};
}

Status Import(const ImportFlags& flags) {
  NamedFiles writes = {{"--tasks", flags.tasks}};
  if (!flags.node_table.empty()) writes.emplace_back("--nodes", flags.nodes);
  BERTH_TRY_STATUS(CheckFiles({{"JOBS", flags.jobs}, {"--node-table", flags.node_table}}, writes));
  BERTH_TRY(const Imported imported, ImportTrace(flags.format, flags.jobs, flags.node_table));
  if (imported.tasks.empty()) return Invalid(flags.jobs + ": want at least one job, got none");
  BERTH_TRY_STATUS(WriteTable(TasksCsv(imported), flags.tasks));
  if (!flags.node_table.empty()) {
    BERTH_TRY_STATUS(WriteTable(NodesCsv(imported), flags.nodes));
  }
  std::printf("jobs: %lld, tasks: %zu, nodes: %zu\n", static_cast<long long>(imported.jobs),
              imported.tasks.size(), imported.nodes.size());
  for (const auto& [why, jobs] : imported.passed_over) {
    std::printf("jobs skipped: %lld: %s\n", static_cast<long long>(jobs), why.c_str());
  }
  return {};
}

std::string FilesText() {
  std::string text = "Formats and their input files:\n";
  for (const TraceFormat& format : TraceFormats()) {
    text += "  " + std::string(format.name) + ": " + std::string(format.jobs);
    if (!format.nodes.empty()) text += "; nodes: " + std::string(format.nodes);
    text += "\n";
  }
  return text;
}

}  // namespace

Command AddImport(CLI::App& app) {
  const auto flags = std::make_shared<ImportFlags>();
  CLI::App* const import =
      app.add_subcommand("import", "Convert a public trace to CSV files for `run`");
  import->footer(FilesText());
  import->add_option("--from", flags->format, "Format of the trace")
      ->type_name("FORMAT")
      ->required();
  import->add_option("JOBS", flags->jobs, "File with the trace's jobs; may be gzipped")->required();
  import->add_option("--node-table", flags->node_table, "File with the trace's nodes")
      ->type_name("FILE");
  import->add_option("--tasks", flags->tasks, "Write the tasks to this file")
      ->capture_default_str();
  import->add_option("--nodes", flags->nodes, "Write the nodes to this file")
      ->capture_default_str();
  return [flags](const MadeWith&) { return Import(*flags); };
}

}  // namespace berth::replay
