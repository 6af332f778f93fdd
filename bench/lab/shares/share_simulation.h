// SPDX-License-Identifier: Apache-2.0
//
// A stream of shares under one policy (time/event_loop.h). A pod takes its part of a card at once,
// and returns it when it has run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/lab/shares/share_workload.h"

namespace berth::replay {

// By what a pod asks for.
constexpr std::size_t kShareClasses = 3;
constexpr std::array<std::string_view, kShareClasses> kShareClassNames = {"share", "whole", "all"};

// Of pods that were not there at the start. One that never started has waited until the horizon.
struct ShareWaits {
  std::int64_t arrived = 0, never = 0;
  double mean_s = 0, p50_s = 0, p99_s = 0;
};

struct ShareResult {
  // Within the horizon, as GpusOf counts: what pods ran, and what they would have run had none
  // waited.
  double served_gpu_hours = 0, demand_gpu_hours = 0;
  // In the mean over the horizon: what was in use, as a part of the fleet, 0..1.
  double used_compute = 0, used_memory = 0;
  // In the mean over the time in which a pod waits: what was idle.
  double idle_compute_waiting = 0, idle_memory_waiting = 0;
  double waiting_hours = 0;
  std::array<ShareWaits, kShareClasses> waits;
  std::uint64_t trace = 0;  // EventTrace
  [[nodiscard]] double served_pct() const {
    return demand_gpu_hours > 0 ? 100 * served_gpu_hours / demand_gpu_hours : 0;
  }
};

std::vector<std::string_view> SharePolicyNames();

// policy: "berth" - the engine with its default profile, which learns the mix from the arrivals; a
// name of ShareRuleNames; or "fluid" - as if all cards were one, so that nothing is lost between
// them: no policy, but what is left to be won. Error: kInvalidArgument for another one.
Result<ShareResult> SimulateShares(const ShareWorkload& workload, const std::string& policy,
                                   std::uint64_t seed);

}  // namespace berth::replay
