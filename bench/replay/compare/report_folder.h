// SPDX-License-Identifier: Apache-2.0
//
// The report of a comparison, in a folder: report.txt, report.csv, report.json, and report.html,
// one page that needs nothing else. No timings are in it: same runs, same bytes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "bench/replay/compare/part.h"

namespace berth::replay {

// Creates the folder if need be. `json` is where report.json also goes ("-" is stdout), or empty:
// the text goes to stdout then. An empty folder = no files. Error: kUnavailable naming the file.
Status WriteReport(const Runs& runs, const std::string& folder, const std::string& json);

// The files alone. Requires: folder is not empty.
Status WriteReportFiles(const Runs& runs, const std::string& folder);

// The page: the summary without its runs, and the script that draws it.
std::string ReportPage(const nlohmann::ordered_json& summary);

// For parts as well: creates the folder and writes one file in it.
Status WriteInto(const std::string& folder, const std::string& name, const std::string& text);

}  // namespace berth::replay
