// SPDX-License-Identifier: Apache-2.0
#include "bench/mig/mig_replay.h"

#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "bench/rules/mig_fleet.h"
#include "topology/mig/mig_states.h"

namespace berth::replay {
namespace {

struct Ending {
  double time = 0;
  MigChoice device;
  // The one that ends first is on top.
  friend bool operator<(const Ending& a, const Ending& b) {
    return std::tuple(a.time, a.device.gpu, a.device.placement) >
           std::tuple(b.time, b.device.gpu, b.device.placement);
  }
};

class Tally {
 public:
  explicit Tally(const MigProduct& product)
      : product_(product), asked_(product.rows().size()), lost_(product.rows().size()) {}

  void Count(int row, bool accepted) {
    ++asked_[static_cast<std::size_t>(row)];
    if (!accepted) ++lost_[static_cast<std::size_t>(row)];
  }
  void Add(const Tally& other) {
    for (std::size_t r = 0; r < asked_.size(); ++r) {
      asked_[r] += other.asked_[r];
      lost_[r] += other.lost_[r];
    }
  }
  [[nodiscard]] double AcceptedMemoryPct() const {
    return Accepted([this](std::size_t r) { return product_.rows()[r].memory_units; });
  }
  [[nodiscard]] double AcceptedPodsPct() const {
    return Accepted([](std::size_t) { return 1; });
  }
  [[nodiscard]] std::vector<double> RejectedPct() const {
    std::vector<double> rejected;
    for (std::size_t r = 0; r < asked_.size(); ++r) {
      const double asked = static_cast<double>(asked_[r]);
      rejected.push_back(asked > 0 ? 100 * static_cast<double>(lost_[r]) / asked : 0);
    }
    return rejected;
  }

 private:
  template <class Weight>
  [[nodiscard]] double Accepted(const Weight& weight) const {
    double asked = 0, lost = 0;
    for (std::size_t r = 0; r < asked_.size(); ++r) {
      asked += static_cast<double>(asked_[r] * weight(r));
      lost += static_cast<double>(lost_[r] * weight(r));
    }
    return asked > 0 ? 100 * (1 - lost / asked) : 100;
  }

  const MigProduct& product_;
  std::vector<std::int64_t> asked_, lost_;  // by row
};

Tally Run(const MigReplayOptions& options, const MigStates& states, const MigChooser& chooser,
          const std::vector<MigPod>& pods, std::vector<double>& decision_us) {
  MigFleet fleet(states, options.gpus, options.gpus_per_node);
  std::priority_queue<Ending> running;
  Tally tally(*options.product);
  for (std::size_t i = 0; i < pods.size(); ++i) {
    const MigPod& pod = pods[i];
    while (!running.empty() && running.top().time <= pod.arrives) {
      fleet.Remove(running.top().device.gpu, running.top().device.placement);
      running.pop();
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto device = chooser.Choose(fleet, pod.row);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    if (device) {
      fleet.Place(device->gpu, device->placement);
      running.push({pod.arrives + pod.lasts, *device});
    }
    if (i < pods.size() / 3) continue;
    tally.Count(pod.row, device.has_value());
    decision_us.push_back(took.count());
  }
  return tally;
}

// The 0.975 quantile of Student's t.
double StudentT(std::size_t degrees) {
  constexpr std::array<double, 30> kQuantiles = {
      12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
      2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
      2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  return degrees <= kQuantiles.size() ? kQuantiles[degrees - 1] : 1.96;
}

}  // namespace

MigEstimate EstimateOf(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2) return {mean, 0};
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double error = std::sqrt(squares / (count - 1) / count);
  return {mean, StudentT(values.size() - 1) * error};
}

Result<std::vector<MigScore>> ReplayMig(const MigReplayOptions& options,
                                        const MigProgress& progress) {
  const MigProduct& product = *options.product;
  std::vector<int> rows;
  for (const auto& [row, share] : options.mix) rows.push_back(row);
  BERTH_TRY(const MigStates states, MigStates::Of(product, rows));
  const double units = options.load * options.gpus * product.memory_units();
  std::vector<MigScore> scores;
  for (const MigPolicy policy : options.policies) {
    const MigChooser chooser(policy, states, options.pick);
    MigScore& score = scores.emplace_back();
    score.policy = policy;
    Tally all(product);
    std::vector<double> decision_us;
    for (int i = 0; i < options.seeds; ++i) {
      const Tally tally =
          Run(options, states, chooser,
              DrawMigPods(product, options.mix, options.lifetimes, units, options.arrivals,
                          options.first_seed + static_cast<std::uint64_t>(i)),
              decision_us);
      score.memory_pct.push_back(tally.AcceptedMemoryPct());
      score.pods_pct.push_back(tally.AcceptedPodsPct());
      all.Add(tally);
      const std::size_t seeds = static_cast<std::size_t>(options.seeds);
      if (progress)
        progress((scores.size() - 1) * seeds + static_cast<std::size_t>(i) + 1,
                 options.policies.size() * seeds);
    }
    score.rejected_pct = all.RejectedPct();
    score.decision_us = Summarize(std::move(decision_us));
  }
  return scores;
}

}  // namespace berth::replay
