// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/stream.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace berth::replay {
namespace {

constexpr double kSigma = 1.0;
constexpr double kAlpha = 1.2;
constexpr double kLongestOverShortest = 1000;

// Mean of the Pareto law bounded to [1, r], density ~ x^-(alpha+1).
double BoundedParetoMean(double alpha, double r) {
  return alpha / (alpha - 1) * (1 - std::pow(r, 1 - alpha)) / (1 - std::pow(r, -alpha));
}

// In (0, 1]: its logarithm is finite.
double Positive(Random& random) { return 1.0 - random.Unit(); }

double StandardNormal(Random& random) {  // Box and Muller
  const double radius = std::sqrt(-2 * std::log(Positive(random)));
  return radius * std::cos(2 * std::numbers::pi * random.Unit());
}

Millis ToMillis(double ms) { return Millis(std::max<std::int64_t>(1, std::llround(ms))); }

}  // namespace

LifetimeLaw::LifetimeLaw(Lifetimes kind, Millis mean)
    : kind_(kind),
      scale_(static_cast<double>(mean.count()) /
             (kind == Lifetimes::kLogNormal ? std::exp(kSigma * kSigma / 2)
                                            : BoundedParetoMean(kAlpha, kLongestOverShortest))) {}

double LifetimeLaw::Sample(Random& random, int bias) const {
  if (kind_ == Lifetimes::kLogNormal) {
    return scale_ * std::exp(kSigma * StandardNormal(random) + bias * kSigma * kSigma);
  }
  const double alpha = kAlpha - bias;
  const double mass = 1 - std::pow(kLongestOverShortest, -alpha);
  return scale_ * std::pow(1 - random.Unit() * mass, -1 / alpha);
}

Millis LifetimeLaw::Draw(Random& random) const { return ToMillis(Sample(random, 0)); }

Millis LifetimeLaw::DrawResidual(Random& random) const {
  const double whole = Sample(random, 1);
  return ToMillis(whole * Positive(random));
}

std::optional<Millis> PoissonTimes::Next(Random& random) {
  at_ += -std::log(Positive(random)) / per_ms_;
  const Millis arrives = ToMillis(at_);
  return arrives < horizon_ ? std::optional(arrives) : std::nullopt;
}

Result<Stream> DrawStream(const std::vector<TraceNode>& nodes, const std::vector<TraceTask>& tasks,
                          const StreamOptions& options, std::uint64_t seed) {
  double task_demand = 0;  // of all tasks, thousandths
  for (const TraceTask& task : tasks) task_demand += static_cast<double>(GpuDemandMilli(task));
  if (task_demand == 0) return Invalid("tasks: want one that asks for a GPU, got none");
  const double wanted = options.load * static_cast<double>(GpuCapacityMilli(nodes));
  const double running = wanted / (task_demand / static_cast<double>(tasks.size()));
  const double per_ms = running / static_cast<double>(options.mean_lifetime.count());
  const double expected = running + per_ms * static_cast<double>(options.horizon.count());
  if (expected > kMostArrivals) {
    return Invalid("load, hours, mean lifetime: want at most " +
                   std::to_string(static_cast<std::int64_t>(kMostArrivals)) +
                   " arrivals, these make " + std::to_string(static_cast<std::int64_t>(expected)));
  }
  Random random(seed);
  const LifetimeLaw law(options.lifetimes, options.mean_lifetime);
  Stream stream;
  stream.horizon = options.horizon;
  for (std::int64_t demand = 0; static_cast<double>(demand) < wanted;) {
    const std::size_t task = random.Below(tasks.size());
    demand += GpuDemandMilli(tasks[task]);
    stream.arrivals.push_back({task, Millis(0), law.DrawResidual(random)});
  }
  stream.primed = stream.arrivals.size();
  PoissonTimes times(per_ms, stream.horizon);
  while (const auto at = times.Next(random)) {
    const std::size_t task = random.Below(tasks.size());
    stream.arrivals.push_back({task, *at, law.Draw(random)});
  }
  return stream;
}

Stream StreamOfTrace(const std::vector<TraceTask>& tasks) {
  Stream stream;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const std::chrono::seconds created(tasks[i].created_s), deleted(tasks[i].deleted_s);
    stream.arrivals.push_back({i, created, deleted - created});
    stream.horizon = std::max<Millis>(stream.horizon, deleted);
  }
  std::ranges::stable_sort(stream.arrivals, {}, &Arrival::at);
  return stream;
}

}  // namespace berth::replay
