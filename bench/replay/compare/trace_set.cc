// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/compare/trace_set.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "bench/replay/csv.h"

namespace berth::replay {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kGeneratedSeed = 42;

std::optional<std::string> FirstFile(const std::string& folder,
                                     std::initializer_list<std::string> stems) {
  for (const std::string& stem : stems) {
    for (const char* extension : {".csv", ".csv.gz"}) {
      const fs::path path = fs::path(folder) / (stem + extension);
      if (fs::is_regular_file(path)) return path.string();
    }
  }
  return std::nullopt;
}

// The files of the folder whose header is that of tasks.
Result<std::vector<std::string>> TablesOfTasks(const std::string& folder) {
  std::vector<std::string> tables;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (!entry.is_regular_file() || !(path.ends_with(".csv") || path.ends_with(".csv.gz"))) {
      continue;
    }
    BERTH_TRY(std::string text, ReadTextFile(path));
    const std::vector<std::string> header = CsvHeader(std::move(text));
    if (std::ranges::count(header, "name") > 0 && std::ranges::count(header, "cpu_milli") > 0) {
      tables.push_back(path);
    }
  }
  if (tables.empty()) return Fail(Errc::kNotFound, folder + ": want tables of tasks, found none");
  std::ranges::sort(tables);
  return tables;
}

Result<std::vector<std::string>> FilesOf(const std::string& given, const std::string& data) {
  if (fs::is_directory(given)) return TablesOfTasks(given);
  if (fs::is_regular_file(given)) return std::vector<std::string>{given};
  if (const auto file = FirstFile(data, {given, "openb_pod_list_" + given})) {
    return std::vector<std::string>{*file};
  }
  return Fail(Errc::kNotFound,
              "traces: want a file, a folder, \"generated\" or the name of a trace in " + data +
                  ", got \"" + given + "\"");
}

std::uint32_t Fingerprint(std::uint32_t so_far, std::string_view text) {
  return static_cast<std::uint32_t>(
      crc32_z(so_far, reinterpret_cast<const Bytef*>(text.data()), text.size()));
}

Result<Trace> ReadOne(const std::string& tasks, const std::string& nodes, TaskTimes times) {
  Trace trace;
  for (const std::string& file : {nodes, tasks}) {
    BERTH_TRY(const std::string text, ReadTextFile(file));
    trace.fingerprint = Fingerprint(trace.fingerprint, text);
  }
  BERTH_TRY(trace.workload, ReadWorkload(nodes, tasks, times));
  return trace;
}

}  // namespace

Trace GeneratedTrace(std::uint64_t seed) {
  Trace trace{GenerateWorkload(seed), 0};
  for (const TraceTask& task : trace.workload.tasks) {
    const std::string text = task.name + std::to_string(task.cpu_milli) + "," +
                             std::to_string(task.memory_mib) + "," + std::to_string(task.gpus) +
                             "," + std::to_string(task.gpu_milli);
    trace.fingerprint = Fingerprint(trace.fingerprint, text);
  }
  return trace;
}

std::string DefaultDataFolder() {
  const char* const data = std::getenv("BERTH_DATA");  // NOLINT(concurrency-mt-unsafe)
  return std::string(data == nullptr ? "../shared/data" : data) + "/openb";
}

Result<std::vector<Trace>> ReadTraces(const TraceSource& source) {
  std::vector<Trace> traces;
  for (const std::string& given : source.traces) {
    if (given == "generated") {
      traces.push_back(GeneratedTrace(kGeneratedSeed));
      continue;
    }
    BERTH_TRY(const std::vector<std::string> files, FilesOf(given, source.data_folder));
    std::string nodes = source.nodes;
    if (nodes.empty()) {
      const std::string name = "openb_node_list_gpu_node";
      const auto found = FirstFile(source.data_folder, {name});
      if (!found) {
        return Fail(Errc::kNotFound, "nodes: want a file, or " + name + ".csv in " +
                                         source.data_folder + ", found neither");
      }
      nodes = *found;
    }
    for (const std::string& file : files) {
      BERTH_TRY(Trace trace, ReadOne(file, nodes, source.times));
      traces.push_back(std::move(trace));
    }
  }
  for (std::size_t i = 0; i < traces.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (traces[i].workload.name != traces[j].workload.name) continue;
      return Invalid("traces: \"" + traces[i].workload.name + "\" is there twice");
    }
  }
  return traces;
}

}  // namespace berth::replay
