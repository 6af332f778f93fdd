// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/waste.h"

#include <map>

namespace berth::replay {
namespace {

// The idle GPU of a node, in thousandths.
struct Idle {
  int whole_gpus = 0;
  int whole = 0;       // on GPUs that are wholly idle
  int part = 0;        // on GPUs in part use
  int below = 0;       // of `part`, on GPUs with less than a share free
  bool share = false;  // some GPU has the share free
};

Idle IdleOf(const Node& node, int milli_per_gpu) {
  Idle idle;
  for (const GpuFree& gpu : node.gpus()) {
    const int milli = std::max(gpu.milli, 0);
    if (gpu.idle()) {
      ++idle.whole_gpus;
      idle.whole += milli;
    } else {
      idle.part += milli;
      if (milli < milli_per_gpu) idle.below += milli;
    }
    idle.share = idle.share || milli >= milli_per_gpu;
  }
  return idle;
}

}  // namespace

WasteMeter::WasteMeter(const std::vector<TraceTask>& tasks) {
  std::map<RequestShape, std::size_t> counts;
  std::size_t gpu_tasks = 0;
  for (const TraceTask& task : tasks) {
    if (task.gpus == 0) continue;
    ++counts[ToShape(task)];
    ++gpu_tasks;
  }
  for (const auto& [shape, count] : counts) {
    classes_.push_back({shape, static_cast<double>(count) / static_cast<double>(gpu_tasks)});
  }
}

void WasteMeter::Add(const Node& node, const Class& cls, IdleByCause& idle_milli) {
  const RequestShape& shape = cls.shape;
  const Idle idle = IdleOf(node, shape.milli_per_gpu());
  const auto put = [&](IdleCause cause, int milli) {
    idle_milli[static_cast<std::size_t>(cause)] += cls.weight * milli;
  };
  const int all = idle.whole + idle.part;
  if (!shape.Admits(node.spec().gpu_model)) return put(IdleCause::kModel, all);
  if (shape.is_share() ? !idle.share : idle.whole_gpus < shape.gpu_count()) {
    put(IdleCause::kSlots, idle.whole);
    return put(IdleCause::kGaps, idle.part);
  }
  if (node.free_cpu_milli() < shape.cpu_milli) return put(IdleCause::kCpu, all);
  if (node.free_memory_bytes() < shape.memory_bytes) return put(IdleCause::kMemory, all);
  const int gaps = shape.is_share() ? idle.below : idle.part;
  put(IdleCause::kGaps, gaps);
  put(IdleCause::kUsable, all - gaps);
}

IdleByCause WasteMeter::Measure(const Snapshot& snapshot) const {
  IdleByCause idle{};
  for (NodeIndex index = 0; index < snapshot.size(); ++index) {
    const Node& node = snapshot.node(index);
    if (node.free_gpu_milli() == 0) continue;
    for (const Class& cls : classes_) Add(node, cls, idle);
  }
  for (double& milli : idle) milli /= kMilliPerGpu;
  return idle;
}

}  // namespace berth::replay
