// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/trace.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "bench/replay/csv.h"
#include "topology/gpu_model.h"

namespace berth::replay {
namespace {

constexpr std::int64_t kBytesPerMib = 1 << 20;
constexpr std::int64_t kMostCpuMilli = 1'000'000'000;
constexpr std::int64_t kMostMemoryMib = std::int64_t{1} << 40;

Status CheckUnique(const CsvTable& table) {
  std::vector<std::string_view> names;
  for (std::size_t row = 0; row < table.rows(); ++row) names.push_back(table.at(row, 0));
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  for (std::size_t row = table.rows(); row-- > 0;) {
    if (table.at(row, 0) == *twice) {
      return Invalid(table.PlaceOf(row) + ": name \"" + std::string(*twice) + "\" is there twice");
    }
  }
  return {};
}

Result<TraceTask> TaskOf(const CsvTable& table, std::size_t row, std::size_t spec_column) {
  TraceTask task{std::string(table.at(row, 0)), 0, 0, 0, 0, ""};
  BERTH_TRY(task.cpu_milli, table.Integer(row, 1, 0, kMostCpuMilli));
  BERTH_TRY(task.memory_mib, table.Integer(row, 2, 0, kMostMemoryMib));
  BERTH_TRY(const std::int64_t gpus, table.Integer(row, 3, 0, kMaxGpusPerNode));
  BERTH_TRY(const std::int64_t milli, table.Integer(row, 4, 0, kMilliPerGpu));
  task.gpus = static_cast<int>(gpus);
  task.gpu_milli = gpus == 0 ? 0 : static_cast<int>(milli);
  if (gpus > 0 && milli == 0) {
    return Invalid(table.PlaceOf(row) + ": column gpu_milli: want 1..1000 with num_gpu > 0, got 0");
  }
  if (gpus > 1 && milli != kMilliPerGpu) {
    return Invalid(table.PlaceOf(row) + ": column gpu_milli: want 1000 with num_gpu > 1, got " +
                   std::to_string(milli));
  }
  if (spec_column != CsvTable::npos) task.gpu_spec = table.at(row, spec_column);
  return task;
}

}  // namespace

Result<std::vector<TraceNode>> ReadNodes(const std::string& path) {
  constexpr std::array<std::string_view, 5> kColumns = {"sn", "cpu_milli", "memory_mib", "gpu",
                                                        "model"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(path, kColumns));
  BERTH_TRY_STATUS(CheckUnique(table));
  std::vector<TraceNode> nodes;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    TraceNode node{std::string(table.at(row, 0)), 0, 0, 0, std::string(table.at(row, 4))};
    BERTH_TRY(node.cpu_milli, table.Integer(row, 1, 0, kMostCpuMilli));
    BERTH_TRY(node.memory_mib, table.Integer(row, 2, 0, kMostMemoryMib));
    BERTH_TRY(const std::int64_t gpus, table.Integer(row, 3, 0, kMaxGpusPerNode));
    node.gpus = static_cast<int>(gpus);
    if (Status valid = Validate(ToNodeSpec(node, node.name)); !valid) {
      return tl::unexpected(std::move(valid).error().Within(table.PlaceOf(row) + ": node"));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<TraceTask>> ReadTasks(const std::string& path) {
  constexpr std::array<std::string_view, 5> kColumns = {"name", "cpu_milli", "memory_mib",
                                                        "num_gpu", "gpu_milli"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(path, kColumns));
  BERTH_TRY_STATUS(CheckUnique(table));
  const std::size_t spec_column = table.ColumnNamed("gpu_spec");
  std::vector<TraceTask> tasks;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BERTH_TRY(TraceTask task, TaskOf(table, row, spec_column));
    tasks.push_back(std::move(task));
  }
  std::ranges::sort(tasks, {}, &TraceTask::name);
  return tasks;
}

NodeSpec ToNodeSpec(const TraceNode& node, std::string name) {
  const GpuModel* model = FindGpuModel(node.model);
  const std::int64_t gpu_memory = model == nullptr ? 0 : model->memory_mib;
  NodeSpec spec{
      std::move(name), node.model, node.cpu_milli, node.memory_mib * kBytesPerMib, true, {}};
  spec.gpus.assign(static_cast<std::size_t>(node.gpus), GpuSpec{"", gpu_memory, true});
  return spec;
}

std::vector<std::string> ModelsOf(const std::string& gpu_spec) {
  std::vector<std::string> models;
  for (const std::string_view model : SplitFields(gpu_spec, '|')) {
    if (!model.empty()) models.emplace_back(model);
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

RequestShape ToShape(const TraceTask& task) {
  RequestShape shape{task.cpu_milli, task.memory_mib * kBytesPerMib, NoGpu{},
                     ModelsOf(task.gpu_spec)};
  if (task.gpus == 1 && task.gpu_milli < kMilliPerGpu) {
    shape.gpus = GpuShare{task.gpu_milli, 0};
  } else if (task.gpus > 0) {
    shape.gpus = WholeGpus{task.gpus};
  }
  return shape;
}

std::int64_t GpuCapacityMilli(const std::vector<TraceNode>& nodes) {
  std::int64_t total = 0;
  for (const TraceNode& node : nodes) total += std::int64_t{node.gpus} * kMilliPerGpu;
  return total;
}

}  // namespace berth::replay
