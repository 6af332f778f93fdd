// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/compare/summary.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAllTraces = "mean";

double Rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json MeanOfNumbers(const std::vector<Json>& values) {
  double sum = 0;
  int count = 0;
  if (values.front().is_boolean()) return std::ranges::count(values, Json(true)) > 0;
  for (const Json& value : values) {
    if (!value.is_number()) continue;
    sum += value.get<double>();
    ++count;
  }
  return count == 0 ? Json(nullptr) : Json(Rounded(sum / count));
}

Json DeviationOf(const std::vector<Json>& records, const char* part, const char* key) {
  std::vector<double> values;
  for (const Json& record : records) {
    if (!record.contains(part)) continue;
    const Json& value = record.at(part).at(key);
    if (value.is_number()) values.push_back(value.get<double>());
  }
  if (values.size() < 2) return nullptr;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return Rounded(std::sqrt(squares / static_cast<double>(values.size() - 1)));
}

// One policy on one trace, over its seeds.
Json ResultOf(const std::vector<Json>& records) {
  std::vector<Json> figures;
  for (const Json& record : records) {
    Json kept = {{"gpus_total", record.at("gpus_total")}, {"arrivals", record.at("arrivals")}};
    if (record.contains("departures")) kept["departures"] = record.at("departures");
    figures.push_back(std::move(kept));
  }
  Json deviation = {{"allocated_at_100", DeviationOf(records, "arrivals", "allocated_at_100")},
                    {"allocated_at_130", DeviationOf(records, "arrivals", "allocated_at_130")},
                    {"gpu_hours_served", DeviationOf(records, "departures", "gpu_hours_served")}};
  return {{"trace", records.front().at("trace")},
          {"policy", records.front().at("policy")},
          {"seeds", records.size()},
          {"mean", MeanOf(figures)},
          {"deviation", std::move(deviation)}};
}

Json Won(const Json& allocated, const Json& baseline) {
  if (!allocated.is_number() || !baseline.is_number()) return nullptr;
  const double idle = 100 - baseline.get<double>();
  if (idle <= 0) return nullptr;
  return Rounded(100 * (allocated.get<double>() - baseline.get<double>()) / idle);
}

// Of the policies on one trace.
void AddWon(std::vector<Json>& of_trace, const std::string& baseline) {
  const auto base = std::ranges::find_if(
      of_trace, [&](const Json& result) { return result.at("policy") == baseline; });
  if (base == of_trace.end()) return;
  const Json base_arrivals = base->at("mean").at("arrivals");
  for (Json& result : of_trace) {
    const Json& arrivals = result.at("mean").at("arrivals");
    for (const char* point : {"100", "130"}) {
      const std::string key = std::string("allocated_at_") + point;
      result[std::string("won_at_") + point + "_pct"] =
          Won(arrivals.at(key), base_arrivals.at(key));
    }
  }
}

// The results of all traces as one, policy by policy.
Json OverTraces(const std::vector<Json>& results) {
  std::vector<Json> means, won100, won130;
  for (const Json& result : results) {
    means.push_back(result.at("mean"));
    won100.push_back(result.at("won_at_100_pct"));
    won130.push_back(result.at("won_at_130_pct"));
  }
  return {{"trace", kAllTraces},
          {"policy", results.front().at("policy")},
          {"seeds", results.front().at("seeds")},
          {"mean", MeanOf(means)},
          {"deviation", {}},
          {"won_at_100_pct", MeanOfNumbers(won100)},
          {"won_at_130_pct", MeanOfNumbers(won130)}};
}

Json Build(const Runs& runs) {
  const auto policies = runs.plan.at("policies").get<std::vector<std::string>>();
  const std::size_t traces = runs.plan.at("traces").size();
  const auto seeds = runs.plan.at("seeds").get<std::size_t>();
  const bool has_fgd = std::ranges::count(policies, "fragmentation-gradient") > 0;
  const std::string baseline = has_fgd ? "fragmentation-gradient" : policies.front();
  Json results = Json::array();
  std::vector<std::vector<Json>> by_policy(policies.size());
  for (std::size_t trace = 0; trace < traces; ++trace) {
    std::vector<Json> of_trace;
    for (std::size_t policy = 0; policy < policies.size(); ++policy) {
      std::vector<Json> records;
      for (std::size_t seed = 0; seed < seeds; ++seed) {
        records.push_back(runs.records.at((trace * seeds + seed) * policies.size() + policy));
      }
      of_trace.push_back(ResultOf(records));
    }
    AddWon(of_trace, baseline);
    for (std::size_t policy = 0; policy < policies.size(); ++policy) {
      by_policy[policy].push_back(of_trace[policy]);
      results.push_back(std::move(of_trace[policy]));
    }
  }
  if (traces > 1) {
    for (const std::vector<Json>& of_policy : by_policy) results.push_back(OverTraces(of_policy));
  }
  return {{"made_with", MadeWithJson(runs.made_with)},
          {"plan", runs.plan},
          {"baseline", baseline},
          {"results", std::move(results)},
          {"runs", runs.records}};
}

}  // namespace

Json MeanOf(const std::vector<Json>& values) {
  const auto form = std::ranges::find_if(values, [](const Json& v) { return v.is_structured(); });
  if (form == values.end()) return MeanOfNumbers(values);
  Json mean = form->is_array() ? Json::array() : Json::object();
  const auto part = [&](const auto& key) {
    std::vector<Json> parts;
    for (const Json& value : values) {
      if (value.is_structured()) parts.push_back(value.at(key));
    }
    return MeanOf(parts);
  };
  if (form->is_array()) {
    for (std::size_t i = 0; i < form->size(); ++i) mean.push_back(part(i));
  } else {
    for (const auto& [key, value] : form->items()) mean[key] = part(key);
  }
  return mean;
}

Result<Json> Summarize(const Runs& runs) {
  try {
    return Build(runs);
  } catch (const Json::exception& problem) {
    return Invalid(std::string("runs: want records of `berth-replay compare`, got: ") +
                   problem.what());
  }
}

}  // namespace berth::replay
