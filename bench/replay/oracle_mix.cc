// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/oracle_mix.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace berth::replay {
namespace {

// Kubernetes scores a pod that asks for no CPU like this.
constexpr std::int64_t kLeastCpuMilli = 100;

using Key = std::tuple<std::int64_t, int, int, std::string>;

}  // namespace

RequestMix OracleMix(const std::vector<TraceTask>& tasks, double coverage) {
  std::map<Key, double> count_of;
  std::map<Key, const TraceTask*> task_of;
  for (const TraceTask& task : tasks) {
    const std::int64_t cpu = task.cpu_milli == 0 ? kLeastCpuMilli : task.cpu_milli;
    const Key key{cpu, task.gpu_milli, task.gpus, task.gpu_spec};
    count_of[key] += 1;
    task_of[key] = &task;
  }
  std::vector<std::pair<double, Key>> by_count;
  for (const auto& [key, count] : count_of) by_count.emplace_back(count, key);
  std::ranges::sort(by_count, std::greater<>());

  const auto total = static_cast<double>(tasks.size());
  const double wanted = coverage * 100 * total / 100.0;
  RequestMix mix;
  double covered = 0;
  for (const auto& [count, key] : by_count) {
    if (covered >= wanted) break;
    covered += count;
    RequestShape shape = ToShape(*task_of[key]);
    shape.cpu_milli = std::get<0>(key);
    mix.push_back({std::move(shape), count / total});
  }
  if (mix.size() < by_count.size()) {
    for (RequestClass& entry : mix) entry.weight /= covered / total;
  }
  return mix;
}

}  // namespace berth::replay
