// SPDX-License-Identifier: Apache-2.0
//
// Simulation: a stream of pods of a trace under one policy (event_loop.h), and a rule that moves
// running pods where there is one.
//
// A pod that is moved has its new place at once, and loses its work: kRestart later it runs anew
// for as long as it would have. Its wait is that of its first start.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "bench/replay/engine_placer.h"
#include "bench/replay/time/room_rule.h"
#include "bench/replay/time/run_words.h"
#include "bench/replay/time/service.h"
#include "bench/replay/time/stream.h"
#include "bench/replay/waste.h"
#include "bench/replay/workload.h"

namespace berth::replay {

// The cluster at one moment.
struct Sample {
  double at_hours = 0;
  double allocated_gpus = 0;
  double waiting_gpus = 0;  // what the pods in the queue ask for
  IdleByCause idle{};
  double watts = 0;  // of all nodes (power_meter.h)
};
constexpr int kSamples = 48;  // evenly spaced over the horizon; the last is at its end

struct SimulationResult {
  double horizon_hours = 0;
  std::int64_t gpus_total = 0;
  std::int64_t arrivals = 0;
  std::int64_t attempts = 0;  // to place a pod, failed ones included
  Service service;
  // While at least one pod that asks for GPUs waits: for how long that was, and the idle GPU
  // integrated over it.
  double waiting_hours = 0, idle_gpu_hours_waiting = 0;
  // Estimated energy of all nodes over the horizon, but for those of unknown power.
  double kwh = 0;
  std::int64_t gpus_without_watts = 0;
  // By the rule, pods: moved from node to node, or sent back to the queue.
  std::int64_t placed = 0;  // pods that started, but for primed ones
  std::int64_t moved = 0, evicted = 0;
  // GPU-hours from the start of what was moved or sent back until then, and kRestart.
  double lost_gpu_hours = 0;
  std::vector<Sample> samples;
  std::uint64_t trace = 0;  // EventTrace
};

inline const ClassService& Of(const SimulationResult& result, SizeClass size) {
  return result.service[static_cast<std::size_t>(size)];
}

// How pods wait, beside the placer's own rules.
struct WaitRules {
  bool in_turn = false;  // no pod with GPUs passes the first one that waits
  RunWords words = {};
  bool learns_run_times = false;  // the placer does, from the pods that end
};

// The placer has the workload's nodes and no pod yet. `progress` counts arrivals; `starts` gets
// those of the pods; rule: nullptr, nobody is moved. Error: those of the placer; kInvalidArgument
// for a workload without a GPU.
Result<SimulationResult> Simulate(const Workload& workload, const Stream& stream,
                                  EnginePlacer& placer, const Progress& progress,
                                  PodStarts* starts = nullptr, RoomRule* rule = nullptr,
                                  const WaitRules& waits = {});

}  // namespace berth::replay
