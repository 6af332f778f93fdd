// SPDX-License-Identifier: Apache-2.0
#include "bench/lab/room/fluid.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace berth::replay {
namespace {

struct Amount {
  std::int64_t gpu_milli = 0, cpu_milli = 0, memory_mib = 0;

  void Add(const Amount& other, int sign) {
    gpu_milli += sign * other.gpu_milli;
    cpu_milli += sign * other.cpu_milli;
    memory_mib += sign * other.memory_mib;
  }
  [[nodiscard]] bool Holds(const Amount& other) const {
    return gpu_milli >= other.gpu_milli && cpu_milli >= other.cpu_milli &&
           memory_mib >= other.memory_mib;
  }
};

class Fluid {
 public:
  Fluid(const Workload& workload, const Stream& stream)
      : tasks_(workload.tasks), stream_(stream), service_(stream) {
    for (const TraceNode& node : workload.nodes) {
      const std::int64_t gpus = std::int64_t{node.gpus} * kMilliPerGpu;
      pools_[node.model].Add({node.free_milli.value_or(gpus), node.cpu_milli, node.memory_mib}, 1);
    }
  }

  Service Run() {
    std::size_t arrived = 0;
    while (arrived < stream_.arrivals.size() || !ends_.empty()) {
      Millis now = stream_.horizon;
      if (arrived < stream_.arrivals.size()) now = std::min(now, stream_.arrivals[arrived].at);
      if (!ends_.empty()) now = std::min(now, std::get<Millis>(ends_.top()));
      if (now >= stream_.horizon) break;
      for (; !ends_.empty() && std::get<Millis>(ends_.top()) <= now; ends_.pop()) {
        const auto& [at, n, pool] = ends_.top();
        pools_.at(pool).Add(AskOf(n), 1);
      }
      for (; arrived < stream_.arrivals.size() && stream_.arrivals[arrived].at <= now; ++arrived) {
        waiting_.emplace(-TaskOf(arrived).priority, arrived);
      }
      Start(now);
    }
    for (const auto& [priority, n] : waiting_) service_.NeverStarted(n, TaskOf(n));
    for (; arrived < stream_.arrivals.size(); ++arrived) {
      service_.NeverStarted(arrived, TaskOf(arrived));
    }
    return service_.Summary();
  }

 private:
  using End = std::tuple<Millis, std::size_t, std::string>;

  [[nodiscard]] const TraceTask& TaskOf(std::size_t n) const {
    return tasks_[stream_.arrivals[n].task];
  }
  [[nodiscard]] Amount AskOf(std::size_t n) const {
    const TraceTask& task = TaskOf(n);
    return {GpuDemandMilli(task), task.cpu_milli, task.memory_mib};
  }

  void Start(Millis now) {
    std::set<std::string> kept;  // pools, for somebody who came before
    for (auto one = waiting_.begin(); one != waiting_.end() && kept.size() < pools_.size();) {
      const std::size_t n = one->second;
      const std::string* const pool = PoolFor(n, kept);
      if (pool == nullptr) {
        ++one;
        continue;
      }
      pools_.at(*pool).Add(AskOf(n), -1);
      service_.Started(n, TaskOf(n), now);
      ends_.emplace(now + stream_.arrivals[n].runs, n, *pool);
      one = waiting_.erase(one);
    }
  }

  // Of those that have room the one with the most GPUs free. nullptr: none, and the pools that it
  // may use are kept for it.
  [[nodiscard]] const std::string* PoolFor(std::size_t n, std::set<std::string>& kept) const {
    const std::vector<std::string> models = NamesIn(TaskOf(n).gpu_spec);
    const std::string* best = nullptr;
    std::vector<const std::string*> mine;
    for (const auto& [model, free] : pools_) {
      if (!models.empty() && std::ranges::find(models, model) == models.end()) continue;
      mine.push_back(&model);
      if (kept.contains(model) || !free.Holds(AskOf(n))) continue;
      if (best == nullptr || free.gpu_milli > pools_.at(*best).gpu_milli) best = &model;
    }
    if (best == nullptr) {
      for (const std::string* model : mine) kept.insert(*model);
    }
    return best;
  }

  const std::vector<TraceTask>& tasks_;
  const Stream& stream_;
  ServiceMeter service_;
  std::map<std::string, Amount> pools_;  // what is free, by model
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::set<std::pair<int, std::size_t>> waiting_;  // by priority, then arrival
};

}  // namespace

Service FluidService(const Workload& workload, const Stream& stream) {
  return Fluid(workload, stream).Run();
}

}  // namespace berth::replay
