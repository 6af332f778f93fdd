// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/demo.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/replay/compare/plan.h"
#include "bench/replay/compare/report_folder.h"
#include "bench/replay/compare/runs.h"
#include "bench/replay/demo_text.h"
#include "bench/replay/parallel.h"
#include "bench/replay/progress.h"
#include "bench/replay/server_process.h"
#include "bench/replay/session.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kPolicies = {"expected-waste", "kube-scheduler", "most-allocated",
                                            "fragmentation-gradient"};

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

bool HasTerminal() { return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0; }

Result<Plan> PlanOf(const DemoOptions& options) {
  Plan plan;
  plan.first_seed = options.seed;
  BERTH_TRY(plan.policies, Policies(kPolicies, {}));
  if (options.trace_folder.empty()) {
    plan.traces = {GeneratedTrace(options.seed)};
    return plan;
  }
  TraceSource source;
  source.traces = {"openb_pod_list_default"};
  source.data_folder = options.trace_folder;
  BERTH_TRY(plan.traces, ReadTraces(source));
  return plan;
}

std::string Head(const Plan& plan, const Arrivals& arrivals) {
  const Workload& workload = plan.traces.front().workload;
  return "Workload " + workload.name + ", seed " + std::to_string(plan.first_seed) + ": " +
         WithCommas(static_cast<std::int64_t>(arrivals.tasks.size())) + " pods ask for " +
         std::to_string(static_cast<int>(plan.inflate * 100)) + " % of the " +
         WithCommas(GpuCapacityMilli(workload.nodes) / kMilliPerGpu) + " GPUs of " +
         WithCommas(static_cast<std::int64_t>(workload.nodes.size())) + " nodes; none ends.\n";
}

// The first policy over HTTP, as kube-scheduler asks. `server` outlives the run.
Result<SessionResult> Serve(const Plan& plan, const Arrivals& arrivals, const DemoOptions& options,
                            std::optional<ServerProcess>& server) {
  SessionOptions session{plan.policies.front(), options.seed, Through::kHttp, options.berth_binary};
  session.on_server = [&server](ServerProcess started) {
    server.emplace(std::move(started));
    if (!HasTerminal()) return;
    Print("\nThe live page fills while you look: http://" + server->address() + "/\n\n");
  };
  return RunSession(plan.traces.front().workload, arrivals, session,
                    TerminalProgress("over HTTP, as kube-scheduler asks"));
}

std::string Times(const SessionResult& served) {
  char text[240];
  const auto decisions = static_cast<double>(served.replay.decision_us.size());
  std::snprintf(text, sizeof text,
                "Over HTTP: %.0f pods a second; p50 / p99 in ms: filter %.2f / %.2f, "
                "prioritize %.2f / %.2f, bind %.2f / %.2f.\n",
                decisions / served.seconds, served.filter_us.p50 / 1000,
                served.filter_us.p99 / 1000, served.prioritize_us.p50 / 1000,
                served.prioritize_us.p99 / 1000, served.bind_us.p50 / 1000,
                served.bind_us.p99 / 1000);
  return text;
}

// When the last pods have arrived.
double IdlePercent(const Json& curve) {
  for (std::size_t i = curve.size(); i-- > 0;) {
    if (curve[i].is_number()) return 100 - curve[i].get<double>();
  }
  return 100;
}

DemoRuns RowsOf(const std::vector<Json>& records) {
  DemoRuns runs;
  for (const Json& record : records) {
    runs.gpus = record.at("gpus_total");
    const Json& arrivals = record.at("arrivals");
    const double idle = IdlePercent(arrivals.at("allocated_pct")) / 100;
    runs.rows.push_back({record.at("policy"), arrivals.at("placed"), arrivals.at("refused"),
                         idle * static_cast<double>(runs.gpus)});
  }
  return runs;
}

// A terminal of UTF-8 shows blocks, and the rest of the world number signs.
std::string Bar() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    const bool utf8 = locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
    return utf8 && isatty(STDOUT_FILENO) != 0 ? "\u2588" : "#";
  }
  return "#";
}

// Shorter where the program is below the working directory.
std::string Here(const std::string& program) {
  std::error_code ignored;
  const std::string near = std::filesystem::relative(program, ignored).string();
  return near.empty() || near.starts_with("..") ? program : near;
}

std::string GoOn(const DemoOptions& options) {
  const std::string berth = Here(options.berth_binary);
  return "Go on:\n"
         "  xdg-open " +
         options.report + "/report.html\n  " + berth +
         "-replay compare --policies kube-scheduler,expected-waste --traces generated "
         "--with-departures --load 1 --report " +
         options.report +
         "/waits\n"
         "  kubectl get nodes,pods -A -o json > c.json && " +
         berth + " serve --cluster c.json\n";
}

void StayForThePage(const std::optional<ServerProcess>& server) {
  if (!server || !HasTerminal()) return;
  Print("\nThe live page stays at http://" + server->address() + "/ until you press Enter. ");
  for (int c = std::getchar(); c != '\n' && c != EOF; c = std::getchar()) {
  }
}

}  // namespace

Status RunDemo(const DemoOptions& options, const MadeWith& made_with) {
  BERTH_TRY(const Plan plan, PlanOf(options));
  const Workload& workload = plan.traces.front().workload;
  const Arrivals arrivals =
      DrawArrivals(workload.nodes, workload.tasks, options.seed, plan.inflate);
  Print(Head(plan, arrivals));
  std::optional<ServerProcess> server;
  BERTH_TRY(const SessionResult served, Serve(plan, arrivals, options, server));
  BERTH_TRY(std::vector<Json> records,
            RunPlan(plan, {}, AllCores(), TerminalProgress("four policies side by side")));
  const DemoRuns runs = RowsOf(records);
  BERTH_TRY_STATUS(
      WriteReportFiles({PlanJson(plan), std::move(records), made_with}, options.report));
  Print("\n" + DemoTable(runs, Bar()) + "\n" + DemoSentence(runs) + "\n");
  if (served.replay.placed != runs.rows.front().placed) {
    Print("Over HTTP " + WithCommas(served.replay.placed) + " pods were placed.\n");
  }
  Print(Times(served) + "Report with plots: " + options.report + "/report.html\n\n" +
        GoOn(options));
  StayForThePage(server);
  return {};
}

}  // namespace berth::replay
