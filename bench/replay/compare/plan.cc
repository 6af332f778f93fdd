// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/compare/plan.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "bench/replay/missing_models.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

RunKey Plan::Key(std::size_t number) const {
  const std::size_t rest = number / policies.size();
  return {number, rest / seeds, number % policies.size(), first_seed + rest % seeds};
}

Json PlanJson(const Plan& plan) {
  Json traces = Json::array();
  for (const Trace& trace : plan.traces) {
    traces.push_back({{"name", trace.workload.name},
                      {"nodes", trace.workload.nodes.size()},
                      {"gpus", GpuCapacityMilli(trace.workload.nodes) / kMilliPerGpu},
                      {"tasks", trace.workload.tasks.size()},
                      {"fingerprint", trace.fingerprint},
                      {"missing_models", MissingModelsJson(trace.workload)}});
  }
  Json departures = nullptr;
  const DepartureOptions& options = plan.departures;
  if (options.on && !options.load) departures = {{"times", "trace"}};
  if (options.on && options.load) {
    const bool log_normal = options.lifetimes == Lifetimes::kLogNormal;
    departures = {{"times", "drawn"},
                  {"load", *options.load},
                  {"lifetimes", log_normal ? "lognormal" : "pareto"},
                  {"mean_lifetime_s", options.mean_lifetime_s},
                  {"hours", options.hours}};
  }
  Json policies = Json::array();
  for (const ReplayPolicy& policy : plan.policies) policies.push_back(policy.name);
  return {{"policies", std::move(policies)},
          {"configurations", ConfigurationsJson(plan.policies)},
          {"traces", std::move(traces)},
          {"orders", plan.orders_folder.empty() ? "drawn" : "published"},
          {"first_seed", plan.first_seed},
          {"seeds", plan.seeds},
          {"inflate", plan.inflate},
          {"departures", std::move(departures)}};
}

Result<Shard> ParseShard(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    const auto count = ParseInt(text.substr(slash + 1), 1, 1'000'000);
    if (count) {
      const auto index = ParseInt(text.substr(0, slash), 1, *count);
      if (index) return Shard{static_cast<std::size_t>(*index), static_cast<std::size_t>(*count)};
    }
  }
  return Invalid("want I/N with 1 <= I <= N, such as 2/4, got \"" + std::string(text) + "\"");
}

}  // namespace berth::replay
