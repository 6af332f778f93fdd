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

struct Report {
  Json summary;
  std::string text, csv;
};

Result<Report> ReportOf(const Runs& runs) {
  Report report;
  BERTH_TRY(report.summary, Summarize(runs));
  try {
    report.text = SummaryText(report.summary);
    report.csv = RunsCsv(report.summary);
  } catch (const Json::exception& problem) {
    return Invalid(std::string("runs: want records of `berth-replay compare`, got: ") +
                   problem.what());
  }
  return report;
}

Status WriteFiles(const Report& report, const std::string& folder) {
  BERTH_TRY_STATUS(WriteInto(folder, "report.txt", report.text));
  BERTH_TRY_STATUS(WriteInto(folder, "report.csv", report.csv));
  BERTH_TRY_STATUS(WriteInto(folder, "report.json", report.summary.dump() + "\n"));
  return WriteInto(folder, "report.html", ReportPage(report.summary));
}

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

Status WriteReportFiles(const Runs& runs, const std::string& folder) {
  BERTH_TRY(const Report report, ReportOf(runs));
  return WriteFiles(report, folder);
}

Status WriteReport(const Runs& runs, const std::string& folder, const std::string& json) {
  BERTH_TRY(const Report report, ReportOf(runs));
  if (!folder.empty()) BERTH_TRY_STATUS(WriteFiles(report, folder));
  if (!json.empty()) return WriteOutput(json, report.summary.dump() + "\n");
  return WriteOutput("-", report.text);
}

}  // namespace berth::replay
