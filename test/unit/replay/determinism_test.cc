// SPDX-License-Identifier: Apache-2.0
//
// The simulations themselves are deterministic: with the same seed, ten runs beside each other see
// the same events at the same times, and end with the same figures.
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/replay/classes/class_simulation.h"
#include "bench/replay/gang/gang_simulation.h"
#include "bench/replay/parallel.h"
#include "bench/replay/session.h"
#include "bench/replay/shares/share_simulation.h"

namespace berth::replay::determinism_test {
namespace {

using std::chrono::minutes;

struct RunEnd {
  std::uint64_t trace = 0;
  double served = 0;
  friend auto operator<=>(const RunEnd&, const RunEnd&) = default;
};

// The ends of ten runs with one seed: one, if all is well.
std::set<RunEnd> EndsOf(const std::function<RunEnd(std::uint64_t)>& run, std::uint64_t seed) {
  std::vector<RunEnd> ends(10);
  ForEachInParallel(ends.size(), 4, [&](std::size_t i) { ends[i] = run(seed); });
  return {ends.begin(), ends.end()};
}

void ExpectDeterministic(const std::function<RunEnd(std::uint64_t)>& run) {
  const std::set<RunEnd> first = EndsOf(run, 1), second = EndsOf(run, 2);
  EXPECT_EQ(first.size(), 1U);
  EXPECT_EQ(second.size(), 1U);
  EXPECT_NE(first.begin()->trace, second.begin()->trace) << "the trace has to tell runs apart";
}

TEST(Determinism, OfStreamsOfATrace) {
  for (const char* policy : {"expected-waste", "best-fit", "random"}) {
    SCOPED_TRACE(policy);
    ExpectDeterministic([policy](std::uint64_t seed) {
      Workload workload = GenerateWorkload(seed, 400);
      workload.nodes.resize(40);
      const Arrivals arrivals = DrawArrivals(workload.nodes, workload.tasks, seed, 1);
      const StreamOptions options{1.3, Lifetimes::kLogNormal, minutes(10), minutes(10)};
      const Stream stream = DrawStream(workload.nodes, workload.tasks, options, seed).value();
      const SimulationResult result =
          RunTimedSession(workload, arrivals, stream, PolicyNamed(policy).value(), seed, {})
              .value();
      return RunEnd{result.trace, result.idle_gpu_hours_waiting};
    });
  }
}

TEST(Determinism, OfShares) {
  for (const char* policy : {"berth", "hami-binpack", "fluid"}) {
    SCOPED_TRACE(policy);
    ExpectDeterministic([policy](std::uint64_t seed) {
      const ShareOptions options{.load = 1.1, .hours = 2, .seed = seed, .fleet = {{2, 4, 40'960}}};
      const ShareWorkload workload = DrawShareWorkload("whole", options).value();
      const ShareResult result = SimulateShares(workload, policy, seed).value();
      return RunEnd{result.trace, result.served_gpu_hours};
    });
  }
}

TEST(Determinism, OfClasses) {
  ExpectDeterministic([](std::uint64_t seed) {
    const ClassWorkload workload = DrawClassWorkload({.hours = 2, .seed = seed}).value();
    const ClassPolicy policy = ClassPolicyNamed("classes", BerthWithExample()).value();
    const ClassResult result = SimulateClasses(workload, policy, seed).value();
    return RunEnd{result.trace, result.back().served_gpu_hours};
  });
}

TEST(Determinism, OfGangs) {
  for (const char* rule : {"berth", "greedy"}) {
    SCOPED_TRACE(rule);
    ExpectDeterministic([rule](std::uint64_t seed) {
      const GangWorkload workload = DrawGangWorkload("roles", {.hours = 1, .seed = seed}).value();
      std::vector<std::shared_ptr<const Node>> nodes;
      for (const NodeSpec& node : workload.nodes) {
        nodes.push_back(std::make_shared<const Node>(std::make_shared<const NodeSpec>(node)));
      }
      const auto made = MakeGangRule(rule, Snapshot(nodes)).value();
      const GangResult result = SimulateGangs(workload, *made).value();
      return RunEnd{result.trace, result.served_gpu_hours};
    });
  }
}

}  // namespace
}  // namespace berth::replay::determinism_test
