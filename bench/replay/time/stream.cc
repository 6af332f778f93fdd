// SPDX-License-Identifier: Apache-2.0
#include "bench/replay/time/stream.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace berth::replay {
namespace {

constexpr double kSigma = 1.0, kSigmaOfOwner = 0.39;
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

// Whose the tasks are, and how long those of each run against the mean of all.
class Owners {
 public:
  Owners(const std::vector<TraceTask>& tasks, Lifetimes lifetimes, std::uint64_t seed);

  // Of each task, from 1 on.
  [[nodiscard]] const std::vector<std::uint64_t>& of_task() const { return of_task_; }
  [[nodiscard]] double factor(std::size_t task) const { return factors_[of_task_[task] - 1]; }
  // A task of a pod that is found running: those of owners whose pods run long are more often.
  std::size_t FoundRunning(Random& random) const {
    while (true) {
      const std::size_t task = random.Below(of_task_.size());
      if (!differ_ || random.Unit() * largest_ < factor(task)) return task;
    }
  }

 private:
  const bool differ_;
  std::vector<std::uint64_t> of_task_;
  std::vector<double> factors_ = std::vector<double>(kOwners, 1);
  double largest_ = 1;
};

Owners::Owners(const std::vector<TraceTask>& tasks, Lifetimes lifetimes, std::uint64_t seed)
    : differ_(lifetimes == Lifetimes::kByOwner) {
  for (std::size_t i = 0; i < tasks.size(); ++i) of_task_.push_back(Mix64(i) % kOwners + 1);
  if (!differ_) return;
  Random random(Mix64(seed));  // the draws of the stream are as without owners
  const double between = std::sqrt(kSigma * kSigma - kSigmaOfOwner * kSigmaOfOwner);
  for (double& factor : factors_) factor = std::exp(between * StandardNormal(random));
  double demand = 0, used = 0;  // of all tasks: the load is to be as asked
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto milli = static_cast<double>(GpuDemandMilli(tasks[i]));
    demand += milli;
    used += milli * factor(i);
  }
  for (double& factor : factors_) factor *= demand / used;
  largest_ = *std::ranges::max_element(factors_);
}

}  // namespace

LifetimeLaw::LifetimeLaw(Lifetimes kind, Millis mean)
    : kind_(kind),
      sigma_(kind == Lifetimes::kByOwner ? kSigmaOfOwner : kSigma),
      scale_(static_cast<double>(mean.count()) /
             (kind == Lifetimes::kBoundedPareto ? BoundedParetoMean(kAlpha, kLongestOverShortest)
                                                : std::exp(sigma_ * sigma_ / 2))) {}

double LifetimeLaw::Sample(Random& random, int bias) const {
  if (kind_ != Lifetimes::kBoundedPareto) {
    return scale_ * std::exp(sigma_ * StandardNormal(random) + bias * sigma_ * sigma_);
  }
  const double alpha = kAlpha - bias;
  const double mass = 1 - std::pow(kLongestOverShortest, -alpha);
  return scale_ * std::pow(1 - random.Unit() * mass, -1 / alpha);
}

Millis LifetimeLaw::Draw(Random& random, double factor) const {
  return ToMillis(factor * Sample(random, 0));
}

LifetimeLaw::Found LifetimeLaw::DrawFound(Random& random, double factor) const {
  const double whole = factor * Sample(random, 1);
  const double left = whole * Positive(random);
  return {ToMillis(whole - left), ToMillis(left)};
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
  const Owners owners(tasks, options.lifetimes, seed);
  Stream stream;
  stream.horizon = options.horizon;
  stream.owners = owners.of_task();
  for (std::int64_t demand = 0; static_cast<double>(demand) < wanted;) {
    const std::size_t task = owners.FoundRunning(random);
    demand += GpuDemandMilli(tasks[task]);
    const LifetimeLaw::Found found = law.DrawFound(random, owners.factor(task));
    stream.arrivals.push_back({task, Millis(0), found.left, found.ran});
  }
  stream.primed = stream.arrivals.size();
  PoissonTimes times(per_ms, stream.horizon);
  while (const auto at = times.Next(random)) {
    const std::size_t task = random.Below(tasks.size());
    stream.arrivals.push_back({task, *at, law.Draw(random, owners.factor(task))});
  }
  for (std::size_t i = 0; i < stream.primed; ++i) {
    const std::size_t task = random.Below(tasks.size());
    stream.past.push_back(
        {task, law.Draw(random, owners.factor(task)), -Millis(static_cast<std::int64_t>(i) + 1)});
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
