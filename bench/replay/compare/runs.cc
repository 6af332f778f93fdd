// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/compare/runs.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/replay/engine_session.h"
#include "bench/replay/parallel.h"
#include "bench/replay/progress.h"
#include "bench/replay/session.h"
#include "bench/replay/time/service_report.h"

namespace berth::replay {
namespace {

using Json = nlohmann::ordered_json;

double Hundredths(double value) { return static_cast<double>(std::llround(value * 100)) / 100; }

Json OrNull(const std::optional<double>& value) {
  return value ? Json(Hundredths(*value)) : Json(nullptr);
}

// Splits the idle GPU by cause whenever another kIdleStep % have arrived.
class IdleCurve {
 public:
  IdleCurve(const Workload& workload, const Arrivals& arrivals, const ClusterState& state)
      : workload_(workload),
        arrivals_(arrivals),
        state_(state),
        meter_(workload.tasks),
        capacity_(GpuCapacityMilli(workload.nodes)),
        points_(kLastPercent / kIdleStep + 1) {
    points_[0] = meter_.Measure(*state_.Current());
  }

  // To be called after every arrival.
  void Arrived(std::size_t done) {
    arrived_ += GpuDemandMilli(workload_.tasks[arrivals_.tasks[done - 1]]);
    const std::int64_t pct = (arrived_ * 1000 / capacity_ + 5) / 10;  // rounded, as in the curve
    const auto point = static_cast<std::size_t>(pct / kIdleStep);
    if (point >= points_.size() || points_[point]) return;
    points_[point] = meter_.Measure(*state_.Current());
  }

  [[nodiscard]] Json AsJson() const {
    Json idle = Json::object();
    for (std::size_t cause = 0; cause < kIdleCauses; ++cause) {
      Json column = Json::array();
      for (const auto& point : points_) {
        column.push_back(point ? OrNull((*point)[cause]) : Json(nullptr));
      }
      idle[std::string(kIdleCauseNames[cause])] = std::move(column);
    }
    return idle;
  }

 private:
  const Workload& workload_;
  const Arrivals& arrivals_;
  const ClusterState& state_;
  const WasteMeter meter_;
  const std::int64_t capacity_;
  std::int64_t arrived_ = 0;
  std::vector<std::optional<IdleByCause>> points_;
};

Result<Json> RunArrivals(const Workload& workload, const Arrivals& arrivals,
                         const ReplayPolicy& policy, std::uint64_t seed, const Progress& progress) {
  BERTH_TRY(const auto session, EngineSession::Create(policy, workload, arrivals, seed));
  EnginePlacer& placer = session->placer();
  IdleCurve idle(workload, arrivals, placer.state());
  BERTH_TRY(const ReplayResult result, RunReplay(workload.nodes, workload.tasks, arrivals, placer,
                                                 [&](std::size_t done, std::size_t all) {
                                                   idle.Arrived(done);
                                                   progress(done, all);
                                                 }));
  Json curve = Json::array(), watts = Json::array(), idle_at = Json::array();
  for (const auto& point : result.allocated_pct) curve.push_back(OrNull(point));
  for (const auto& point : result.watts) watts.push_back(OrNull(point));
  for (int pct = 0; pct <= kLastPercent; pct += kIdleStep) idle_at.push_back(pct);
  return Json{{"allocated_at_100", OrNull(result.allocated_pct[100])},
              {"allocated_at_130", OrNull(result.allocated_pct[kLastPercent])},
              {"watts_at_50", OrNull(result.watts[50])},
              {"watts_at_100", OrNull(result.watts[100])},
              {"gpus_without_watts", *result.gpus_without_watts},
              {"placed", result.placed},
              {"refused", result.refused},
              {"allocated_pct", std::move(curve)},
              {"estimated_watts", std::move(watts)},
              {"idle_at_pct", std::move(idle_at)},
              {"idle_gpus", idle.AsJson()}};
}

Result<Arrivals> ArrivalsOf(const Plan& plan, const Workload& workload, std::uint64_t seed) {
  if (plan.orders_folder.empty()) {
    return DrawArrivals(workload.nodes, workload.tasks, seed, plan.inflate);
  }
  std::string name = workload.name;
  constexpr std::string_view kPrefix = "openb_pod_list_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  const auto file = std::filesystem::path(plan.orders_folder) / (name + ".txt.gz");
  return ReadArrivals(file.string(), seed, workload.nodes.size(), workload.tasks.size());
}

Result<Json> RunOne(const Plan& plan, const RunKey& key, SharedProgress& progress) {
  const Workload& workload = plan.traces[key.trace].workload;
  const ReplayPolicy& policy = plan.policies[key.policy];
  BERTH_TRY(const Arrivals arrivals, ArrivalsOf(plan, workload, key.seed));
  Json record = {{"number", key.number},
                 {"trace", workload.name},
                 {"policy", policy.name},
                 {"seed", key.seed},
                 {"gpus_total", GpuCapacityMilli(workload.nodes) / kMilliPerGpu}};
  BERTH_TRY(record["arrivals"], RunArrivals(workload, arrivals, policy, key.seed, progress.Part()));
  if (plan.departures.on) {
    BERTH_TRY(const Stream stream, plan.departures.StreamFor(workload, key.seed));
    BERTH_TRY(const SimulationResult result,
              RunTimedSession(workload, arrivals, stream, policy, key.seed, progress.Part()));
    record["departures"] = SimulationJson(result);
  }
  return record;
}

}  // namespace

Result<std::vector<Json>> RunPlan(const Plan& plan, const Shard& shard, std::size_t threads,
                                  const Progress& progress) {
  std::vector<RunKey> keys;
  for (std::size_t number = 0; number < plan.runs(); ++number) {
    if (shard.Has(number)) keys.push_back(plan.Key(number));
  }
  std::vector<Result<Json>> records(keys.size());
  SharedProgress shared(progress, keys.size() * (plan.departures.on ? 2 : 1));
  ForEachInParallel(keys.size(), threads,
                    [&](std::size_t i) { records[i] = RunOne(plan, keys[i], shared); });
  std::vector<Json> runs;
  for (Result<Json>& record : records) {
    if (!record) return tl::unexpected(std::move(record).error());
    runs.push_back(*std::move(record));
  }
  return runs;
}

}  // namespace berth::replay
