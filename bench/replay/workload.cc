// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/workload.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/random.h"
#include "bench/replay/text.h"

namespace berth::replay {
namespace {

struct NodeKind {
  std::string_view model;
  int gpus;
  int cores;
  int count;
};

// The kinds of the trace's GPU nodes, with their numbers.
constexpr std::array<NodeKind, 15> kNodeKinds = {{
    {"G2", 8, 96, 549},
    {"T4", 2, 104, 387},
    {"P100", 2, 16, 107},
    {"G3", 8, 128, 39},
    {"V100M16", 4, 32, 28},
    {"P100", 2, 64, 22},
    {"V100M32", 8, 96, 21},
    {"V100M16", 1, 8, 19},
    {"T4", 4, 96, 17},
    {"V100M32", 4, 48, 9},
    {"V100M16", 8, 64, 7},
    {"P100", 1, 8, 3},
    {"P100", 2, 8, 2},
    {"A10", 1, 128, 2},
    {"V100M16", 8, 82, 1},
}};
constexpr std::int64_t kNodeMibPerCore = 4708;  // 503,828,480 MiB over 107,018 cores

// The most frequent task shapes of the trace, with how often each occurs there.
struct TaskShape {
  int cpu_milli;
  int gpus;
  int gpu_milli;
  int count;
};
constexpr std::array<TaskShape, 37> kTaskShapes = {{
    // no GPU
    {12500, 0, 0, 366},
    {32000, 0, 0, 290},
    {8000, 0, 0, 185},
    {15400, 0, 0, 120},
    {16500, 0, 0, 95},
    {16000, 0, 0, 32},
    // a share: 810 thousandths leave a gap that almost nothing fits
    {3152, 1, 810, 1047},
    {11908, 1, 470, 388},
    {8000, 1, 470, 360},
    {11908, 1, 650, 237},
    {4000, 1, 320, 232},
    {4000, 1, 230, 122},
    {6000, 1, 460, 120},
    {3152, 1, 590, 75},
    {4152, 1, 550, 72},
    {8000, 1, 320, 72},
    {4000, 1, 160, 106},
    {4152, 1, 370, 45},
    {4000, 1, 220, 62},
    {4152, 1, 810, 31},
    {1000, 1, 320, 22},
    {6000, 1, 480, 87},
    // one GPU
    {11300, 1, 1000, 874},
    {11400, 1, 1000, 599},
    {3152, 1, 1000, 470},
    {12000, 1, 1000, 326},
    {18708, 1, 1000, 255},
    {9810, 1, 1000, 195},
    {8000, 1, 1000, 164},
    {4000, 1, 1000, 159},
    {15700, 1, 1000, 308},
    {11908, 1, 1000, 153},
    {14200, 1, 1000, 408},
    // more
    {16200, 2, 1000, 16},
    {32200, 4, 1000, 15},
    {64200, 8, 1000, 22},
    {88000, 8, 1000, 22},
}};

const TaskShape& DrawShape(Random& random) {
  int sum = 0;
  for (const TaskShape& shape : kTaskShapes) sum += shape.count;
  auto left = static_cast<int>(random.Below(static_cast<std::uint64_t>(sum)));
  for (const TaskShape& shape : kTaskShapes) {
    left -= shape.count;
    if (left < 0) return shape;
  }
  return kTaskShapes.back();
}

TraceTask DrawTask(Random& random) {
  const TaskShape& shape = DrawShape(random);
  const auto mib_per_core = static_cast<std::int64_t>(1024 * (1 + random.Below(4)));
  return {"",         shape.cpu_milli, shape.cpu_milli * mib_per_core / 1000,
          shape.gpus, shape.gpu_milli, ""};
}

}  // namespace

std::string TraceNameOf(const std::string& path) {
  std::filesystem::path stem = std::filesystem::path(path).filename();
  while (stem.has_extension()) stem = stem.stem();
  return stem.string();
}

Workload GenerateWorkload(std::uint64_t seed, std::size_t tasks) {
  Workload workload;
  workload.name = "generated";
  std::size_t node_count = 0;
  for (const NodeKind& kind : kNodeKinds) node_count += static_cast<std::size_t>(kind.count);
  for (const NodeKind& kind : kNodeKinds) {
    for (int i = 0; i < kind.count; ++i) {
      workload.nodes.push_back({"node-" + Padded(workload.nodes.size(), node_count),
                                std::int64_t{kind.cores} * 1000, kind.cores * kNodeMibPerCore,
                                kind.gpus, std::string(kind.model)});
    }
  }
  Random random(seed);
  for (std::size_t i = 0; i < tasks; ++i) {
    workload.tasks.push_back(DrawTask(random));
    workload.tasks.back().name = "task-" + Padded(i, tasks);
  }
  return workload;
}

Status ReadCluster(const std::string& path, Workload& workload) {
  if (!StartState::IsIn(path)) {
    BERTH_TRY(workload.nodes, ReadNodes(path));
    return {};
  }
  BERTH_TRY(workload.start, StartState::Read(path));
  workload.nodes = workload.start->nodes();
  return {};
}

Result<Workload> ReadWorkload(const std::string& nodes, const std::string& tasks, TaskTimes times) {
  Workload workload;
  workload.name = TraceNameOf(tasks);
  BERTH_TRY_STATUS(ReadCluster(nodes, workload));
  BERTH_TRY(workload.tasks, ReadTasks(tasks, times));
  if (workload.tasks.empty()) return Invalid(tasks + ": want at least one task, got none");
  return workload;
}

Status WriteWorkload(const Workload& workload, const std::string& nodes_path,
                     const std::string& tasks_path) {
  std::ofstream nodes(nodes_path);
  nodes << "sn,cpu_milli,memory_mib,gpu,model\n";
  for (const TraceNode& node : workload.nodes) {
    nodes << node.name << ',' << node.cpu_milli << ',' << node.memory_mib << ',' << node.gpus << ','
          << node.model << '\n';
  }
  std::ofstream tasks(tasks_path);
  tasks << "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n";
  for (const TraceTask& task : workload.tasks) {
    tasks << task.name << ',' << task.cpu_milli << ',' << task.memory_mib << ',' << task.gpus << ','
          << task.gpu_milli << ',' << task.gpu_spec << '\n';
  }
  nodes.close();
  tasks.close();
  if (!nodes) return Fail(Errc::kUnavailable, nodes_path + ": cannot be written");
  if (!tasks) return Fail(Errc::kUnavailable, tasks_path + ": cannot be written");
  return {};
}

}  // namespace berth::replay
