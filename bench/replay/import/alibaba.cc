// SPDX-License-Identifier: Apache-2.0
//
// The traces of Alibaba: PAI of 2020, DLRM of 2025, spot GPUs of 2026.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "bench/replay/csv.h"
#include "bench/replay/import/import.h"

namespace berth::replay {
namespace {

std::int64_t Times(double number, double factor) { return std::llround(number * factor); }

Result<std::vector<TraceNode>> PaiNodes(const std::string& path) {
  constexpr std::array<std::string_view, 5> kColumns = {"machine", "gpu_type", "cap_cpu", "cap_mem",
                                                        "cap_gpu"};
  BERTH_TRY(const CsvTable table, CsvTable::ReadWithoutHeader(path, kColumns));
  std::vector<TraceNode> nodes;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BERTH_TRY(const double cpus, AmountAt(table, row, 2, "cap_cpu"));
    BERTH_TRY(const double memory, AmountAt(table, row, 3, "cap_mem"));
    BERTH_TRY(const std::int64_t gpus, table.Integer(row, 4, 0, kMaxGpusPerNode));
    nodes.push_back({std::string(table.at(row, 0)), Times(cpus, 1000), Times(memory, 1024),
                     static_cast<int>(gpus), gpus == 0 ? "" : std::string(table.at(row, 1))});
  }
  return nodes;
}

Result<std::vector<TraceNode>> SpotNodes(const std::string& path) {
  constexpr std::array<std::string_view, 4> kColumns = {"node_name", "gpu_model",
                                                        "gpu_capacity_num", "cpu_num"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(path, kColumns));
  std::vector<TraceNode> nodes;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BERTH_TRY(const std::int64_t gpus, table.Integer(row, 2, 0, kMaxGpusPerNode));
    BERTH_TRY(const double cpus, AmountAt(table, row, 3, "cpu_num"));
    nodes.push_back({std::string(table.at(row, 0)), Times(cpus, 1000), 0, static_cast<int>(gpus),
                     std::string(table.at(row, 1))});
  }
  return nodes;
}

}  // namespace

Result<Imported> ImportPai(const std::string& jobs, const std::string& nodes) {
  constexpr std::array<std::string_view, 10> kColumns = {
      "job_name", "task_name", "inst_num", "status",   "start_time",
      "end_time", "plan_cpu",  "plan_mem", "plan_gpu", "gpu_type"};
  BERTH_TRY(const CsvTable table, CsvTable::ReadWithoutHeader(jobs, kColumns));
  JobImporter importer;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto start = NumberOf(table.at(row, 4)), end = NumberOf(table.at(row, 5));
    if (!start || !end) {
      importer.PassOver("its start or its end is not there");
      continue;
    }
    BERTH_TRY(const double instances, AmountAt(table, row, 2, "inst_num"));
    BERTH_TRY(const double cpu, AmountAt(table, row, 6, "plan_cpu"));
    BERTH_TRY(const double memory, AmountAt(table, row, 7, "plan_mem"));
    BERTH_TRY(const double gpu, AmountAt(table, row, 8, "plan_gpu"));
    importer.Add({.name = std::string(table.at(row, 0)) + "-" + std::string(table.at(row, 1)),
                  .pods = Times(instances, 1),
                  .cpu_milli = Times(cpu, 10),  // a hundredth of a core is ten thousandths
                  .memory_mib = Times(memory, 1024),
                  .gpu_milli = Times(gpu, 10),
                  .submitted_s = Times(*start, 1),
                  .runs_s = Times(*end - *start, 1)});
  }
  Imported imported = importer.Take();
  if (!nodes.empty()) {
    BERTH_TRY(imported.nodes, PaiNodes(nodes));
  }
  return imported;
}

Result<Imported> ImportDlrm(const std::string& jobs, const std::string&) {
  constexpr std::array<std::string_view, 6> kColumns = {"instance_sn",   "cpu_request",
                                                        "gpu_request",   "memory_request",
                                                        "creation_time", "deletion_time"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(jobs, kColumns));
  double last = 0;  // at which somebody came or went: until then the others ran
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const std::size_t column : {std::size_t{4}, std::size_t{5}}) {
      last = std::max(last, NumberOf(table.at(row, column)).value_or(0));
    }
  }
  JobImporter importer;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double created = NumberOf(table.at(row, 4)).value_or(0);
    const double deleted = NumberOf(table.at(row, 5)).value_or(last);
    BERTH_TRY(const double cpu, AmountAt(table, row, 1, "cpu_request"));
    BERTH_TRY(const double gpu, AmountAt(table, row, 2, "gpu_request"));
    BERTH_TRY(const double memory, AmountAt(table, row, 3, "memory_request"));
    importer.Add({.name = std::string(table.at(row, 0)),
                  .cpu_milli = Times(cpu, 1000),
                  .memory_mib = Times(memory, 1024),
                  .gpu_milli = Times(gpu, 1000),
                  .submitted_s = Times(created, 1),
                  .runs_s = Times(deleted - created, 1)});
  }
  return importer.Take();
}

Result<Imported> ImportSpotGpu(const std::string& jobs, const std::string& nodes) {
  constexpr std::array<std::string_view, 8> kColumns = {"job_name",    "gpu_model",  "cpu_request",
                                                        "gpu_request", "worker_num", "submit_time",
                                                        "duration",    "job_type"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(jobs, kColumns));
  JobImporter importer;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BERTH_TRY(const double cpu, AmountAt(table, row, 2, "cpu_request"));
    BERTH_TRY(const double gpu, AmountAt(table, row, 3, "gpu_request"));
    BERTH_TRY(const double workers, AmountAt(table, row, 4, "worker_num"));
    BERTH_TRY(const double submitted, AmountAt(table, row, 5, "submit_time"));
    BERTH_TRY(const double duration, AmountAt(table, row, 6, "duration"));
    importer.Add({.name = std::string(table.at(row, 0)),
                  .pods = Times(workers, 1),
                  .cpu_milli = Times(cpu, 1000),
                  .gpu_milli = Times(gpu, 1000),
                  .gpu_spec = std::string(table.at(row, 1)),
                  .priority = table.at(row, 7) == "HP" ? 1 : 0,
                  .submitted_s = Times(submitted, 1),
                  .runs_s = Times(duration, 1)});
  }
  Imported imported = importer.Take();
  if (!nodes.empty()) {
    BERTH_TRY(imported.nodes, SpotNodes(nodes));
  }
  return imported;
}

}  // namespace berth::replay
