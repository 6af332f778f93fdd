// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/report.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/replay/latency.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

Json Hundredths(const std::optional<double>& value) {
  if (!value) return nullptr;
  return static_cast<double>(std::llround(*value * 100)) / 100;
}

Json Whole(const std::optional<double>& value) {
  return value ? Json(std::llround(*value)) : Json(nullptr);
}

double Tenths(double value) { return std::round(value * 10) / 10; }

}  // namespace

Json ResultJson(const RunLabels& labels, const ReplayResult& result) {
  Json curve = Json::array();
  for (const auto& point : result.allocated_pct) curve.push_back(Hundredths(point));
  const LatencySummary us = Summarize(result.decision_us);
  Json watts, gpus_without_watts;  // null: not known
  if (result.gpus_without_watts) {
    gpus_without_watts = *result.gpus_without_watts;
    for (const auto& point : result.watts) watts.push_back(Whole(point));
  }
  return {{"trace", labels.trace},
          {"policy", labels.policy},
          {"seed", labels.seed},
          {"nodes", labels.nodes},
          {"gpus_total", result.gpus_total},
          {"allocated_pct", std::move(curve)},
          {"allocated_at_100", Hundredths(result.allocated_pct[100])},
          {"allocated_at_130", Hundredths(result.allocated_pct[kLastPercent])},
          {"placed", result.placed},
          {"refused", result.refused},
          {"estimated_watts", std::move(watts)},
          {"gpus_without_watts", std::move(gpus_without_watts)},
          {"decision_us",
           {{"mean", Tenths(us.mean)},
            {"p50", Tenths(us.p50)},
            {"p99", Tenths(us.p99)},
            {"max", Tenths(us.max)}}}};
}

std::string ResultText(const RunLabels& labels, const ReplayResult& result) {
  const LatencySummary us = Summarize(result.decision_us);
  const auto percent = [](const std::optional<double>& value) {
    char text[16];
    std::snprintf(text, sizeof text, "%.2f %%", value.value_or(0));
    return value ? std::string(text) : std::string("-");
  };
  const auto kilowatts = [](const std::optional<double>& watts) {
    char text[24];
    std::snprintf(text, sizeof text, "%.1f kW", watts.value_or(0) / 1000);
    return watts ? std::string(text) : std::string("-");
  };
  char line[640];
  std::snprintf(
      line, sizeof line,
      "%s, %s, seed %llu: %zu nodes, %lld GPUs\n"
      "  allocated at 100 %% arrived  %s\n"
      "  allocated at 130 %% arrived  %s\n"
      "  pods placed %lld, refused %lld\n"
      "  estimated power at 50 %% arrived %s, at 100 %% %s, without %lld GPUs of unknown power\n"
      "  decision mean %.1f us, p50 %.1f, p99 %.1f, max %.1f\n",
      labels.trace.c_str(), labels.policy.c_str(), static_cast<unsigned long long>(labels.seed),
      labels.nodes, static_cast<long long>(result.gpus_total),
      percent(result.allocated_pct[100]).c_str(),
      percent(result.allocated_pct[kLastPercent]).c_str(), static_cast<long long>(result.placed),
      static_cast<long long>(result.refused), kilowatts(result.watts[50]).c_str(),
      kilowatts(result.watts[100]).c_str(),
      static_cast<long long>(result.gpus_without_watts.value_or(result.gpus_total)), us.mean,
      us.p50, us.p99, us.max);
  return line;
}

double Thousandths(double value) { return std::round(value * 1000) / 1000; }

Status WriteOutput(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return Fail(Errc::kUnavailable, path + ": cannot be written");
  return {};
}

Status WriteTableAndJson(const std::string& table, const std::string& json_path, const Json& json) {
  if (json_path != "-") BERTH_TRY_STATUS(WriteOutput("-", table));
  return json_path.empty() ? Status() : WriteOutput(json_path, json.dump() + "\n");
}

}  // namespace berth::replay
