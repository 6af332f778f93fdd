// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/import/import.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "bench/replay/csv.h"

namespace berth::replay {
namespace {

constexpr std::array<TraceFormat, 6> kFormats = {{
    {"philly", "cluster_job_log", "cluster_machine_list", ImportPhilly},
    {"helios", "cluster_log.csv", "", ImportSlurmJobs},
    {"acme", "trace_seren.csv or trace_kalos.csv", "", ImportSlurmJobs},
    {"pai-2020", "pai_task_table.csv", "pai_machine_spec.csv", ImportPai},
    {"dlrm-2025", "disaggregated_DLRM_trace.csv", "", ImportDlrm},
    {"spot-gpu-2026", "job_info_df.csv", "node_info_df.csv", ImportSpotGpu},
}};

}  // namespace

std::span<const TraceFormat> TraceFormats() { return kFormats; }

Result<Imported> ImportTrace(std::string_view format, const std::string& jobs,
                             const std::string& nodes) {
  const auto found = std::ranges::find(kFormats, format, &TraceFormat::name);
  if (found == kFormats.end()) {
    return Invalid("--from: want " + Join(kFormats, ", ", &TraceFormat::name) + ", got \"" +
                   std::string(format) + "\"");
  }
  if (found->nodes.empty() && !nodes.empty()) {
    return Invalid("--node-table: the trace " + std::string(format) + " has no table of nodes");
  }
  return found->import(jobs, nodes);
}

std::string TasksCsv(const Imported& imported) {
  const bool has_priorities =
      std::ranges::any_of(imported.tasks, [](const TraceTask& task) { return task.priority != 0; });
  std::string text =
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time";
  text += has_priorities ? ",priority\n" : "\n";
  for (const TraceTask& task : imported.tasks) {
    text += CsvField(task.name);
    for (const std::int64_t number :
         {task.cpu_milli, task.memory_mib, std::int64_t{task.gpus}, std::int64_t{task.gpu_milli}}) {
      text += "," + std::to_string(number);
    }
    text += "," + CsvField(task.gpu_spec) + "," + std::to_string(task.created_s) + "," +
            std::to_string(task.deleted_s);
    if (has_priorities) text += "," + std::to_string(task.priority);
    text += "\n";
  }
  return text;
}

std::string NodesCsv(const Imported& imported) {
  std::string text = "sn,cpu_milli,memory_mib,gpu,model\n";
  for (const TraceNode& node : imported.nodes) {
    text += CsvField(node.name) + "," + std::to_string(node.cpu_milli) + "," +
            std::to_string(node.memory_mib) + "," + std::to_string(node.gpus) + "," +
            CsvField(node.model) + "\n";
  }
  return text;
}

}  // namespace berth::replay
