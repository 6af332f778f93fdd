// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/compare/report_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "bench/replay/compare/page_template.h"
#include "bench/replay/compare/summary.h"
#include "bench/replay/compare/tables.h"
#include "bench/replay/report.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string ReportPage(const Json& summary) {
  Json shown = summary;
  shown.erase("runs");
  std::string data = shown.dump();
  // "</script>" in a name must not end the script.
  for (std::size_t at = 0; (at = data.find("</", at)) != std::string::npos; at += 3) {
    data.replace(at, 2, "<\\/");
  }
  std::string page(kPageTemplate);
  constexpr std::string_view kPlace = "/*SUMMARY*/";
  return page.replace(page.find(kPlace), kPlace.size(), data);
}

Status WriteInto(const std::string& folder, const std::string& name, const std::string& text) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) return Fail(Errc::kUnavailable, folder + ": " + problem.message());
  return WriteOutput((std::filesystem::path(folder) / name).string(), text);
}

Status WriteReport(const Runs& runs, const std::string& folder, const std::string& json) {
  BERTH_TRY(const Json summary, Summarize(runs));
  std::string text, csv;
  try {
    text = SummaryText(summary);
    csv = RunsCsv(summary);
  } catch (const Json::exception& problem) {
    return Invalid(std::string("runs: want records of `berth-replay compare`, got: ") +
                   problem.what());
  }
  if (!folder.empty()) {
    BERTH_TRY_STATUS(WriteInto(folder, "report.txt", text));
    BERTH_TRY_STATUS(WriteInto(folder, "report.csv", csv));
    BERTH_TRY_STATUS(WriteInto(folder, "report.json", summary.dump() + "\n"));
    BERTH_TRY_STATUS(WriteInto(folder, "report.html", ReportPage(summary)));
  }
  if (!json.empty()) return WriteOutput(json, summary.dump() + "\n");
  return WriteOutput("-", text);
}

}  // namespace berth::replay
