// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/compare/tables.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/replay/csv.h"
#include "bench/replay/time/service_report.h"
#include "bench/replay/time/size_class.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

std::string Number(const Json& value, int decimals) {
  if (!value.is_number()) return "-";
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", decimals, value.get<double>());
  return text;
}

std::string Kilowatts(const Json& watts) {
  return Number(watts.is_number() ? Json(watts.get<double>() / 1000) : watts, 1);
}

// Columns as wide as their widest cell; the first two to the left, the others to the right.
std::string Aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const std::string pad(widths[c] - row[c].size(), ' ');
      line += (c == 0 ? "" : "  ") + (c < 2 ? row[c] + pad : pad + row[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string ArrivalsTable(const Json& summary) {
  std::vector<std::vector<std::string>> rows = {{"trace", "policy", "at 100 %", "at 130 %",
                                                 "deviation", "GPUs idle", "won at 100",
                                                 "won at 130", "kW at 50 %", "kW at 100 %"}};
  for (const Json& result : summary.at("results")) {
    const Json& arrivals = result.at("mean").at("arrivals");
    const Json& deviation = result.at("deviation");
    const Json& at_130 = arrivals.at("allocated_at_130");
    const Json idle = at_130.is_number() ? Json((100 - at_130.get<double>()) / 100 *
                                                result.at("mean").at("gpus_total").get<double>())
                                         : Json(nullptr);
    rows.push_back({result.at("trace"), result.at("policy"),
                    Number(arrivals.at("allocated_at_100"), 2), Number(at_130, 2),
                    deviation.is_null() ? "-" : Number(deviation.at("allocated_at_130"), 2),
                    Number(idle, 0), Number(result.at("won_at_100_pct"), 1),
                    Number(result.at("won_at_130_pct"), 1), Kilowatts(arrivals.at("watts_at_50")),
                    Kilowatts(arrivals.at("watts_at_100"))});
  }
  return "GPUs allocated, % of all, when pods for so many % have arrived (none leaves); won: of "
         "the GPUs\nthat " +
         summary.at("baseline").get<std::string>() +
         " leaves idle, % that this policy allocates; kW: "
         "estimated power of all nodes\n\n" +
         Aligned(rows);
}

std::string WaitOf(const Json& figures, const std::string& quantile) {
  return WaitText(figures.at("wait_" + quantile + "_s").get<double>(),
                  figures.at("wait_" + quantile + "_cut_off").get<bool>());
}

std::string DeparturesTable(const Json& summary) {
  std::vector<std::vector<std::string>> rows = {
      {"trace", "policy", "GPU-hours", "% of demand", "kWh", "idle waiting", "never"}};
  for (const std::string_view size : kSizeClassNames) rows.front().push_back(std::string(size));
  for (const Json& result : summary.at("results")) {
    const Json& mean = result.at("mean").at("departures");
    const Json& served = mean.at("gpu_hours_served");
    const double demand = mean.at("gpu_hours_demand").get<double>();
    std::vector<std::string> row = {
        result.at("trace"),
        result.at("policy"),
        Number(served, 1),
        demand > 0 ? Number(Json(100 * served.get<double>() / demand), 2) : "-",
        Number(mean.at("estimated_kwh"), 0),
        Number(mean.at("idle_gpu_hours_waiting"), 1),
        Number(mean.at("classes").at("all").at("never_started"), 0)};
    for (const std::string_view size : kSizeClassNames) {
      const Json& figures = mean.at("classes").at(std::string(size));
      row.push_back(figures.at("arrived") == 0.0
                        ? "-"
                        : WaitOf(figures, "p50") + " / " + WaitOf(figures, "p99"));
    }
    rows.push_back(std::move(row));
  }
  return "With departures: GPU-hours served, estimated energy, idle GPU-hours while a GPU pod "
         "waits, pods never "
         "started, and\nwaits p50 / p99 by number of GPUs asked for\n\n" +
         Aligned(rows) + "\n" + kCutOffNote;
}

std::string MissingModelsLines(const Json& plan) {
  std::string text;
  for (const Json& trace : plan.at("traces")) {
    if (!trace.contains("missing_models")) continue;
    for (const Json& missing : trace.at("missing_models")) {
      text += "\n" + trace.at("name").get<std::string>() + ": no node has the GPU model \"" +
              missing.at("model").get<std::string>() + "\" of " + missing.at("tasks").dump() +
              " tasks; " + missing.at("stuck").dump() + " of them fit nowhere";
    }
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string SummaryText(const Json& summary) {
  const Json& plan = summary.at("plan");
  std::string text = "seeds " + plan.at("first_seed").dump() + " to " +
                     std::to_string(plan.at("first_seed").get<std::uint64_t>() +
                                    plan.at("seeds").get<std::uint64_t>() - 1) +
                     "; every figure is the mean over them\n\n" + ArrivalsTable(summary);
  if (!plan.at("departures").is_null()) text += "\n" + DeparturesTable(summary);
  const Json& made_with = summary.at("made_with");
  return text + MissingModelsLines(plan) + "\nberth-replay " +
         made_with.at("version").get<std::string>() + ": " +
         made_with.at("command").get<std::string>() + "\n";
}

std::string RunsCsv(const Json& summary) {
  const bool departures = !summary.at("plan").at("departures").is_null();
  const std::vector<std::string> arrivals_keys = {
      "allocated_at_100", "allocated_at_130", "watts_at_50", "watts_at_100", "placed", "refused"};
  const std::vector<std::string> time_keys = {"gpu_hours_demand", "gpu_hours_served",
                                              "estimated_kwh",    "idle_gpu_hours_waiting",
                                              "waiting_hours",    "attempts"};
  const std::vector<std::string> class_keys = {"arrived", "never_started", "wait_p50_s",
                                               "wait_p99_s", "gpu_hours_served"};
  std::string text = "trace,policy,seed";
  for (const std::string& key : arrivals_keys) text += "," + key;
  if (departures) {
    for (const std::string& key : time_keys) text += "," + key;
    for (const std::string_view size : kSizeClassNames) {
      for (const std::string& key : class_keys) text += "," + key + "[" + std::string(size) + "]";
    }
  }
  text += "\n";
  const auto add = [&text](const Json& value) {
    text += "," + (value.is_null() ? "" : value.dump());
  };
  for (const Json& run : summary.at("runs")) {
    text += CsvField(run.at("trace").get<std::string>()) + "," +
            CsvField(run.at("policy").get<std::string>()) + "," + run.at("seed").dump();
    for (const std::string& key : arrivals_keys) add(run.at("arrivals").at(key));
    if (departures) {
      const Json& timed = run.at("departures");
      for (const std::string& key : time_keys) add(timed.at(key));
      for (const std::string_view size : kSizeClassNames) {
        for (const std::string& key : class_keys) {
          add(timed.at("classes").at(std::string(size)).at(key));
        }
      }
    }
    text += "\n";
  }
  return text;
}

}  // namespace berth::replay
