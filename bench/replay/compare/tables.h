// SPDX-License-Identifier: Apache-2.0
//
// A comparison as tables: text for people, CSV for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace berth::replay {

// Requires: a summary (summary.h).
std::string SummaryText(const nlohmann::ordered_json& summary);

// One line per run.
std::string RunsCsv(const nlohmann::ordered_json& summary);

}  // namespace berth::replay
