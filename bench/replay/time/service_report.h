// SPDX-License-Identifier: Apache-2.0
//
// The output of a simulation: JSON for programs, policies side by side for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/replay/time/simulation.h"

namespace berth::replay {

// One object: gpu_hours_*, idle_gpu_hours_waiting, waiting_hours, classes (by the names of
// SizeClass; `waited_longer` by `waited_longer_than_s`; `never_started` waits are cut off at the
// horizon, and where they make a quantile too short its `..._cut_off` is true), samples (columns by
// time). Hours to a thousandth, seconds as they are.
nlohmann::ordered_json SimulationJson(const SimulationResult& result);

struct PolicyResult {
  std::string policy;
  SimulationResult result;
};
// `title` is the first line. Requires: results is not empty.
std::string SideBySide(const std::string& title, const std::vector<PolicyResult>& results);

// Of the GPU-hours asked for, the part that was served, in %.
double ServedPct(const SimulationResult& result);
// A table of what `results` change against `base`: GPU-hours served, in points of the demand; the
// longest wait of a pod of eight GPUs, as a ratio. Requires: results is not empty.
std::string Against(const PolicyResult& base, const std::vector<PolicyResult>& results);

// "0", "12 s", "3.4 min", "2.1 h": for tables.
std::string ShortDuration(double seconds);
// "12 s", "> 2.1 h" where it is cut off at the horizon; kCutOffNote says so below a table.
std::string WaitText(double seconds, bool cut_off);
extern const char* const kCutOffNote;
// p50 / p99.
std::string WaitsText(const ClassService& figures);

}  // namespace berth::replay
