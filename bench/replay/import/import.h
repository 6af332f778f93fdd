// SPDX-License-Identifier: Apache-2.0
//
// Public traces of GPU clusters, as their authors publish them. docs/replay.md says for each
// what is assumed and left out.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/replay/import/imported.h"

namespace berth::replay {

struct TraceFormat {
  std::string_view name;   // "philly"
  std::string_view jobs;   // what the file of jobs is called there
  std::string_view nodes;  // that of nodes; "" = the trace has none
  // Error: kNotFound, kInvalidArgument naming file, line and column.
  Result<Imported> (*import)(const std::string& jobs, const std::string& nodes);
};

std::span<const TraceFormat> TraceFormats();

// nodes: "" = no table of nodes is read. Error: as above; kInvalidArgument for a format that is not
// known, or nodes of one that has none.
Result<Imported> ImportTrace(std::string_view format, const std::string& jobs,
                             const std::string& nodes);

// The tables, as ReadTasks and ReadNodes read them.
std::string TasksCsv(const Imported& imported);
std::string NodesCsv(const Imported& imported);

// --- one format each

// Jobs of Slurm, of one or more nodes each: cluster_log.csv of Helios
// (S-Lab-System-Group/HeliosData at 106713b, README.md), trace_seren.csv and trace_kalos.csv of
// Acme (InternLM/AcmeTrace at 6d6ac9c, README.md).
Result<Imported> ImportSlurmJobs(const std::string& jobs, const std::string& nodes);
// pai_task_table.csv and pai_machine_spec.csv, which have no header (alibaba/clusterdata at
// 02a1be1, cluster-trace-gpu-v2020/README.md, data/*.header).
Result<Imported> ImportPai(const std::string& jobs, const std::string& nodes);
// cluster_job_log and cluster_machine_list (msr-fiddle/philly-traces at 29a1b87, README.md).
Result<Imported> ImportPhilly(const std::string& jobs, const std::string& nodes);
// disaggregated_DLRM_trace.csv (alibaba/clusterdata at 62506b7, cluster-trace-gpu-v2025/README.md).
Result<Imported> ImportDlrm(const std::string& jobs, const std::string& nodes);
// job_info_df.csv, node_info_df.csv (alibaba/clusterdata at 7deb28c,
// cluster-trace-v2026-spot-gpu/README.md).
Result<Imported> ImportSpotGpu(const std::string& jobs, const std::string& nodes);

}  // namespace berth::replay
