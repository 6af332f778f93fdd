// SPDX-License-Identifier: Apache-2.0
//
// The runs of a plan, as JSON records:
//
//   {"number", "trace", "policy", "seed", "gpus_total",
//    "arrivals": {"allocated_at_100", "allocated_at_130", "watts_at_50", "watts_at_100",
//                 "gpus_without_watts", "placed", "refused",
//                 "allocated_pct": [by % arrived], "estimated_watts": [by % arrived],
//                 "idle_at_pct": [every kIdleStep % arrived],
//                 "idle_gpus": {cause: [by idle_at_pct]}},
//    "departures": SimulationJson}        (only where the plan has departures)
//
// They are JSON because part files carry them: a report is built from the records alone, wherever
// they were made.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/result.h"
#include "bench/replay/compare/plan.h"
#include "bench/replay/replay.h"

namespace berth::replay {

constexpr int kIdleStep = 5;  // the idle GPU is split by cause at every so many % arrived

// The runs of the shard by number, on `threads` threads. `progress` counts hundredths of what
// arrives in each. Error: the first by number.
Result<std::vector<nlohmann::ordered_json>> RunPlan(const Plan& plan, const Shard& shard,
                                                    std::size_t threads, const Progress& progress);

}  // namespace berth::replay
