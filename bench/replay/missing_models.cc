// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/missing_models.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace berth::replay {

std::vector<MissingModel> MissingModels(const Workload& workload) {
  std::set<std::string> there;
  for (const TraceNode& node : workload.nodes) {
    if (node.gpus > 0) there.insert(node.model);
  }
  std::map<std::string, MissingModel> missing;
  for (const TraceTask& task : workload.tasks) {
    if (task.gpus == 0 || task.gpu_spec.empty()) continue;
    const std::vector<std::string> models = NamesIn(task.gpu_spec);
    const auto is_there = [&](const std::string& model) { return there.contains(model); };
    const bool stuck = std::ranges::none_of(models, is_there);
    for (const std::string& model : models) {
      if (is_there(model)) continue;
      MissingModel& entry = missing[model];
      entry.model = model;
      ++entry.tasks;
      if (stuck) ++entry.stuck;
    }
  }
  std::vector<MissingModel> list;
  list.reserve(missing.size());
  for (auto& [model, entry] : missing) list.push_back(std::move(entry));
  return list;
}

nlohmann::ordered_json MissingModelsJson(const Workload& workload) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const MissingModel& entry : MissingModels(workload)) {
    rows.push_back({{"model", entry.model}, {"tasks", entry.tasks}, {"stuck", entry.stuck}});
  }
  return rows;
}

void WarnOfMissingModels(const Workload& workload) {
  for (const MissingModel& entry : MissingModels(workload)) {
    std::fprintf(stderr,
                 "berth-replay: warning: %s: no node has the GPU model \"%s\" of %zu tasks; %zu of "
                 "them fit nowhere\n",
                 workload.name.c_str(), entry.model.c_str(), entry.tasks, entry.stuck);
  }
}

}  // namespace berth::replay
