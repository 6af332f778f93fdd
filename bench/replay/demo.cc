// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/demo.h"

#include <cstdio>
#include <filesystem>

#include "base/text.h"
#include "bench/replay/progress.h"
#include "bench/replay/session.h"

namespace berth::replay {
namespace {

constexpr double kInflate = 1.3;

// The first of the names that exists.
Result<std::string> FileIn(const std::string& folder, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    if (std::filesystem::exists(path)) return path.string();
  }
  return Fail(Errc::kNotFound, folder + ": want " + Join(names, " or ") + ", found neither");
}

Result<Workload> WorkloadOf(const DemoOptions& options) {
  if (options.trace_folder.empty()) return GenerateWorkload(options.seed);
  Workload workload;
  workload.name = "openb_pod_list_default";
  BERTH_TRY(const std::string nodes,
            FileIn(options.trace_folder,
                   {"openb_node_list_gpu_node.csv", "openb_node_list_gpu_node.csv.gz"}));
  BERTH_TRY(const std::string tasks,
            FileIn(options.trace_folder,
                   {"openb_pod_list_default.csv", "openb_pod_list_default.csv.gz"}));
  BERTH_TRY(workload.nodes, ReadNodes(nodes));
  BERTH_TRY(workload.tasks, ReadTasks(tasks));
  return workload;
}

void PrintHead() {
  std::printf("\n%-24s %7s %7s %9s %7s %11s   %15s %15s %15s\n", "", "pods", "pods", "GPUs", "GPUs",
              "decisions", "filter ms", "prioritize ms", "bind ms");
  std::printf("%-24s %7s %7s %9s %7s %11s   %15s %15s %15s\n", "policy", "placed", "refused",
              "allocated", "idle", "per second", "p50 / p99", "p50 / p99", "p50 / p99");
}

void PrintRow(const std::string& policy, const SessionResult& session) {
  const ReplayResult& replay = session.replay;
  const double allocated = static_cast<double>(replay.allocated_milli) / kMilliPerGpu;
  const auto decisions = static_cast<double>(replay.decision_us.size());
  const auto ms = [](const LatencySummary& us) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f / %.3f", us.p50 / 1000, us.p99 / 1000);
    return std::string(text);
  };
  std::printf("%-24s %7lld %7lld %9.1f %7.1f %11.0f   %15s %15s %15s\n", policy.c_str(),
              static_cast<long long>(replay.placed), static_cast<long long>(replay.refused),
              allocated, static_cast<double>(replay.gpus_total) - allocated,
              decisions / session.seconds, ms(session.filter_us).c_str(),
              ms(session.prioritize_us).c_str(), ms(session.bind_us).c_str());
}

}  // namespace

Status RunDemo(const DemoOptions& options) {
  BERTH_TRY(const Workload workload, WorkloadOf(options));
  const Arrivals arrivals = DrawArrivals(workload.nodes, workload.tasks, options.seed, kInflate);
  std::printf(
      "workload %s, seed %llu: %zu nodes with %lld GPUs, %zu pods asking for %.0f %% of them\n",
      workload.name.c_str(), static_cast<unsigned long long>(options.seed), workload.nodes.size(),
      static_cast<long long>(GpuCapacityMilli(workload.nodes) / kMilliPerGpu),
      arrivals.tasks.size(), kInflate * 100);
  std::printf(
      "each policy: a fresh `berth serve` on that cluster, asked over HTTP as kube-scheduler "
      "asks\n");
  std::fflush(stdout);
  std::vector<SessionResult> sessions;
  for (const std::string& policy : options.policies) {
    std::printf("  %s ...\n", policy.c_str());
    std::fflush(stdout);
    BERTH_TRY(ReplayPolicy decides, PolicyNamed(policy));
    BERTH_TRY(SessionResult session,
              RunSession(workload, arrivals,
                         {std::move(decides), options.seed, Through::kHttp, options.berth_binary},
                         TerminalProgress(policy)));
    sessions.push_back(std::move(session));
  }
  PrintHead();
  for (std::size_t i = 0; i < sessions.size(); ++i) PrintRow(options.policies[i], sessions[i]);
  return {};
}

}  // namespace berth::replay
