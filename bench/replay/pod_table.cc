// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/pod_table.h"

#include <cstdio>

#include "base/text.h"
#include "bench/replay/csv.h"
#include "bench/replay/replay.h"

namespace berth::replay {
namespace {

std::string SecondsText(Millis time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", static_cast<double>(time.count()) / 1000);
  return text;
}

// The columns that every row begins with.
std::string RowBegin(const std::string& policy, const TraceTask& task, std::size_t n,
                     const PodStart& start) {
  const auto index = [](int gpu) { return std::to_string(gpu); };
  return CsvField(policy) + "," + CsvField(PodOf(task, n).id.name) + "," + CsvField(task.name) +
         "," + std::to_string(task.gpus) + "," + std::to_string(task.gpu_milli) + "," +
         CsvField(start.node) + "," + Join(start.gpus, "|", index);
}

}  // namespace

PodStart StartOf(const Placement& placement, Millis at) {
  PodStart start{placement.node.substr(placement.node.find('.') + 1), {}, at};
  for (const DeviceGrant& grant : placement.grants) start.gpus.push_back(grant.gpu);
  return start;
}

std::string PodTableHead() {
  return "policy,name,task,num_gpu,gpu_milli,node,gpus,state,arrival_s,bound_s,wait_s,cut_off,"
         "primed\n";
}

std::string PodRows(const std::string& policy, const std::vector<TraceTask>& tasks,
                    const Arrivals& arrivals, const PodStarts& starts) {
  std::string rows;
  for (std::size_t n = 0; n < starts.size(); ++n) {
    rows += RowBegin(policy, tasks[arrivals.tasks[n]], n, starts[n]) +
            (starts[n].node.empty() ? ",refused" : ",placed") + ",,,,0,0\n";
  }
  return rows;
}

std::string PodRows(const std::string& policy, const std::vector<TraceTask>& tasks,
                    const Stream& stream, const PodStarts& starts) {
  std::string rows;
  for (std::size_t n = 0; n < starts.size(); ++n) {
    const Arrival& arrival = stream.arrivals[n];
    const PodStart& start = starts[n];
    const bool waits = start.node.empty();
    const char* const state = waits                                      ? "waiting"
                              : start.at + arrival.runs < stream.horizon ? "ended"
                                                                         : "running";
    rows += RowBegin(policy, tasks[arrival.task], n, start) + "," + state + "," +
            SecondsText(arrival.at) + "," + (waits ? "" : SecondsText(start.at)) + "," +
            SecondsText((waits ? stream.horizon : start.at) - arrival.at) + "," +
            (waits ? "1," : "0,") + (n < stream.primed ? "1\n" : "0\n");
  }
  return rows;
}

}  // namespace berth::replay
