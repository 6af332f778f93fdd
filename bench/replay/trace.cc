// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/trace.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "bench/replay/csv.h"
#include "topology/gpu_vendor.h"

namespace berth::replay {
namespace {

constexpr std::int64_t kBytesPerMib = 1 << 20;
constexpr std::int64_t kMostCpuMilli = 1'000'000'000;
constexpr std::int64_t kMostMemoryMib = std::int64_t{1} << 40;
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 32;  // 136 years
constexpr double kMostPrice = 1e6;

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

// The columns that a file of tasks may have beyond those that it must have.
struct OptionalColumns {
  explicit OptionalColumns(const CsvTable& table)
      : gpu_spec(table.ColumnNamed("gpu_spec")),
        created(table.ColumnNamed("creation_time")),
        deleted(table.ColumnNamed("deletion_time")),
        priority(table.ColumnNamed("priority")),
        workload_class(table.ColumnNamed("class")) {}
  std::size_t gpu_spec, created, deleted, priority, workload_class;
};

Status ReadTimes(const CsvTable& table, std::size_t row, const OptionalColumns& columns,
                 TraceTask& task) {
  BERTH_TRY(task.created_s, table.Integer(row, columns.created, 0, kMostSeconds));
  BERTH_TRY(task.deleted_s, table.Integer(row, columns.deleted, 0, kMostSeconds));
  if (task.deleted_s >= task.created_s) return {};
  return Invalid(table.PlaceOf(row) + ": column deletion_time: want at least creation_time (" +
                 std::to_string(task.created_s) + "), got " + std::to_string(task.deleted_s));
}

Result<TraceTask> TaskOf(const CsvTable& table, std::size_t row, const OptionalColumns& columns) {
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
  if (columns.gpu_spec != CsvTable::npos) task.gpu_spec = table.at(row, columns.gpu_spec);
  if (columns.priority != CsvTable::npos && !table.at(row, columns.priority).empty()) {
    constexpr std::int64_t kLargest = std::numeric_limits<int>::max();
    BERTH_TRY(const std::int64_t priority,
              table.Integer(row, columns.priority, -kLargest, kLargest));
    task.priority = static_cast<int>(priority);
  }
  if (columns.workload_class != CsvTable::npos) {
    task.workload_class = table.at(row, columns.workload_class);
  }
  return task;
}

// 0 where the field is empty.
Result<double> PriceIn(const CsvTable& table, std::size_t row, std::size_t column) {
  const std::string text(table.at(row, column));
  double price = 0;
  if (text.empty()) return price;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), price);
  if (code == std::errc() && end == text.data() + text.size() && price >= 0 && price < kMostPrice) {
    return price;
  }
  return Invalid(table.PlaceOf(row) + ": column price_per_hour: want a price such as 12.5, got \"" +
                 text + "\"");
}

}  // namespace

Result<std::vector<TraceNode>> ReadNodes(const std::string& path) {
  constexpr std::array<std::string_view, 5> kColumns = {"sn", "cpu_milli", "memory_mib", "gpu",
                                                        "model"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(path, kColumns));
  BERTH_TRY_STATUS(CheckUnique(table));
  const std::size_t traits = table.ColumnNamed("traits");
  const std::size_t price = table.ColumnNamed("price_per_hour");
  std::vector<TraceNode> nodes;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    TraceNode node{std::string(table.at(row, 0)), 0, 0, 0, std::string(table.at(row, 4))};
    BERTH_TRY(node.cpu_milli, table.Integer(row, 1, 0, kMostCpuMilli));
    BERTH_TRY(node.memory_mib, table.Integer(row, 2, 0, kMostMemoryMib));
    BERTH_TRY(const std::int64_t gpus, table.Integer(row, 3, 0, kMaxGpusPerNode));
    node.gpus = static_cast<int>(gpus);
    if (traits != CsvTable::npos) node.traits = NamesIn(table.at(row, traits));
    if (price != CsvTable::npos) {
      BERTH_TRY(node.price_per_hour, PriceIn(table, row, price));
    }
    if (Status valid = Validate(ToNodeSpec(node, node.name)); !valid) {
      return tl::unexpected(std::move(valid).error().Within(table.PlaceOf(row) + ": node"));
    }
    nodes.push_back(std::move(node));
  }
  return nodes;
}

Result<std::vector<TraceTask>> ReadTasks(const std::string& path, TaskTimes times) {
  constexpr std::array<std::string_view, 5> kColumns = {"name", "cpu_milli", "memory_mib",
                                                        "num_gpu", "gpu_milli"};
  BERTH_TRY(const CsvTable table, CsvTable::Read(path, kColumns));
  BERTH_TRY_STATUS(CheckUnique(table));
  const OptionalColumns columns(table);
  const bool timed = times == TaskTimes::kRequired;
  for (const auto& [column, name] :
       {std::pair(columns.created, "creation_time"), std::pair(columns.deleted, "deletion_time")}) {
    if (!timed || column != CsvTable::npos) continue;
    return Invalid(path + ":1: want the columns creation_time and deletion_time, got no " + name +
                   " (with a load, times are drawn instead)");
  }
  std::vector<TraceTask> tasks;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    BERTH_TRY(TraceTask task, TaskOf(table, row, columns));
    if (timed) {
      BERTH_TRY_STATUS(ReadTimes(table, row, columns, task));
    }
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
  spec.traits = node.traits;
  if (node.gpus > 0) spec.gpu_price = node.price_per_hour / node.gpus;
  return spec;
}

std::vector<std::string> NamesIn(std::string_view joined) {
  std::vector<std::string> names;
  for (const std::string_view name : SplitFields(joined, '|')) {
    if (!name.empty()) names.emplace_back(name);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

RequestShape ToShape(const TraceTask& task) {
  RequestShape shape{task.cpu_milli, task.memory_mib * kBytesPerMib, NoGpu{},
                     NamesIn(task.gpu_spec)};
  if (task.gpus == 1 && task.gpu_milli < kMilliPerGpu) {
    shape.gpus = GpuShare{task.gpu_milli, 0};
  } else if (task.gpus > 0) {
    shape.gpus = WholeGpus{task.gpus};
  }
  return shape;
}

std::int64_t GpuCapacityMilli(const std::vector<TraceNode>& nodes) {
  std::int64_t total = 0;
  for (const TraceNode& node : nodes) {
    total += node.free_milli.value_or(std::int64_t{node.gpus} * kMilliPerGpu);
  }
  return total;
}

}  // namespace berth::replay
