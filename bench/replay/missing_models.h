// SPDX-License-Identifier: Apache-2.0
//
// Missing models: GPU models that tasks want and that no node has - a name written in two ways, or
// tasks and nodes of different clusters. Such tasks are refused by every policy alike.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/replay/workload.h"

namespace berth::replay {

struct MissingModel {
  std::string model;
  std::size_t tasks = 0;  // that name it
  std::size_t stuck = 0;  // of those, that name no model that a node has
};

// By name. Only tasks and nodes with GPUs count.
std::vector<MissingModel> MissingModels(const Workload& workload);

// [{"model", "tasks", "stuck"}]
nlohmann::ordered_json MissingModelsJson(const Workload& workload);

// A warning on stderr for each.
void WarnOfMissingModels(const Workload& workload);

}  // namespace berth::replay
