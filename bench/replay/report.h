// SPDX-License-Identifier: Apache-2.0
//
// The output of a replay: JSON for programs, a few lines for people.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "bench/replay/replay.h"

namespace berth::replay {

struct RunLabels {
  std::string trace;
  std::string policy;
  std::uint64_t seed = 0;
  std::size_t nodes = 0;
};

// One object, keys as in the command's documentation; percentages to a hundredth, as the published
// tables have them. Same replay, same bytes, but for decision_us.
nlohmann::ordered_json ResultJson(const RunLabels& labels, const ReplayResult& result);

std::string ResultText(const RunLabels& labels, const ReplayResult& result);

// What reports give of a figure.
double Thousandths(double value);

// To the file, or to stdout where the path is "-". Error: kUnavailable naming the file.
Status WriteOutput(const std::string& path, const std::string& text);
// The table on stdout, unless the JSON goes there; and the JSON, if there is a path for it.
Status WriteTableAndJson(const std::string& table, const std::string& json_path,
                         const nlohmann::ordered_json& json);

}  // namespace berth::replay
