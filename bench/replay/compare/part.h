// SPDX-License-Identifier: Apache-2.0
//
// Part files: the records of one shard, with the plan that they belong to.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/replay/compare/plan.h"
#include "bench/replay/made_with.h"

namespace berth::replay {

// The records of a whole plan, by number: the complete input of a report.
struct Runs {
  nlohmann::ordered_json plan;
  std::vector<nlohmann::ordered_json> records;
  MadeWith made_with = {};
};

// `runs` has the records of the shard alone.
std::string PartText(const Runs& runs, const Shard& shard);
std::string PartFileName(const Shard& shard);  // "part-2-of-4.json"

// Joins the parts of one plan, given in any order. Error: kInvalidArgument naming the file: not a
// part, of another plan (and where the plans differ), made by another version, one there twice; or
// the part that is missing.
Result<Runs> JoinParts(const std::vector<std::string>& paths);

}  // namespace berth::replay
