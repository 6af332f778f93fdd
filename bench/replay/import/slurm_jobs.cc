// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "bench/replay/csv.h"
#include "bench/replay/import/import.h"

namespace berth::replay {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();

// How long the job ran. The two times say so where both are there: `duration` of Kalos contains the
// time in the queue, by the examples of its README.
std::optional<std::int64_t> RunOf(const CsvTable& table, std::size_t row, std::size_t start,
                                  std::size_t end) {
  if (start == CsvTable::npos || end == CsvTable::npos) return std::nullopt;
  const auto from = SecondsOf(table.at(row, start)), to = SecondsOf(table.at(row, end));
  if (!from || !to) return std::nullopt;
  return *to - *from;
}

}  // namespace

Result<Imported> ImportSlurmJobs(const std::string& jobs, const std::string&) {
  constexpr std::array<std::string_view, 6> kColumns = {"job_id",   "gpu_num",     "cpu_num",
                                                        "node_num", "submit_time", "duration"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(jobs, kColumns));
  const std::size_t memory = table.ColumnNamed("mem_per_pod_GB");
  const std::size_t start = table.ColumnNamed("start_time"), end = table.ColumnNamed("end_time");
  JobImporter importer;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BERTH_TRY(const std::int64_t gpus, table.Integer(row, 1, 0, kMost));
    BERTH_TRY(const std::int64_t cpus, table.Integer(row, 2, 0, kMost));
    BERTH_TRY(const std::int64_t nodes, table.Integer(row, 3, 0, kMost));
    const auto submitted = SecondsOf(table.at(row, 4));
    if (!submitted) {
      return Invalid(table.PlaceOf(row) + ": column submit_time: want YYYY-MM-DD HH:MM:SS, got \"" +
                     std::string(table.at(row, 4)) + "\"");
    }
    if (nodes == 0 || gpus % nodes != 0) {
      importer.PassOver("its GPUs are not the same number on each node");
      continue;
    }
    TraceJob job{.name = std::string(table.at(row, 0)), .pods = nodes, .submitted_s = *submitted};
    job.cpu_milli = cpus * 1000 / nodes;
    job.gpu_milli = gpus / nodes * kMilliPerGpu;
    if (memory != CsvTable::npos) {
      BERTH_TRY(const double gib, AmountAt(table, row, memory, "mem_per_pod_GB"));
      job.memory_mib = std::llround(gib * 1024);
    }
    const auto run = RunOf(table, row, start, end);
    job.runs_s = run ? *run : std::llround(NumberOf(table.at(row, 5)).value_or(0));
    importer.Add(job);
  }
  return importer.Take();
}

}  // namespace berth::replay
