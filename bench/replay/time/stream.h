// SPDX-License-Identifier: Apache-2.0
//
// Stream: when pods arrive, and how long each of them runs once it has started.
//
// Two sources. The trace's own times: a pod comes at creation_time and runs for deletion_time -
// creation_time (so what it waits in the replay does not shorten it), up to the trace's last
// deletion. Or a drawn stream: Poisson arrivals, each a task of the trace drawn with equal chance,
// with a heavy-tailed lifetime that does not depend on the task, or does by the owner of the task.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "bench/replay/trace.h"

namespace berth::replay {

using Millis = std::chrono::milliseconds;

struct Arrival {
  std::size_t task = 0;  // index into the tasks
  Millis at{0};
  Millis runs{0};
  Millis ran{0};  // before it came: it was found running
};

// A pod that has ended before the stream begins.
struct PastRun {
  std::size_t task = 0;
  Millis ran{0}, ended{0};  // the latter below 0
};

struct Stream {
  std::vector<Arrival> arrivals;  // by time; among equals in the order in which they come
  Millis horizon{0};              // later events are ignored
  // The first so many arrivals, all at 0, stand for what was running before; see DrawStream.
  std::size_t primed = 0;
  // Of drawn streams: the owner of each task, from 1 on, and the pods that ended last. What is
  // learned of lifetimes begins with these.
  std::vector<std::uint64_t> owners = {};
  std::vector<PastRun> past = {};
};

// How long pods run; the mean is StreamOptions::mean_lifetime.
enum class Lifetimes {
  kLogNormal,      // sigma 1: a hundredth of the pods runs six times the mean or longer
  kBoundedPareto,  // alpha 1.2, the longest 1,000 times the shortest: heavier
  // Log-normal as well, sigma 1 in all: .92 between the owners of tasks, .39 between the pods of
  // one.
  kByOwner,
};

struct StreamOptions {
  double load = 1.0;  // mean GPU demand / GPU capacity, > 0
  Lifetimes lifetimes = Lifetimes::kLogNormal;
  Millis mean_lifetime = std::chrono::hours(1);
  Millis horizon = std::chrono::hours(6);
};

// A lifetime, or the time that is left of a pod found running at a moment of its choice (the
// stationary residual: the length-biased lifetime times a uniform number).
class LifetimeLaw {
 public:
  LifetimeLaw(Lifetimes kind, Millis mean);
  // factor: of the mean.
  Millis Draw(Random& random, double factor = 1) const;
  Millis DrawResidual(Random& random) const { return DrawFound(random).left; }
  // The same, with how long it has run before.
  struct Found {
    Millis ran, left;
  };
  Found DrawFound(Random& random, double factor = 1) const;

 private:
  // Of the law itself (bias 0) or of its length-biased form (bias 1), in units of 1 ms.
  double Sample(Random& random, int bias) const;

  Lifetimes kind_;
  double sigma_;
  double scale_;  // log-normal: exp(mu); Pareto: the shortest
};

// The times of Poisson arrivals, on whole milliseconds from 1 on.
class PoissonTimes {
 public:
  PoissonTimes(double per_ms, Millis horizon) : per_ms_(per_ms), horizon_(horizon) {}
  // Empty: it would not be before the horizon.
  std::optional<Millis> Next(Random& random);

 private:
  const double per_ms_;
  const Millis horizon_;
  double at_ = 0;
};

// Drawn to look as if it had always run: at 0 come pods with residual lifetimes whose GPU demand is
// load * capacity (the primed ones), then Poisson arrivals at
//   rate = load * capacity / (mean demand of a task * mean lifetime).
// Same seed, same stream. Error: kInvalidArgument when no task asks for a GPU, or for more than
// kMostArrivals.
constexpr double kMostArrivals = 5e6;
// Tasks are spread over so many owners.
constexpr std::size_t kOwners = 40;
Result<Stream> DrawStream(const std::vector<TraceNode>& nodes, const std::vector<TraceTask>& tasks,
                          const StreamOptions& options, std::uint64_t seed);

// Requires: the tasks were read with their times.
Stream StreamOfTrace(const std::vector<TraceTask>& tasks);

}  // namespace berth::replay
